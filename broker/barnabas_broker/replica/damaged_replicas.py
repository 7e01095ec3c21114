"""Replicas that find a damaged batch in their own log.

Bytes on a disk can change after they were written and checked. The leader detects that while it
serves a fetch, a follower while it truncates its log, any replica while it reads what its log says
of producers, at its start and after a truncation. The other replicas then have a valid copy,
because each wrote its own.

If the ISR has another member, the leader has the controller send its roles again and refuses this
one, exactly as if the log's disk had failed; a replica that has just started refuses its first
role. The controller then elects another member and removes this replica from the ISR. The error
code says that the log is damaged, so the replica does not become eligible (KIP-966), and leaves the
eligible replicas if it is one of them. Then it truncates its log at the damage and fetches the rest
again. The only member of an ISR continues to lead, truncates nothing, and answers CORRUPT_MESSAGE
where the damage is.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from barnabas_common.errors import CorruptMessageError, KafkaError, KafkaStorageError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, EventLog, Value
from barnabas_common.messages.control import LeaderAndIsrPartition, UpdateMetadataPartition
from barnabas_common.messages.sentinels import NO_LEADER
from barnabas_common.record.batch import Buffer, CorruptBatch, batches, check_crc, in_order
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.leader.leadership import Leadership
from barnabas_broker.replica.partition.partition import Partition


def first_damage(
    records: Buffer, start: int, at_least_one: bool, batch_limit: int | None = None
) -> tuple[int, str] | None:
    """The first damaged offset in what was read from `start` on, and the fault; None if valid.

    Checks `batch_limit` batches, or all. A reader that finds damage further on requests its offset.
    With `at_least_one` it is damage too if there is no whole batch: a length must be invalid.
    """
    expected, size = start, 0
    found = in_order(batches(records), start, starts_inside=True)
    try:
        for position, header in islice(found, batch_limit):
            check_crc(records, position, header)
            expected, size = header.next_offset, position + header.size
    except CorruptBatch as error:
        return expected, str(error)
    if at_least_one and not records:
        return start, "no whole batch starts there"
    if batch_limit is None and size < len(records):
        return expected, f"the last {len(records) - size} bytes are not a whole batch"
    return None


@dataclass
class _Damage:
    """The first damaged offset and the fault there. `is_reported`: an event has been recorded.
    `asked`: under which partition epoch this broker has asked for its roles again.
    `handing_over`: it has refused a role with this log."""

    offset: int
    fault: str
    is_reported: bool = False
    asked: int | None = None
    handing_over: bool = False


class DamagedReplicas:
    """The replicas of this broker whose log was found damaged, until it is repaired."""

    def __init__(
        self,
        broker_id: int,
        events: EventLog,
        is_alive: Callable[[int], bool],
        ask_for_roles: Callable[[], None],
    ) -> None:
        self._broker_id = broker_id
        self._events = events
        self._is_alive = is_alive
        self._ask_for_roles = ask_for_roles
        self._damaged: dict[TopicPartition, _Damage] = {}

    def __contains__(self, topic_partition: object) -> bool:
        return topic_partition in self._damaged

    def found(self, leadership: Leadership, offset: int, fault: str) -> KafkaError:
        """Note that the leader cannot serve `offset`; return the error for the reader."""
        key, in_sync = leadership.topic_partition, leadership.isr.committed
        others = self._others(in_sync)
        damage = self._damaged.get(key)
        if damage is None or offset < damage.offset:
            damage = self._damaged[key] = _Damage(offset, fault)
        self._report_as_leader(damage, leadership)
        if not others:
            return CorruptMessageError(
                f"{key}: offset {offset} is damaged on broker {self._broker_id}, the only member"
                f" of the ISR: {fault}"
            )
        if damage.asked != leadership.partition_epoch:
            damage.asked = leadership.partition_epoch
            self._ask_for_roles()
        return KafkaStorageError(
            f"{key}: offset {offset} is damaged here; waiting for another leader"
        )

    def found_by_follower(self, topic_partition: TopicPartition, offset: int, fault: str) -> None:
        """Note that a follower cannot truncate its log to `offset`; the next role decides."""
        self._damaged[topic_partition] = _Damage(offset, fault)
        self._ask_for_roles()

    def take_note(self, log: UnifiedLog) -> None:
        """Note what was found when the log was opened or truncated; the role that the replica is
        about to take decides what follows."""
        found, log.damage = log.damage, None
        if found is not None and log.topic_partition not in self._damaged:
            self._damaged[log.topic_partition] = _Damage(*found)

    def _others(self, in_sync: Iterable[int]) -> list[int]:
        return [b for b in in_sync if b != self._broker_id and self._is_alive(b)]

    def _report_as_leader(self, damage: _Damage, leadership: Leadership) -> None:
        others = self._others(leadership.isr.committed)
        if others:
            then = (
                f"brokers {others} are in sync: one of them will lead, then this log is truncated"
            )
        else:
            then = (
                "no other replica is in sync, so nothing is truncated; readers can seek past it,"
                " and a replica outside the ISR may have a valid copy"
            )
        self._report(
            damage,
            leadership.topic_partition,
            then,
            leader_epoch=leadership.epoch,
            high_watermark=leadership.log.high_watermark,
            isr=leadership.isr.committed,
        )

    def _report(self, damage: _Damage, key: TopicPartition, then: str, **details: Value) -> None:
        """Record the event once, with what is done about the damage."""
        if not damage.is_reported:
            damage.is_reported = True
            cause = f"{damage.fault}; {then}"
            self._events.record(EventKind.LOG_DAMAGED, cause, key, offset=damage.offset, **details)

    # ---- roles

    def refuses(self, partition_state: LeaderAndIsrPartition) -> bool:
        """Whether to leave the ISR, or the eligible replicas, rather than take a role with this
        log: a replica that is truncated must not be elected by what it had."""
        key = TopicPartition(partition_state.topic, partition_state.partition)
        in_sync = partition_state.in_sync_replicas
        if key not in self._damaged:
            return False
        if self._broker_id in in_sync:
            return len(in_sync) > 1
        is_eligible = self._broker_id in partition_state.eligible_leader_replicas
        return is_eligible and partition_state.leader != NO_LEADER

    def step_down(self, partition: Partition, partition_state: LeaderAndIsrPartition) -> None:
        """Serve nothing more of a partition whose role is refused."""
        damage = self._damaged[partition.topic_partition]
        damage.handing_over = True
        in_sync = partition_state.in_sync_replicas
        left = f"ISR {list(in_sync)}" if self._broker_id in in_sync else "eligible replicas"
        self._report(
            damage,
            partition.topic_partition,
            f"this replica refuses its role and leaves the {left}; then its log is truncated",
            leader_epoch=partition_state.leader_epoch,
            isr=tuple(in_sync),
        )
        partition.resign(ErrorCode.KAFKA_STORAGE_ERROR)

    def leads(self, leadership: Leadership) -> None:
        """The replica leads all the same, because no other is in sync."""
        damage = self._damaged.get(leadership.topic_partition)
        if damage is not None:
            self._report_as_leader(damage, leadership)

    def may_return(self, partition_states: Iterable[UpdateMetadataPartition]) -> bool:
        """Whether a replica that stepped down can have a role again.

        It can if it has left the ISR and the eligible replicas, or if it is the only member of the
        ISR because the others failed first.
        """
        again = [
            damage
            for state in partition_states
            if (damage := self._damaged.get(TopicPartition(state.topic, state.partition)))
            and damage.handing_over
            and (
                self._broker_id not in (*state.in_sync_replicas, *state.eligible_leader_replicas)
                or list(state.in_sync_replicas) == [self._broker_id]
            )
        ]
        for damage in again:
            damage.handing_over = False
        return bool(again)

    def forget(self, topic_partition: TopicPartition) -> None:
        """The replica was removed; a later replica of the partition has another log."""
        self._damaged.pop(topic_partition, None)

    def mend(self, partition: Partition) -> None:
        """Truncate a follower's log at the damage, once there is a leader to fetch from. What is
        left may be damaged too."""
        key = partition.topic_partition
        damage = self._damaged.get(key)
        if damage is None or partition.leader_id < 0:
            return
        leader = partition.leader_id
        then = f"broker {leader} leads and has the rest, so this log is truncated"
        self._report(damage, key, then, leader=leader)
        cause = f"offset {damage.offset} was damaged here; the leader has the rest"
        _truncate(partition, damage.offset, cause)
        del self._damaged[key]
        self.take_note(partition.follower_log())
        self.mend(partition)


def _truncate(partition: Partition, offset: int, cause: str) -> None:
    """At the damage; where it is unknown which batch begins there, at the start of its segment."""
    log = partition.follower_log()
    start = log.log_start_offset
    if offset < start:  # the first segments are missing
        return partition.truncate_fully(offset, cause)
    for place in (offset, *(b for b in reversed(log.segment_offsets) if start < b < offset)):
        with suppress(CorruptMessageError):
            return partition.truncate_damaged(place, cause)
    return partition.truncate_fully(start, cause)
