"""Which neighbouring segments compaction merges into one."""

from collections.abc import Sequence

import pytest
from barnabas_broker.config.log_config import LogConfig
from barnabas_broker.log.compaction.grouping import SegmentSizes, groups

FAR = 2**31 - 1
CONFIG = LogConfig(segment_bytes=100, segment_index_bytes=50)


@pytest.mark.parametrize(
    ("segments", "runs"),
    [
        ([(0, 10, 50, 0), (10, 20, 50, 0), (20, 30, 1, 0)], [2, 1]),  # segment.bytes
        ([(0, 10, 1, 25), (10, 20, 1, 25), (20, 30, 1, 1)], [2, 1]),  # segment.index.bytes
        ([(0, 10, 1, 0), (10, FAR + 1, 1, 0)], [2]),  # the last offset is the largest of an index
        ([(0, 10, 1, 0), (10, FAR + 2, 1, 0)], [1, 1]),
    ],
)
def test_a_run_stays_within_what_one_segment_may_hold(
    segments: Sequence[tuple[int, int, int, int]], runs: list[int]
) -> None:
    sizes = [SegmentSizes(*segment, segment[3]) for segment in segments]
    found = groups(sizes, CONFIG)
    assert [len(run) for run in found] == runs
    assert [segment for run in found for segment in run] == sizes
