"""Which log is compacted next, and from where to where (Kafka's `LogCleanerManager`).

    log start           first dirty offset        first uncleanable offset      log end
        |  compacted already  |   to be compacted now   |   recent, active segment  |

Pure decisions on facts about segments.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from barnabas_broker.config.log_config import LogConfig
from barnabas_broker.log.retention import SegmentFacts

T = TypeVar("T")


class LogFacts(NamedTuple):
    """`clean_offset` is the checkpointed one, None without. `stable_offset` is the end of what is
    committed and durable: nothing above may be compacted. `first_timestamps` are those of the
    segments' first batches, -1 without."""

    segments: Sequence[SegmentFacts]
    first_timestamps: Sequence[int]
    log_start_offset: int
    log_end_offset: int
    stable_offset: int
    clean_offset: int | None


class Cleanable(NamedTuple):
    """`wrong_checkpoint` says why the checkpointed offset was not used, if so. `is_overdue`: dirty
    for longer than `max.compaction.lag.ms`."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    is_overdue: bool
    wrong_checkpoint: str

    @property
    def dirty_ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0


def is_compacted(config: LogConfig) -> bool:
    return "compact" in config.cleanup_policy.split(",")


def cleanable(log: LogFacts, config: LogConfig, now_ms: int) -> Cleanable:
    """What may be compacted of a log now."""
    first_dirty, wrong = _first_dirty(log, config)
    uncleanable = _first_uncleanable(log, first_dirty, config, now_ms)
    start = min(first_dirty, uncleanable)
    clean = sum(one.size for one in log.segments if one.end_offset <= start)
    to_clean = sum(
        one.size for one in log.segments if one.end_offset > start and one.base_offset < uncleanable
    )
    overdue = _is_overdue(log, first_dirty, config, now_ms)
    return Cleanable(first_dirty, uncleanable, clean, to_clean, overdue, wrong)


def filthiest(
    candidates: Mapping[T, tuple[Cleanable, LogConfig]], failed_at: Mapping[T, float]
) -> T | None:
    """The log with the highest dirty ratio among those that are due, or None.

    Those whose last pass did not come to its end, at the time given, follow the others: the one
    that has waited longest first. A log that fails again and again must not keep the others dirty.
    """
    due = {
        name: found.dirty_ratio
        for name, (found, config) in candidates.items()
        if found.cleanable_bytes > 0
        and (found.is_overdue or found.dirty_ratio > config.min_cleanable_dirty_ratio)
    }

    def order(name: T) -> tuple[bool, float, float]:
        return name in failed_at, failed_at.get(name, 0.0), -due[name]

    return min(due, key=order, default=None)


def _first_dirty(log: LogFacts, config: LogConfig) -> tuple[int, str]:
    start = max(log.log_start_offset, log.segments[0].base_offset)
    offset = log.clean_offset
    if offset is None:
        return start, ""
    if offset > log.log_end_offset:
        return start, f"clean offset {offset} is above the log end offset {log.log_end_offset}"
    if offset < start:
        # Retention of a log with both policies leaves the checkpoint behind; so does any deletion
        # of records. Neither is a fault.
        return start, ""
    return offset, ""


def _first_uncleanable(log: LogFacts, first_dirty: int, config: LogConfig, now_ms: int) -> int:
    """The base of the segment that holds the first offset to leave alone."""
    limits = [log.stable_offset, log.segments[-1].base_offset]
    if config.min_compaction_lag_ms > 0:
        newest = now_ms - config.min_compaction_lag_ms
        limits += [
            one.base_offset
            for one in log.segments[:-1]
            if one.end_offset > first_dirty and one.largest_timestamp > newest
        ]
    limit = min(limits)
    return max(
        (one.base_offset for one in log.segments if one.base_offset <= limit),
        default=log.segments[0].base_offset,
    )


def _is_overdue(log: LogFacts, first_dirty: int, config: LogConfig, now_ms: int) -> bool:
    """Whether a dirty segment has been waiting since before now - `max.compaction.lag.ms`."""
    earliest = min(
        (
            timestamp
            for one, timestamp in zip(log.segments[:-1], log.first_timestamps, strict=False)
            if one.end_offset > first_dirty and timestamp > 0
        ),
        default=None,
    )
    return earliest is not None and earliest < now_ms - max(config.max_compaction_lag_ms, 0)
