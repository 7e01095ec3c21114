"""Leaders that find a damaged batch in their own log.

Bytes on a disk can change after they were written and checked. The leader detects that while it
serves a fetch. The other replicas then have a valid copy, because each wrote its own.

If the ISR has another member, the leader has the controller send its roles again and refuses this
one, exactly as if the log's disk had failed. The controller then elects that member and removes
this replica from the ISR. The error code says that the log is damaged, so the replica does not
become eligible (KIP-966). Then the replica truncates its log at the damage and fetches the rest
again. The only member of an ISR continues to lead, truncates nothing, and answers CORRUPT_MESSAGE
where the damage is.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from barnabas_common.errors import CorruptMessageError, KafkaError, KafkaStorageError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, EventLog
from barnabas_common.messages.control import LeaderAndIsrPartition, UpdateMetadataPartition
from barnabas_common.record.batch import Buffer, CorruptBatch, batches, check_crc, in_order
from barnabas_common.topic_partition import TopicPartition

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
    """The first damaged offset. `handing_over`: this broker has asked for its roles again."""

    offset: int
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

    def found(self, leadership: Leadership, offset: int, fault: str) -> KafkaError:
        """Note that the leader cannot serve `offset`; return the error for the reader."""
        key = leadership.topic_partition
        others = self._others(leadership.isr.committed)
        damage = self._damaged.get(key)
        if damage is None or offset < damage.offset:
            damage = self._damaged[key] = _Damage(offset)
            self._report(leadership, offset, fault, others)
        if not others:
            return CorruptMessageError(
                f"{key}: offset {offset} is damaged on broker {self._broker_id}, the only member"
                f" of the ISR: {fault}"
            )
        if not damage.handing_over:
            damage.handing_over = True
            self._ask_for_roles()
        return KafkaStorageError(
            f"{key}: offset {offset} is damaged here; waiting for another leader"
        )

    def _others(self, in_sync: Iterable[int]) -> list[int]:
        return [b for b in in_sync if b != self._broker_id and self._is_alive(b)]

    def _report(
        self, leadership: Leadership, offset: int, fault: str, others: Sequence[int]
    ) -> None:
        if others:
            then = (
                f"brokers {others} are in sync: one of them will lead, then this log is truncated"
            )
        else:
            then = (
                "no other replica is in sync, so nothing is truncated; readers can seek past it,"
                " and a replica outside the ISR may have a valid copy"
            )
        self._events.record(
            EventKind.LOG_DAMAGED,
            f"{fault}; {then}",
            leadership.topic_partition,
            offset=offset,
            leader_epoch=leadership.epoch,
            high_watermark=leadership.log.high_watermark,
            isr=leadership.isr.committed,
        )

    # ---- requests of the controller

    def refuses(self, partition_state: LeaderAndIsrPartition) -> bool:
        """Whether to leave the ISR rather than take a role with this log."""
        key = TopicPartition(partition_state.topic, partition_state.partition)
        in_sync = partition_state.in_sync_replicas
        return key in self._damaged and self._broker_id in in_sync and len(in_sync) > 1

    def step_down(self, partition: Partition) -> None:
        """Serve nothing more of a partition whose role is refused."""
        self._damaged[partition.topic_partition].handing_over = True
        partition.resign(ErrorCode.KAFKA_STORAGE_ERROR)

    def may_return(self, partition_states: Iterable[UpdateMetadataPartition]) -> bool:
        """Whether a replica that stepped down can have a role again.

        It can if it has left the ISR, or if it is the only member because the others failed first.
        """
        again = [
            damage
            for state in partition_states
            if (damage := self._damaged.get(TopicPartition(state.topic, state.partition)))
            and damage.handing_over
            and (
                self._broker_id not in state.in_sync_replicas
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
        """Truncate a follower's log at the damage, once there is a leader to fetch from."""
        damage = self._damaged.get(partition.topic_partition)
        if damage is None or partition.leader_id < 0:
            return
        cause = f"offset {damage.offset} was damaged here; the leader has the rest"
        try:
            partition.truncate_damaged(damage.offset, cause)
        except CorruptMessageError:  # where the batches start is unknown
            partition.truncate_fully(partition.follower_log().log_start_offset, cause)
        del self._damaged[partition.topic_partition]
