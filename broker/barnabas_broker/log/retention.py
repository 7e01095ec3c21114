"""Which segments a log need not keep. Pure decisions; the log carries them out.

Three passes, in Kafka's order: below the log start offset, over `retention.bytes`, older than
`retention.ms`. The last two are for logs with the cleanup policy `delete`. Each takes segments from
the front and stops at the first one to keep, so that a log never has a gap. Records above the high
watermark are always kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas_broker.config.log_config import LogConfig


class SegmentFacts(NamedTuple):
    """`end_offset` is the next segment's base, or the log end offset.

    `size` is in bytes. `largest_timestamp` (ms) is the largest of the records, or the time of the
    file's last change if the records have none.
    """

    base_offset: int
    end_offset: int
    size: int
    largest_timestamp: int


@dataclass(frozen=True)
class Deletion:
    """Delete the first `count` segments; if these are all of them, the log is rolled first."""

    count: int
    reason: str


def segments_to_delete(
    segments: Sequence[SegmentFacts],
    log_start_offset: int,
    high_watermark: int,
    config: LogConfig,
    now_ms: int,
) -> list[Deletion]:
    """The deletions of the passes; each counts from where the previous one ended."""
    remaining = _may_go(segments, high_watermark)
    passes = [("below the log start offset", _below(segments, log_start_offset))]
    if "delete" in config.cleanup_policy:
        passes += [
            ("over retention.bytes", _oversize(segments, config.retention_bytes)),
            ("older than retention.ms", _older(config.retention_ms, now_ms)),
        ]
    deletions: list[Deletion] = []
    for reason, selects in passes:
        start = sum(deletion.count for deletion in deletions)
        count = _prefix(remaining[start:], selects)
        if count:
            deletions.append(Deletion(count, reason))
    return deletions


def _may_go(segments: Sequence[SegmentFacts], high_watermark: int) -> list[SegmentFacts]:
    """The leading segments that are committed, without an empty active segment."""
    candidates = segments[:-1] if segments and segments[-1].size == 0 else segments
    return list(candidates[: _prefix(candidates, lambda one: one.end_offset <= high_watermark)])


def _below(
    segments: Sequence[SegmentFacts], log_start_offset: int
) -> Callable[[SegmentFacts], bool]:
    active = segments[-1] if segments else None
    return lambda segment: segment is not active and segment.end_offset <= log_start_offset


def _oversize(
    segments: Sequence[SegmentFacts], retention_bytes: int
) -> Callable[[SegmentFacts], bool]:
    """The log never gets smaller than the limit: a segment is deleted if the rest reaches it."""
    total = sum(segment.size for segment in segments)
    excess = total - retention_bytes
    through = {}
    for segment in segments:
        excess -= segment.size
        through[segment.base_offset] = excess
    return lambda segment: retention_bytes >= 0 and through[segment.base_offset] >= 0


def _older(retention_ms: int, now_ms: int) -> Callable[[SegmentFacts], bool]:
    """A segment that compaction has emptied is always old enough: its file has the date of the last
    pass, not the date of its records."""
    return lambda segment: (
        retention_ms >= 0
        and (segment.size == 0 or now_ms - segment.largest_timestamp > retention_ms)
    )


def _prefix(segments: Sequence[SegmentFacts], selects: Callable[[SegmentFacts], bool]) -> int:
    for count, segment in enumerate(segments):
        if not selects(segment):
            return count
    return len(segments)
