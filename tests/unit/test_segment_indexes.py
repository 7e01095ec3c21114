"""The two index files, byte for byte by Kafka's rules, and lookups in them."""

import struct
from collections.abc import Sequence

import pytest
from barnabas_broker.log.index.offset_index import OffsetIndex
from barnabas_broker.log.index.time_index import TimeIndex
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.record.batch import batches
from barnabas_simulator.disk import MemoryDisk
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.log_world import NOW, LogWorld, produced, read_all

OFFSET_ENTRY, TIME_ENTRY = struct.Struct(">ii"), struct.Struct(">qi")


def expected_indexes(data: bytes, base: int, interval: int) -> tuple[bytes, bytes]:
    """Return both indexes by the rules of Kafka's format documentation, in the simplest code."""
    offsets, times = b"", b""
    since, largest, last_noted = 0, (-1, base), -1
    for position, header in batches(data):
        if header.max_timestamp > largest[0]:
            largest = (header.max_timestamp, header.last_offset)
        if since > interval:
            offsets += OFFSET_ENTRY.pack(header.last_offset - base, position)
            if largest[0] > last_noted:
                times += TIME_ENTRY.pack(largest[0], largest[1] - base)
                last_noted = largest[0]
            since = 0
        since += header.size
    if largest[0] > last_noted:
        times += TIME_ENTRY.pack(largest[0], largest[1] - base)
    return offsets, times


def check_files(world: LogWorld, interval: int) -> None:
    for name in world.names():
        if name.endswith(".log"):
            stem = f"{world.folder}/{name.removesuffix('.log')}"
            offsets, times = expected_indexes(
                world.disk.read_file(f"{stem}.log"), int(name.removesuffix(".log")), interval
            )
            assert world.disk.read_file(f"{stem}.index") == offsets
            assert world.disk.read_file(f"{stem}.timeindex") == times


batches_to_write = st.lists(
    st.tuples(st.integers(0, 120), st.integers(1, 3), st.integers(0, 40)), min_size=1, max_size=30
)


def write(log: UnifiedLog, specification: Sequence[tuple[int, int, int]]) -> None:
    for size, count, time in specification:
        values = [b"x" * size] * count
        log.append_as_leader(produced(*values, timestamp=NOW + time, step_ms=1), 0, NOW)


@settings(max_examples=60, deadline=None)
@given(batches_to_write, st.sampled_from([0, 100, 256]), st.sampled_from([1100, 1_000_000]))
def test_the_files_are_what_the_rules_say(
    specification: list[tuple[int, int, int]], interval: int, segment_bytes: int
) -> None:
    world = LogWorld()
    log = world.open(index_interval_bytes=interval, segment_bytes=segment_bytes)
    write(log, specification)
    data = read_all(log)
    log.flush()
    log.close()
    check_files(world, interval)
    rebuilt = world.open()  # no clean shutdown: everything is read, and the indexes are rebuilt
    assert read_all(rebuilt) == data
    rebuilt.flush()
    rebuilt.close()
    check_files(world, interval)


@settings(max_examples=60, deadline=None)
@given(batches_to_write, st.integers(NOW - 5, NOW + 50), st.booleans())
def test_a_timestamp_leads_to_the_first_record_that_is_not_older(
    specification: list[tuple[int, int, int]], wanted: int, reopen: bool
) -> None:
    world = LogWorld()
    log = world.open(index_interval_bytes=100, segment_bytes=1100)
    write(log, specification)
    if reopen:
        log = world.reopen_clean(log)
    times = [NOW + time + n for _, count, time in specification for n in range(count)]
    later = [(time, offset, 0) for offset, time in enumerate(times) if time >= wanted]
    assert log.offset_for_timestamp(wanted) == (later[0] if later else None)
    assert log.offset_of_max_timestamp() == (max(times), times.index(max(times)), 0)


def test_timestamps_below_the_log_start_are_not_found() -> None:
    world = LogWorld()
    log = world.open()
    log.append_as_leader(produced(b"a", b"b", b"c", step_ms=10), 3, NOW)
    log.update_high_watermark(3)
    log.maybe_increment_log_start_offset(1)
    assert log.offset_for_timestamp(NOW) == (NOW + 10, 1, 3)


def test_log_append_time_is_found_too() -> None:
    log = LogWorld().open(message_timestamp_type="LogAppendTime")
    log.append_as_leader(produced(b"a", b"b", timestamp=7), 0, NOW)
    log.append_as_leader(produced(b"c", timestamp=7), 0, NOW + 9)
    assert log.offset_for_timestamp(8) == (NOW, 0, 0)
    assert log.offset_for_timestamp(NOW + 1) == (NOW + 9, 2, 0)
    assert log.offset_for_timestamp(NOW + 10) is None


def test_compressed_batches_are_opened_for_a_lookup() -> None:
    log = LogWorld().open()
    log.append_as_leader(produced(b"a", b"b", b"c", step_ms=10, compression="zstd"), 0, NOW)
    assert log.offset_for_timestamp(NOW + 11) == (NOW + 20, 2, 0)


def test_an_empty_log_knows_no_time() -> None:
    log = LogWorld().open()
    assert log.offset_for_timestamp(0) is None
    assert log.offset_of_max_timestamp() is None


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/d")
    return disk


@pytest.mark.parametrize("sealed", [False, True])
def test_lookups_in_an_offset_index(disk: MemoryDisk, sealed: bool) -> None:
    index = OffsetIndex(disk, "/d/i", 100, 80)
    index.create()
    assert index.lookup(500) == (100, 0)
    for offset, position in ((110, 50), (120, 70), (130, 90)):
        index.add(offset, position)
    if sealed:
        index.seal()
    found = [index.lookup(offset).position for offset in (100, 109, 110, 119, 120, 129, 130, 999)]
    assert found == [0, 0, 50, 50, 70, 70, 90, 90]
    assert index.last_entry() == (130, 90)


def test_an_index_that_is_cut_and_grown_again_is_saved_as_it_is(disk: MemoryDisk) -> None:
    index = OffsetIndex(disk, "/d/i", 0, 80)
    index.create()
    for offset in (1, 2, 3):
        index.add(offset, offset * 10)
    index.seal()
    index.unseal()
    index.truncate_to(2)
    index.add(5, 20)
    index.add(6, 30)
    index.save()
    assert disk.read_file("/d/i") == b"".join(
        OFFSET_ENTRY.pack(*entry) for entry in ((1, 10), (5, 20), (6, 30))
    )


def test_a_full_index_takes_no_more_but_the_last_timestamp(disk: MemoryDisk) -> None:
    index = TimeIndex(disk, "/d/t", 0, 36)
    index.create()
    index.add(1, 1)
    index.add(2, 2)
    assert index.is_full
    index.add(3, 3)
    assert index.last_entry() == (2, 2)
    index.add(4, 4, even_if_full=True)
    assert index.last_entry() == (4, 4)
    index.add(4, 9, even_if_full=True)
    assert len(index) == 3


def test_a_full_index_makes_the_log_roll() -> None:
    log = LogWorld().open(index_interval_bytes=0, segment_index_bytes=24)
    for _ in range(10):
        log.append_as_leader(produced(b"a"), 0, NOW)
    assert log.segment_offsets == [0, 2, 4, 6, 8]
