"""Plans the micro-batches of a stream: where the next one ends, and which ranges it has.

Runs on the driver, in one process for the whole query. The position comes from Spark with every
call, so nothing here is needed after a restart.
"""

import asyncio
import logging
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from barnabas_common.errors import BarnabasError, UnknownTopicOrPartitionError
from barnabas_common.runtime import Runtime, new_uuid, system_randomness
from barnabas_common.topic_partition import TopicPartition

from pyspark_barnabas.options import ReadOptions
from pyspark_barnabas.reading.admission import TriggerDelay, available, share_out
from pyspark_barnabas.reading.errors import PlanError, report_data_loss
from pyspark_barnabas.reading.lower_ends import LowerEnds
from pyspark_barnabas.reading.offset_reader import Assigned, OffsetReader
from pyspark_barnabas.reading.ranges import OffsetRange, split
from pyspark_barnabas.reading.stream_offsets import StreamOffsets

logger = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, int]

# Brokers learn of topics and partitions one by one.
_CONFIRMATIONS = 5
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True)
class _Reach:
    """What a stream can read now: from `starts` to `ends`, in the topics with these ids."""

    starts: Offsets
    ends: Offsets
    topic_ids: Mapping[str, str]


class StreamPlanner:
    """`runtime` replaces clock and network (tests)."""

    def __init__(self, options: ReadOptions, runtime: Runtime | None = None) -> None:
        self._options = options
        self._fail = options.fail_on_data_loss
        self._offsets = OffsetReader(options, runtime)
        self._delay = TriggerDelay(
            options.min_offsets_per_trigger or 0, options.max_trigger_delay_ms
        )
        self._target: StreamOffsets | None = None  # of Trigger.AvailableNow
        self._lower_ends = LowerEnds()
        self._newest: StreamOffsets | None = None
        self._initial: StreamOffsets | None = None
        unique = new_uuid(system_randomness())
        self._new_group_id = f"{options.group_id_prefix}-{unique}"

    async def close(self) -> None:
        await self._offsets.close()

    @property
    def newest(self) -> StreamOffsets | None:
        """What could be read when `latest` was called last, without any limit."""
        return self._newest

    async def initial(self) -> StreamOffsets:
        """Where a new query starts, always the same. Raises if a topic does not exist."""
        if self._initial is None:
            assigned = await self._offsets.assigned()
            bounds = await self._offsets.bounds(assigned.partitions)
            starts = await self._offsets.resolved(self._options.starting, bounds)
            self._initial = StreamOffsets(starts, assigned.topic_ids, self.group_id(), starts)
        return self._initial

    async def prepare_for_available_now(self) -> None:
        """From now on nothing above the present ends is read."""
        assigned = await self._offsets.existing()
        ends = await self._offsets.latest(assigned.partitions)
        self._target = StreamOffsets(ends, assigned.topic_ids, "")

    async def latest(self, start: StreamOffsets, unlimited: bool = False) -> StreamOffsets:
        """Where the next batch ends; `start` itself if the batch is held back, or is empty.

        Raises DataLossError if a topic of the query was deleted, or deleted and created again.
        """
        try:
            reach = await self._reach(start)
        except UnknownTopicOrPartitionError:
            reach = await self._reach(start)  # deleted between two questions
        group_id = self.group_id(start.group_id)
        self._newest = StreamOffsets(reach.ends, reach.topic_ids, group_id)
        ends = reach.ends if unlimited else self._admitted(reach)
        if ends is None or (ends == start.offsets and reach.topic_ids == start.topic_ids):
            return start
        began = reach.starts if start.is_first else None
        return StreamOffsets(ends, reach.topic_ids, group_id, began)

    async def newest_without_start(self) -> StreamOffsets:
        """As `latest` of a Spark before 4.2, which does not say where a batch starts.

        It asks for the start of a new query afterwards, which must not be behind this end. Whether
        the query is new is not known here; if it is not, its start does not matter.
        """
        if self._newest is None:
            with suppress(BarnabasError, ValueError, RuntimeError):
                await self.initial()
        assigned = await self._offsets.existing()
        ends = await self._offsets.latest(assigned.partitions)
        group_id = self._newest.group_id if self._newest else self.group_id()
        self._newest = StreamOffsets(ends, assigned.topic_ids, group_id)
        return self._newest

    async def plan(self, start: StreamOffsets, end: StreamOffsets) -> list[OffsetRange]:
        """The ranges of one batch. The same positions give the same ranges, also after a restart.

        Raises DataLossError for partitions that are gone, or whose offsets have gone back.
        """
        if self._target is not None:
            self._check_target(start, end)
        if end.began is not None:
            # Spark has passed where a new query would begin now.
            start = StreamOffsets(end.began, end.topic_ids, end.group_id)
        known = self._of_same_topics(start, end.topic_ids)
        self._report_deleted(known, end.offsets)
        new = await self._existing([tp for tp in end.offsets if tp not in known])
        starts = dict(known) | await self._starts_of_new(new)
        ranges = []
        for tp in sorted(end.offsets.keys() & starts.keys()):
            if starts[tp] > end.offsets[tp]:
                self._report_lower(tp, starts[tp], end.offsets[tp])
                continue
            topic_id = end.topic_ids.get(tp.topic, "")
            ranges.append(
                OffsetRange(tp.topic, tp.partition, starts[tp], end.offsets[tp], topic_id)
            )
        options = self._options
        return split(ranges, options.min_partitions, options.max_records_per_partition)

    def group_id(self, known: str = "") -> str:
        """The group of the query: `kafka.group.id`, the one in the checkpoint, or a new one."""
        return self._options.group_id or known or self._new_group_id

    # What there is to read

    async def _reach(self, start: StreamOffsets) -> _Reach:
        assigned = await self._confirmed(start)
        topic_ids = assigned.topic_ids
        known = self._of_same_topics(start, topic_ids)
        if self._target is None:
            ends = await self._offsets.latest(assigned.partitions)
        else:
            ends = await self._within_target(start, assigned, known)
            topic_ids = {topic: topic_ids[topic] for topic in sorted({tp.topic for tp in ends})}
        self._report_deleted(known, ends)
        if self._fail:  # a restarted query may name more than its checkpoint has
            self._offsets.check_all_exist(assigned)
        new = [tp for tp in ends if tp not in known]
        starts = {tp: known[tp] for tp in ends if tp in known} | await self._starts_of_new(new)
        if self._target is None:
            ends = await self._not_below(start, starts, ends)
        return _Reach(starts, ends, topic_ids)

    async def _within_target(
        self, start: StreamOffsets, assigned: Assigned, known: Offsets
    ) -> dict[TopicPartition, int]:
        """The ends of Trigger.AvailableNow, but none below the position of the query, unless the
        log ends there.

        In a topic that was created again since, the target's offsets mean other records. A
        partition that the target lacks was added since, or the asked broker did not know it yet:
        nothing is read from it now.
        """
        assert self._target is not None
        target = self._target
        same = dict(assigned.topic_ids.items() & target.topic_ids.items())
        aimed = {tp: end for tp, end in target.offsets.items() if tp.topic in same}
        found = {
            tp: max(aimed.get(tp, 0), known.get(tp, 0))
            for tp in assigned.partitions
            if tp in aimed or tp in known
        }
        lower = {tp: known[tp] for tp in found if tp in aimed and aimed[tp] < known.get(tp, 0)}
        return found | await self._still_lower(start, lower)

    async def _still_lower(
        self, start: StreamOffsets, positions: Offsets
    ) -> dict[TopicPartition, int]:
        """The ends of the logs that have lost records below these positions; reports them.

        Trigger.AvailableNow ends the query when there is nothing to read, so what `_not_below`
        leaves to the next batches is waited for here.
        """
        lost: dict[TopicPartition, int] = {}
        while waiting := [tp for tp in positions if tp not in lost]:
            ends = await self._offsets.latest(waiting)
            lost |= await self._lost(start, positions, ends)
            if all(tp in lost or ends[tp] >= positions[tp] for tp in waiting):
                break
            await asyncio.sleep(_PAUSE_SECONDS)
        return lost

    async def _confirmed(self, start: StreamOffsets) -> Assigned:
        """What exists; asked again if `start` has more than that, as a broker's view may lag."""
        for attempt in range(_CONFIRMATIONS):
            if attempt:
                await asyncio.sleep(_PAUSE_SECONDS)
            assigned = await self._offsets.existing(start.topic_ids)
            if not _may_lag(assigned, start):
                break
        return assigned

    def _of_same_topics(
        self, start: StreamOffsets, topic_ids: Mapping[str, str]
    ) -> dict[TopicPartition, int]:
        """The offsets of `start` in topics that are still the same; reports the others."""
        again = sorted(
            topic
            for topic, topic_id in start.topic_ids.items()
            if topic in topic_ids and topic_ids[topic] != topic_id
        )
        for topic in again:
            report_data_loss(
                self._fail,
                "PARTITIONS_DELETED",
                f"topic {topic!r} was deleted and created again: its id was"
                f" {start.topic_ids[topic]} and is {topic_ids[topic]}, and the offsets in the"
                " checkpoint mean other records (otherwise the new topic is read from its start)",
            )
        return {tp: offset for tp, offset in start.offsets.items() if tp.topic not in again}

    async def _existing(self, new: Sequence[TopicPartition]) -> Sequence[TopicPartition]:
        """Those that still exist; reports the others. A batch that is planned again may be old."""
        if not new:
            return new
        existing = await self._offsets.existing({tp.topic for tp in new})
        self._report_deleted(new, existing.partitions)
        return [tp for tp in new if tp in existing.partitions]

    def _report_deleted(
        self, known: Iterable[TopicPartition], ends: Container[TopicPartition]
    ) -> None:
        deleted = sorted(tp for tp in known if tp not in ends)
        if deleted:
            names = ", ".join(map(str, deleted))
            reason = f"partitions {names} have been deleted, or are no longer subscribed to"
            report_data_loss(self._fail, "PARTITIONS_DELETED", reason)

    async def _starts_of_new(self, new: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Partitions added during a query are read from their first offset."""
        starts = await self._offsets.earliest(new)
        for tp, offset in starts.items():
            if offset:
                report_data_loss(
                    self._fail,
                    "ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO",
                    f"added partition {tp} starts from {offset} instead of 0",
                )
        return starts

    async def _not_below(
        self, start: StreamOffsets, starts: Offsets, ends: Offsets
    ) -> dict[TopicPartition, int]:
        """The ends, but none below its start, unless records are lost: that is reported."""
        found = {tp: max(end, starts[tp]) for tp, end in ends.items()}
        return found | await self._lost(start, starts, ends)

    async def _lost(
        self, start: StreamOffsets, positions: Offsets, ends: Offsets
    ) -> dict[TopicPartition, int]:
        """The ends of the logs that have lost records below these positions; reports them."""
        now = time.monotonic()
        is_loss = self._lower_ends.is_loss
        lost = {tp: end for tp, end in ends.items() if is_loss(tp, positions[tp], end, now)}
        if lost:  # an answer about a topic that has just been created again is another matter
            self._of_same_topics(start, (await self._confirmed(start)).topic_ids)
        for tp, end in lost.items():
            self._report_lower(tp, positions[tp], end)
        return lost

    def _report_lower(self, tp: TopicPartition, before: int, after: int) -> None:
        reason = f"partition {tp} offset was changed from {before} to {after}"
        report_data_loss(self._fail, "PARTITION_OFFSET_CHANGED", reason)

    # How much of it

    def _admitted(self, reach: _Reach) -> Offsets | None:
        """Where the batch ends under the limits of the options; None if it is held back."""
        least, most = self._options.min_offsets_per_trigger, self._options.max_offsets_per_trigger
        # Trigger.AvailableNow reads a given amount and ends: it must not wait for more.
        if least is not None and self._target is None:
            count = available(reach.starts, reach.ends)
            if self._delay.holds_back(count, _now_ms()):
                return None
        return reach.ends if most is None else share_out(most, reach.starts, reach.ends)

    def _check_target(self, start: StreamOffsets, end: StreamOffsets) -> None:
        assert self._target is not None
        target, begun = self._target.offsets, start.offsets
        added = end.offsets.keys() - target.keys()
        added = {tp for tp in added if end.offsets[tp] > begun.get(tp, 0)}
        if self._fail and added:
            extra = sorted(map(str, added))
            raise PlanError(
                "[MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED] the batch reads"
                f" {', '.join(extra)}, which did not exist when Trigger.AvailableNow began"
            )


def _now_ms() -> float:
    return time.monotonic() * 1000


def _may_lag(assigned: Assigned, start: StreamOffsets) -> bool:
    """Whether a topic has another id than in `start`, or fewer partitions.

    A topic that does not exist is not asked for again: the client has waited for it already.
    """
    topic_ids, existing = assigned.topic_ids, set(assigned.partitions)
    other_id = any(topic_ids.get(topic, known) != known for topic, known in start.topic_ids.items())
    return other_id or any(tp.topic in topic_ids and tp not in existing for tp in start.offsets)
