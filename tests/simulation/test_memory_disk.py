"""The simulator's disk loses what a real one may lose, and nothing else."""

import errno

import pytest
from barnabas_broker.disk.disk import FlushFailed
from barnabas_simulator.disk import SECTOR, MemoryDisk

SEEDS = range(600)


def test_a_killed_process_loses_nothing_it_wrote() -> None:
    disk = MemoryDisk()
    disk.make_directory("/d")
    disk.open("/d/a", create=True).append([b"written"])
    disk.lock("/d/.lock")
    disk.crash(keep_unflushed=True)
    assert disk.read_file("/d/a") == b"written"
    disk.lock("/d/.lock")


def test_a_power_cut_keeps_what_was_flushed_and_a_torn_part_of_the_rest() -> None:
    seen = set()
    for seed in SEEDS:
        disk = MemoryDisk(seed)
        disk.make_directory("/d")
        file = disk.open("/d/a", create=True)
        file.append([b"flushed"])
        file.flush()
        disk.sync_directory("/d")
        file.append([b"AAA"])
        file.append([b"BBB"])
        disk.crash(keep_unflushed=False)
        seen.add(disk.read_file("/d/a"))
    assert {b"flushed", b"flushedA", b"flushedAAABB", b"flushedAAA\0\0"} <= seen
    assert all(data.startswith(b"flushed") for data in seen)
    assert not any(b"B" in data and b"AAA" not in data for data in seen)


def test_a_power_cut_may_undo_a_cut_that_was_not_flushed() -> None:
    seen = set()
    for seed in SEEDS:
        disk = MemoryDisk(seed)
        disk.make_directory("/d")
        file = disk.open("/d/a", create=True)
        file.append([b"0123"])
        file.flush()
        disk.sync_directory("/d")
        file.truncate(2)
        file.append([b"x"])
        disk.crash(keep_unflushed=False)
        seen.add(disk.read_file("/d/a"))
    assert seen >= {b"0123", b"01", b"01\0"}
    assert seen <= {b"0123", b"01", b"01\0", b"01x", b"012"}  # the last one: its old sector


def test_names_need_a_sync_of_their_directory() -> None:
    disk = MemoryDisk()
    disk.make_directory("/d")
    disk.write_file("/d/kept", b"1")
    disk.open("/d/lost", create=True).flush()
    disk.crash(keep_unflushed=False)
    assert disk.list("/d") == ["kept"]
    disk.remove("/d/kept")
    disk.crash(keep_unflushed=False)
    assert disk.list("/d") == ["kept"]
    disk.remove("/d/kept")
    disk.sync_directory("/d")
    disk.crash(keep_unflushed=False)
    assert disk.list("/d") == []


def test_what_was_open_before_the_crash_is_closed() -> None:
    disk = MemoryDisk()
    disk.make_directory("/d")
    file = disk.open("/d/a", create=True)
    disk.crash(keep_unflushed=True)
    with pytest.raises(OSError):
        file.append([b"ghost"])


@pytest.mark.parametrize(
    ("fault", "code"),
    [("read_only", errno.EROFS), ("broken", errno.EIO), ("free_bytes", errno.ENOSPC)],
)
def test_a_failing_disk_says_why(fault: str, code: int) -> None:
    disk = MemoryDisk()
    disk.make_directory("/d")
    file = disk.open("/d/a", create=True)
    setattr(disk, fault, 0 if fault == "free_bytes" else True)
    with pytest.raises(OSError) as raised:
        file.append([b"x"])
    assert raised.value.errno == code
    assert file.size() == 0


def test_a_sector_that_was_not_flushed_may_be_missing_before_one_that_is_there() -> None:
    seen = set()
    for seed in SEEDS:
        disk = MemoryDisk(seed)
        disk.make_directory("/d")
        file = disk.open("/d/a", create=True)
        file.append([b"f" * SECTOR])
        file.flush()
        disk.sync_directory("/d")
        file.append([b"A" * SECTOR])
        file.append([b"B" * SECTOR])
        disk.crash(keep_unflushed=False)
        data = disk.read_file("/d/a")
        assert data.startswith(b"f" * SECTOR)
        seen.add(data[SECTOR:])
    assert bytes(SECTOR) + b"B" * SECTOR in seen


def test_after_a_failed_flush_the_pages_are_readable_and_lost_with_the_power() -> None:
    disk = MemoryDisk()
    disk.make_directory("/d")
    file = disk.open("/d/a", create=True)
    file.append([b"kept"])
    file.flush()
    disk.sync_directory("/d")
    file.append([b"lost"])
    disk.fail_next_flush = True
    for _ in range(2):  # an open file reports it repeatedly, a file opened later does not
        with pytest.raises(FlushFailed):
            file.flush()
    file = disk.open("/d/a")
    file.append([b"more"])
    file.flush()
    assert disk.read_file("/d/a") == b"keptlostmore"
    disk.crash(keep_unflushed=False)
    assert disk.read_file("/d/a") == b"kept\0\0\0\0more"


def test_a_disk_that_fails_once_works_again() -> None:
    disk = MemoryDisk()
    disk.make_directory("/d")
    file = disk.open("/d/a", create=True)
    disk.fail_next_write = True
    with pytest.raises(OSError):
        file.append([b"x"])
    file.append([b"y"])
    assert disk.read_file("/d/a") == b"y"


def test_a_wiped_disk_is_empty() -> None:
    disk = MemoryDisk()
    disk.make_directory("/d")
    disk.wipe()
    assert not disk.exists("/d")


def test_a_directory_that_was_removed_is_gone_and_no_power_was_lost() -> None:
    disk = MemoryDisk()
    disk.make_directory("/data/flights-0")
    disk.make_directory("/data/flights-1")
    disk.write_file("/data/flights-0/a", b"records")
    boot = disk.boot_id()
    disk.crash(keep_unflushed=True)
    disk.lose_directory("/data/flights-0")
    assert disk.directories("/data") == ["flights-1"]
    assert (disk.losses, disk.boot_id()) == (1, boot)
    disk.crash(keep_unflushed=False)
    assert disk.directories("/data") == ["flights-1"]
    assert (disk.losses, disk.boot_id() != boot) == (2, True)
