"""A changed or shortened time index: lookups by time find the first record, and retention deletes
nothing too early.

An index has no checksum, so an entry counts only if its batch has its timestamp.
"""

import pytest
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_simulator.disk import MemoryDisk

from tests.support.log_world import FOLDER, NOW, LogWorld

RECORDS = 8
INDEX = f"{FOLDER}/{0:020d}.timeindex"
ENTRY_BYTES = 12
HOUR = 3_600_000
BITS = [(byte, bit) for byte in range(ENTRY_BYTES) for bit in range(8)]


def sealed() -> tuple[LogWorld, MemoryDisk, UnifiedLog]:
    """Return a log whose first segment has an index entry for each of its batches but the first;
    each is an hour younger than the one before."""
    disk = MemoryDisk()
    world = LogWorld(disk=disk)
    log = world.open(index_interval_bytes=1, retention_ms=20 * HOUR)
    for number in range(RECORDS):
        world.append(log, b"%d" % number, timestamp=NOW + number * HOUR)
    log.roll()
    world.append(log, b"next", timestamp=NOW + RECORDS * HOUR)
    log.flush()
    assert len(disk.read_file(INDEX)) == (RECORDS - 1) * ENTRY_BYTES
    return world, disk, log


def found(log: UnifiedLog) -> list[int | None]:
    """The first offset of each hour."""
    places = [log.offset_for_timestamp(NOW + number * HOUR) for number in range(RECORDS)]
    return [None if place is None else place.offset for place in places]


@pytest.mark.parametrize("entry", [0, 3, RECORDS - 2])
def test_each_time_is_found_whatever_bit_of_an_entry_has_changed(entry: int) -> None:
    _, disk, log = sealed()
    for byte, bit in BITS:
        disk.flip(INDEX, entry * ENTRY_BYTES + byte, bit)
        assert found(log) == list(range(RECORDS))
        disk.flip(INDEX, entry * ENTRY_BYTES + byte, bit)


@pytest.mark.parametrize("entry", [0, RECORDS - 2])
def test_nor_does_a_start_take_over_a_wrong_entry(entry: int) -> None:
    for byte, bit in BITS:
        world, disk, log = sealed()
        disk.flip(INDEX, entry * ENTRY_BYTES + byte, bit)
        log = world.reopen_clean(log)
        assert found(log) == list(range(RECORDS))
        assert log.delete_old_segments(NOW + (RECORDS - 1 + 20) * HOUR) == 0
        assert log.delete_old_segments(NOW + (RECORDS - 1 + 20) * HOUR + 1) == 1


@pytest.mark.parametrize("left", range(RECORDS - 1))
def test_a_shortened_index_deletes_no_record_too_early(left: int) -> None:
    world, disk, log = sealed()
    disk.write_file(INDEX, disk.read_file(INDEX)[: left * ENTRY_BYTES])
    log = world.reopen_clean(log)
    assert found(log) == list(range(RECORDS))
    assert log.delete_old_segments(NOW + (RECORDS - 1 + 20) * HOUR) == 0


def test_timestamps_that_go_back_are_found_with_a_changed_index() -> None:
    """Between two entries there may be batches older than the first."""
    disk = MemoryDisk()
    world = LogWorld(disk=disk)
    log = world.open(index_interval_bytes=150)
    hours = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 12]
    for hour in hours:
        world.append(log, b"v", timestamp=NOW + hour * HOUR)
    log.roll()
    first = [next(n for n, hour in enumerate(hours) if hour >= wanted) for wanted in range(13)]
    for place in range(len(disk.read_file(INDEX))):
        disk.flip(INDEX, place, 1)
        asked = [log.offset_for_timestamp(NOW + wanted * HOUR) for wanted in range(13)]
        assert [one.offset for one in asked if one is not None] == first
        disk.flip(INDEX, place, 1)
