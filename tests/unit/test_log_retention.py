"""When a log starts a new segment, and which old ones it deletes."""

from dataclasses import replace

import pytest
from barnabas_broker.config import LogConfig
from barnabas_broker.log.retention import Deletion, SegmentFacts, segments_to_delete
from barnabas_broker.log.segment.roll import ActiveSegment, Incoming, reason_to_roll
from barnabas_broker.log.unified_log import UnifiedLog
from hypothesis import given
from hypothesis import strategies as st

from tests.support.log_world import NOW, LogWorld, produced

CONFIG = LogConfig(segment_bytes=1000, segment_ms=60_000, retention_ms=-1)
SEGMENT = ActiveSegment(100, 500, NOW, NOW, 0, False)
INCOMING = Incoming(100, 200, NOW)


# ---- rolling


@pytest.mark.parametrize(
    ("segment", "incoming", "rolls"),
    [
        (SEGMENT, INCOMING, False),
        (SEGMENT, INCOMING._replace(size=500), False),
        (SEGMENT, INCOMING._replace(size=501), True),
        (SEGMENT, INCOMING._replace(max_timestamp=NOW + 60_000), False),
        (SEGMENT, INCOMING._replace(max_timestamp=NOW + 60_001), True),
        (SEGMENT._replace(jitter_ms=1000), INCOMING._replace(max_timestamp=NOW + 59_001), True),
        (SEGMENT._replace(indexes_full=True), INCOMING, True),
        (SEGMENT, INCOMING._replace(last_offset=100 + 2**31 - 1), False),
        (SEGMENT, INCOMING._replace(last_offset=100 + 2**31), True),
        (SEGMENT._replace(first_timestamp=-1, created_ms=NOW - 60_001), INCOMING, True),
        (SEGMENT._replace(size=0), INCOMING._replace(size=5000), False),
        (SEGMENT._replace(size=0, indexes_full=True), INCOMING, False),
    ],
)
def test_when_to_roll(segment: ActiveSegment, incoming: Incoming, rolls: bool) -> None:
    assert (reason_to_roll(segment, incoming, CONFIG, NOW) is not None) == rolls


@pytest.mark.parametrize(("policy", "rolls"), [("compact", True), ("delete", False)])
def test_a_compacted_log_rolls_in_time_for_its_compaction(policy: str, rolls: bool) -> None:
    """Only sealed segments are compacted, and `max.compaction.lag.ms` must hold."""
    config = replace(CONFIG, cleanup_policy=policy, max_compaction_lag_ms=1000)
    incoming = INCOMING._replace(max_timestamp=NOW + 1001)
    assert (reason_to_roll(SEGMENT, incoming, config, NOW) is not None) == rolls


def test_segments_stay_within_their_size_and_are_sealed() -> None:
    world = LogWorld()
    log = world.open(segment_bytes=300, index_interval_bytes=0)
    for _ in range(12):
        world.append(log, b"x" * 20)
    size = log.size_bytes // 12
    per_segment = 300 // size
    assert log.segment_offsets == list(range(0, 12, per_segment))
    assert len(world.disk.read_file(f"{world.folder}/{0:020d}.index")) == 8 * (per_segment - 1)
    assert len(world.disk.read_file(f"{world.folder}/{0:020d}.timeindex")) == 12


def test_a_segment_as_old_as_its_records_say_is_left() -> None:
    world = LogWorld()
    log = world.open(segment_ms=1000)
    for timestamp in (NOW, NOW + 1000, NOW + 1001, NOW + 1500):
        world.append(log, b"a", timestamp=timestamp)
    assert log.segment_offsets == [0, 2]
    assert world.reopen_clean(log).segment_offsets == [0, 2]


def test_the_jitter_spreads_the_rolls() -> None:
    ages = set()
    for seed in range(10):
        world = LogWorld()
        world.clock.now_ms += seed
        log = world.open(segment_ms=1000, segment_jitter_ms=900)
        world.append(log, b"a")
        age = 0
        while log.segment_offsets == [0]:
            age += 10
            world.append(log, b"a", timestamp=NOW + age)
        assert 100 <= age <= 1010
        ages.add(age)


def test_asked_to_roll_an_empty_segment_the_log_does_not() -> None:
    log = LogWorld().open()
    log.roll()
    assert log.segment_offsets == [0]


# ---- retention, as a decision


def facts(*sizes: int, ages: tuple[int, ...] | None = None) -> list[SegmentFacts]:
    """Return the facts of segments of ten offsets each."""
    return [
        SegmentFacts(n * 10, n * 10 + 10, size, NOW - (ages[n] if ages else 0))
        for n, size in enumerate(sizes)
    ]


