"""What the committed records of `__consumer_offsets` say of each group, read by the simulator.

No coordinator takes part: the records come from the log of the legitimate leader, in their order.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.group.protocol import decode_assignment
from barnabas_broker.coordinator.group.records import (
    GroupKey,
    GroupValue,
    OffsetKey,
    OffsetValue,
    decode_group_value,
    decode_key,
    decode_offset_value,
)
from barnabas_common.record.reader import Record
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.logs.image import Batch

Owners = dict[TopicPartition, str]
NO_GENERATION = -1


class Committed(NamedTuple):
    """A committed offset, and the offset of its record."""

    value: OffsetValue
    at: int


@dataclass
class GroupTruth:
    """One group. `owners`: of each generation, whose each partition is. `history`: every commit by
    the offset of its record. `in_transactions`: those that waited for a marker, and may still."""

    value: GroupValue | None = None
    offsets: dict[TopicPartition, Committed] = field(default_factory=dict)
    owners: dict[int, Owners] = field(default_factory=dict)
    history: dict[int, tuple[TopicPartition, OffsetValue]] = field(default_factory=dict)
    in_transactions: dict[int, tuple[TopicPartition, OffsetValue]] = field(default_factory=dict)

    @property
    def generation(self) -> int:
        return NO_GENERATION if self.value is None else self.value.generation_id

    def found(self, partition: TopicPartition, offset: int, metadata: str) -> list[int]:
        """Where the commits with these values are in the log; an offset may be committed twice."""
        return [
            at
            for at, (tp, value) in {**self.in_transactions, **self.history}.items()
            if tp == partition and (value.offset, value.metadata) == (offset, metadata)
        ]


class Undecided:
    """The records of open transactions in one partition, by producer id."""

    def __init__(self, known: "Undecided | None" = None) -> None:
        self._open: dict[int, list[Record]] = {}
        if known is not None:
            self._open = {producer_id: [*found] for producer_id, found in known._open.items()}

    def decided(self, batch: Batch, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records that count once this batch is in the log: its own, or those of the
        transaction that its marker commits."""
        part = batch.transaction
        if part is None:
            return records
        if part.commit is None:
            self._open.setdefault(part.producer_id, []).extend(records)
            return ()
        ended = self._open.pop(part.producer_id, [])
        return ended if part.commit else ()


class GroupState(NamedTuple):
    """What a reload must lead to: of the group's record, and of its offsets."""

    generation: int
    assignments: Mapping[str, bytes]
    offsets: Mapping[TopicPartition, Committed]


class Log:
    """Records in their order, from an empty log or on top of what is known."""

    def __init__(self, known: Mapping[str, GroupTruth], undecided: Undecided | None = None) -> None:
        self._undecided = Undecided(undecided)
        self._values = {name: group.value for name, group in known.items()}
        self._offsets = {name: dict(group.offsets) for name, group in known.items()}

    def take_batch(self, batch: Batch, records: Sequence[Record]) -> None:
        for record in self._undecided.decided(batch, records):
            self.take(record)

    def take(self, record: Record) -> None:
        match parsed(record):
            case GroupKey(group_id), GroupValue() | None as value:
                self._values[group_id] = value
            case OffsetKey(group_id, topic, number), OffsetValue() as committed:
                partition = TopicPartition(topic, number)
                offsets = self._offsets.setdefault(group_id, {})
                if partition not in offsets or offsets[partition].at < record.offset:
                    offsets[partition] = Committed(committed, record.offset)
            case OffsetKey(group_id, topic, number), None:
                self._offsets.get(group_id, {}).pop(TopicPartition(topic, number), None)

    def groups(self) -> dict[str, GroupState]:
        """The groups as a coordinator must know them once it has read this."""
        found = {}
        for name in sorted({*self._values, *self._offsets}):
            value, offsets = self._values.get(name), self._offsets.get(name, {})
            members = () if value is None else value.members
            if value is not None or offsets:
                generation = 0 if value is None else value.generation_id
                assignments = {one.member_id: one.assignment for one in members}
                found[name] = GroupState(generation, assignments, offsets)
        return found


def parsed(
    record: Record,
) -> tuple[GroupKey | OffsetKey | None, GroupValue | OffsetValue | None]:
    """The key and the value of a record; a value of None is a tombstone."""
    key = decode_key(record.key or b"")
    if record.value is None:
        return key, None
    if isinstance(key, OffsetKey):
        return key, decode_offset_value(record.value)
    return key, decode_group_value(record.value)


def identity(member_id: str, group_instance_id: str) -> str:
    """A static member stays the same under another member id."""
    return group_instance_id or member_id


def assigned(members: Iterable[tuple[str, bytes]]) -> list[tuple[str, TopicPartition]]:
    """Who gets what, of identities with their assignments; a partition may occur twice."""
    return [(who, tp) for who, assignment in members for tp in decode_assignment(assignment)]


def assigned_by(value: GroupValue) -> list[tuple[str, TopicPartition]]:
    """Who gets what by a group's record."""
    members = value.members
    return assigned((identity(m.member_id, m.group_instance_id), m.assignment) for m in members)
