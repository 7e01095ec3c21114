"""Which neighbouring segments become one (Kafka's `groupSegmentsBySize`). A pure decision.

Compaction leaves segments small. Merged, they stay few.
"""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas_broker.config.log_config import LogConfig

_MAX_RELATIVE_OFFSET = 2**31 - 1


class SegmentSizes(NamedTuple):
    """`end_offset` is the base of the next segment. Sizes in bytes."""

    base_offset: int
    end_offset: int
    size: int
    offset_index_size: int
    time_index_size: int


def groups(segments: Sequence[SegmentSizes], config: LogConfig) -> list[list[SegmentSizes]]:
    """The segments in runs; each stays within `segment.bytes`, `segment.index.bytes` and the
    offsets that an index can hold."""
    runs: list[list[SegmentSizes]] = []
    for segment in segments:
        if runs and _fits(runs[-1], segment, config):
            runs[-1].append(segment)
        else:
            runs.append([segment])
    return runs


def _fits(run: Sequence[SegmentSizes], segment: SegmentSizes, config: LogConfig) -> bool:
    together = [*run, segment]
    return (
        sum(one.size for one in together) <= config.segment_bytes
        and sum(one.offset_index_size for one in together) <= config.segment_index_bytes
        and sum(one.time_index_size for one in together) <= config.segment_index_bytes
        and segment.end_offset - 1 - run[0].base_offset <= _MAX_RELATIVE_OFFSET
    )
