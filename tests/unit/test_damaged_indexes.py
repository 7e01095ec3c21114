"""A changed bit in the offset index of a sealed segment: no lookup passes the records asked for.

An index has no checksum, so an entry counts only where its batch is.
"""

from pathlib import Path

import pytest
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_simulator.disk import MemoryDisk

from tests.support.log_world import FOLDER, LogWorld, values_in

RECORDS = 12
INDEX = f"{FOLDER}/{0:020d}.index"
ENTRY_BYTES = 8
BITS = [(byte, bit) for byte in range(ENTRY_BYTES) for bit in range(8)]


def written(world: LogWorld) -> UnifiedLog:
    """Write a sealed segment of batches of different sizes, each with an index entry."""
    log = world.open(index_interval_bytes=1)
    for number in range(RECORDS):
        world.append(log, b"%d" % number + b"-" * (17 * (number % 3)))
    log.roll()
    world.append(log, b"next")
    log.flush()
    return log


def sealed() -> tuple[LogWorld, MemoryDisk, UnifiedLog]:
    disk = MemoryDisk()
    world = LogWorld(disk=disk)
    return world, disk, written(world)


def wrong(log: UnifiedLog) -> list[tuple[int, bytes]]:
    """Offsets, and what a read there returns first if that is another record. From the end, so that
    no place is known from the read before."""
    found = []
    for offset in reversed(range(RECORDS)):
        (value, *_) = values_in(log.read(offset, 1, log.log_end_offset))
        assert value is not None
        if int(value.rstrip(b"-")) != offset:
            found.append((offset, value))
    return found


@pytest.mark.parametrize("entry", [0, 4, RECORDS - 2])
def test_each_offset_is_found_whatever_bit_of_an_entry_has_changed(entry: int) -> None:
    _, disk, log = sealed()
    assert len(disk.read_file(INDEX)) == (RECORDS - 1) * ENTRY_BYTES
    for byte, bit in BITS:
        place = entry * ENTRY_BYTES + byte
        disk.flip(INDEX, place, bit)
        assert wrong(log) == []
        disk.flip(INDEX, place, bit)


@pytest.mark.parametrize("entry", [0, RECORDS - 2])
def test_nor_after_the_next_start(entry: int) -> None:
    for byte, bit in BITS:
        world, disk, log = sealed()
        disk.flip(INDEX, entry * ENTRY_BYTES + byte, bit)
        log = world.reopen_clean(log)
        assert wrong(log) == []


def test_a_position_below_the_file_is_no_failure_of_the_disk(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    world = LogWorld(disk=PosixDisk(), folder=str(folder))
    log = written(world)
    index = folder / f"{0:020d}.index"
    data = bytearray(index.read_bytes())
    data[4] ^= 1 << 7
    index.write_bytes(data)
    assert wrong(log) == []