def test_nothing_goes_without_a_limit() -> None:
    segments = facts(100, 100, ages=(10**12, 10**12))
    assert segments_to_delete(segments, 0, 20, CONFIG, NOW) == []


@pytest.mark.parametrize(("limit", "count"), [(300, 0), (201, 0), (200, 1), (99, 2), (0, 3)])
def test_by_size_the_rest_still_fills_the_limit(limit: int, count: int) -> None:
    config = replace(CONFIG, retention_bytes=limit)
    deletions = segments_to_delete(facts(100, 100, 100), 0, 30, config, NOW)
    assert sum(deletion.count for deletion in deletions) == count


def test_by_time_it_stops_at_the_first_that_is_young() -> None:
    config = replace(CONFIG, retention_ms=1000)
    segments = facts(1, 1, 1, ages=(1001, 1000, 5000))
    assert segments_to_delete(segments, 0, 30, config, NOW) == [
        Deletion(1, "older than retention.ms")
    ]


def test_what_is_not_committed_stays() -> None:
    config = replace(CONFIG, retention_ms=0)
    segments = facts(1, 1, 1, ages=(9, 9, 9))
    assert [d.count for d in segments_to_delete(segments, 0, 19, config, NOW)] == [1]
    assert [d.count for d in segments_to_delete(segments, 0, 20, config, NOW)] == [2]
    assert [d.count for d in segments_to_delete(segments, 0, 30, config, NOW)] == [3]


def test_below_the_log_start_all_but_the_active_go() -> None:
    assert segments_to_delete(facts(1, 1, 1), 20, 30, CONFIG, NOW) == [
        Deletion(2, "below the log start offset")
    ]
    assert [d.count for d in segments_to_delete(facts(1, 1, 1), 30, 30, CONFIG, NOW)] == [2]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 100)), min_size=1, max_size=8),
    st.integers(0, 80),
    st.integers(-1, 200),
    st.integers(-1, 100),
)
def test_no_hole_and_no_more_than_allowed(
    shapes: list[tuple[int, int]], high_watermark: int, retention_bytes: int, retention_ms: int
) -> None:
    sizes = [size + 1 for size, _ in shapes[:-1]] + [shapes[-1][0]]
    segments = facts(*sizes, ages=tuple(age for _, age in shapes))
    config = replace(CONFIG, retention_bytes=retention_bytes, retention_ms=retention_ms)
    deletions = segments_to_delete(segments, 0, high_watermark, config, NOW)
    count = sum(deletion.count for deletion in deletions)
    assert all(segment.end_offset <= high_watermark for segment in segments[:count])
    assert count < len(segments) or segments[-1].size > 0
    for deletion in deletions:
        if deletion.reason == "over retention.bytes":
            assert sum(sizes) - sum(sizes[: deletion.count]) >= retention_bytes >= 0


# ---- retention, carried out


def aged_log(world: LogWorld, **config: object) -> UnifiedLog:
    log = world.open(segment_bytes=100, **config)
    for number in range(5):
        world.append(log, b"x" * 20, timestamp=NOW - 5000 + number * 1000)
    return log


def test_old_segments_and_their_files_go() -> None:
    world = LogWorld()
    log = aged_log(world, retention_ms=3000)
    assert log.delete_old_segments(NOW) == 2
    assert log.segment_offsets == [2, 3, 4] and log.log_start_offset == 2
    assert not [name for name in world.names() if name.startswith(f"{1:020d}")]
    assert world.reopen_clean(log).log_start_offset == 2
    assert world.open().leader_epochs.entries == [(0, 2)]


def test_a_log_of_which_all_is_old_begins_a_new_segment() -> None:
    world = LogWorld()
    log = aged_log(world, retention_ms=0)
    assert log.delete_old_segments(NOW) == 5
    assert log.segment_offsets == [5] and log.size_bytes == 0
    assert (log.log_start_offset, log.log_end_offset) == (5, 5)
    assert log.delete_old_segments(NOW + 10**9) == 0
    log.append_as_leader(produced(b"next"), 0, NOW)
    assert log.log_end_offset == 6


def test_records_without_a_time_are_as_old_as_their_file() -> None:
    world = LogWorld()
    log = world.open(segment_bytes=100, retention_ms=1000)
    log.append_as_leader(produced(b"x" * 20, timestamp=NOW), 0, NOW)
    assert log.delete_old_segments(NOW) == 0


def test_deleted_segments_cannot_be_read_any_more_and_later_ones_can() -> None:
    world = LogWorld()
    log = aged_log(world, retention_bytes=250)
    first = log.read(0, 10, 5)
    assert first
    deleted = log.delete_old_segments(NOW)
    assert deleted > 0
    assert log.read(log.log_start_offset, 10, 5)
    assert log.size_bytes >= 250
