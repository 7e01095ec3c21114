"""Reading: whole batches, from the one with the offset on, below the requested end."""

import pytest
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.errors import CorruptMessageError, OffsetOutOfRangeError
from barnabas_common.record.batch import batches
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.log_world import NOW, LogWorld, produced, values_in


def log_of(*sizes: int, **config: object) -> UnifiedLog:
    """Return a log of batches with `sizes` records; the records' values are their offsets."""
    log = LogWorld().open(**config)
    for size in sizes:
        end = log.log_end_offset
        log.append_as_leader(produced(*(b"%d" % n for n in range(end, end + size))), 0, NOW)
    return log


def offsets(data: bytes) -> list[int]:
    return [int(value or b"") for value in values_in(data)]


def test_the_batch_that_holds_the_offset_comes_whole() -> None:
    log = log_of(3, 2, 4)
    assert offsets(log.read(4, 1, 9)) == [3, 4]
    assert offsets(log.read(1, 10_000, 9)) == list(range(9))


def test_only_what_lies_below_the_end_is_read() -> None:
    log = log_of(3, 2, 4)
    assert offsets(log.read(0, 10_000, 5)) == [0, 1, 2, 3, 4]
    assert offsets(log.read(0, 10_000, 4)) == [0, 1, 2]
    assert log.read(0, 10_000, 2) == b""
    assert log.read(5, 10_000, 5) == b""
    assert log.read(7, 10_000, 5) == b""


def test_a_batch_behind_a_gap_is_read_whole_or_not_at_all() -> None:
    """A compacted log has gaps, and the end that a reader may see may lie within a batch."""
    log = log_of(2)
    behind = log_of(5, 3).read(5, 10_000, 8)
    log.append_as_follower(behind)
    assert offsets(log.read(0, 10_000, 8)) == [0, 1, 5, 6, 7]
    for end in (5, 6, 7):
        assert offsets(log.read(0, 10_000, end)) == [0, 1]
        assert log.read(2, 10_000, end) == b""


def test_as_many_whole_batches_as_fit() -> None:
    log = log_of(1, 1, 1)
    size = log.size_bytes // 3
    assert offsets(log.read(0, 2 * size, 3)) == [0, 1]
    assert offsets(log.read(0, 3 * size - 1, 3)) == [0, 1]
    assert offsets(log.read(0, size - 1, 3)) == [0]
    assert offsets(log.read(0, 0, 3)) == [0]
    assert log.read(0, size - 1, 3, min_one_batch=False) == b""
    assert log.read(0, 0, 3, min_one_batch=False) == b""
    assert offsets(log.read(0, size, 3, min_one_batch=False)) == [0]


def test_offsets_that_are_not_in_the_log() -> None:
    log = log_of(3, 2)
    assert log.read(5, 100, 5) == b""
    for offset in (-1, 6):
        with pytest.raises(OffsetOutOfRangeError):
            log.read(offset, 100, 5)
    log.update_high_watermark(5)
    log.maybe_increment_log_start_offset(3)
    with pytest.raises(OffsetOutOfRangeError):
        log.read(2, 100, 5)


def test_a_read_ends_with_its_segment_and_the_next_begins_there() -> None:
    log = log_of(2, 2)
    log.roll()
    log.append_as_leader(produced(b"4"), 0, NOW)
    assert offsets(log.read(0, 10_000, 5)) == [0, 1, 2, 3]
    assert offsets(log.read(4, 10_000, 5)) == [4]
    assert offsets(log.read(3, 10_000, 4)) == [2, 3]


def test_a_reader_at_the_tail_sees_what_is_appended_and_rolled() -> None:
    log = log_of(segment_bytes=1000, index_interval_bytes=100)
    position, seen = 0, []
    for number in range(100):
        log.append_as_leader(produced(b"%d" % number), 0, NOW)
        if number % 3 == 0:
            piece = log.read(position, 10_000, log.log_end_offset)
            seen += offsets(piece)
            position = [h.next_offset for _, h in batches(piece)][-1]
    assert seen == list(range(position))
    assert len(log.segment_offsets) > 5


def test_what_was_cut_is_not_found_where_a_reader_remembers_it() -> None:
    log = log_of(2, 2, 2)
    assert offsets(log.read(0, log.size_bytes // 3, 6)) == [0, 1]
    log.truncate_to(2)
    log.append_as_leader(produced(b"two", b"three"), 1, NOW)
    assert values_in(log.read(2, 10_000, 4)) == [b"two", b"three"]


def test_bytes_that_are_no_batches_are_reported() -> None:
    world = LogWorld()
    log = world.open()
    log.append_as_leader(produced(b"a"), 0, NOW)
    log.append_as_leader(produced(b"b"), 0, NOW)
    file = world.disk.open(f"{world.folder}/{0:020d}.log")
    data = bytearray(file.read(0, 1000))
    data[8:12] = bytes(4)
    file.truncate(0)
    file.append([data])
    with pytest.raises(CorruptMessageError):
        log.read(1, 1000, 2)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=25),
    st.sampled_from([0, 80, 300]),
    st.sampled_from([150, 400, 100_000]),
    st.data(),
)
def test_any_read_agrees_with_the_list_of_batches(
    sizes: list[int], interval: int, segment_bytes: int, data: st.DataObject
) -> None:
    log = log_of(*sizes, index_interval_bytes=interval, segment_bytes=segment_bytes)
    bounds, start = [], 0
    for size in sizes:
        bounds.append((start, start + size))
        start += size
    for _ in range(10):
        offset = data.draw(st.integers(0, start - 1))
        end = data.draw(st.integers(0, start))
        limit = data.draw(st.integers(0, 600))
        got = log.read(offset, limit, end)
        found = [(h.base_offset, h.next_offset) for _, h in batches(got)]
        expected = [(low, high) for low, high in bounds if high > offset and high <= end]
        if offset >= end:
            expected = []
        assert found == expected[: len(found)]
        assert sum(h.size for _, h in batches(got)) == len(got)
        if expected and expected[0][0] <= offset:
            assert found, "at least one batch"
            assert len(got) <= limit or len(found) == 1
