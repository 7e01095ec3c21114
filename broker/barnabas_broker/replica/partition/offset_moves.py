"""Events of logs that grew and high watermarks that moved, found by a periodic look at all of them.

Produce and fetch requests record nothing. There is at most one event per partition and interval.
"""

from collections.abc import Iterable

from barnabas_common.events import EventKind, EventLog
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.replica.partition.partition import Partition

INTERVAL_SECONDS = 0.5


class OffsetMoves:
    """Keeps the offsets of each replica at the last look."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._seen: dict[TopicPartition, tuple[int, int]] = {}

    def look(self, partitions: Iterable[Partition]) -> None:
        """Record every move since the last look; a replica seen for the first time has none."""
        before, self._seen = self._seen, {}
        for partition in partitions:
            log = partition.log
            if log is None:
                continue
            now = (log.log_end_offset, log.high_watermark)
            then = before.get(partition.topic_partition, now)
            self._seen[partition.topic_partition] = now
            if then != now:
                self._record(partition, then, now)

    def _record(self, partition: Partition, then: tuple[int, int], now: tuple[int, int]) -> None:
        leadership = partition.leadership
        if leadership is not None:
            hold = leadership.what_holds_high_watermark()
            cause = hold.because or "every member of the ISR has it all"
            by = hold.by
        else:
            cause, by = f"broker {partition.leader_id}, the leader, has sent it", ()
        self._events.record(
            EventKind.OFFSETS_MOVED,
            cause,
            partition.topic_partition,
            is_leader=leadership is not None,
            leader_epoch=partition.leader_epoch,
            log_end_offset_before=then[0],
            log_end_offset=now[0],
            high_watermark_before=then[1],
            high_watermark=now[1],
            held_back_by=by,
        )
