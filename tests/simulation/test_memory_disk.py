"""The simulator's disk loses what a real one may lose, and nothing else."""

import errno
from collections.abc import Callable

import pytest
from barnabas_broker.disk.disk import FlushFailed
from barnabas_simulator.disk import MemoryDisk
from barnabas_simulator.faulty_inode import SECTOR

SEEDS = range(600)


def assert_all_fail(code: int, *calls: Callable[[], object]) -> None:
    for call in calls:
        with pytest.raises(OSError) as error:
            call()
        assert error.value.errno == code


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


def test_one_directory_of_several_fails_and_comes_back_with_its_files() -> None:
    disk = MemoryDisk()
    for root in ("/one", "/one-more"):
        disk.make_directory(root)
        disk.write_file(f"{root}/a", b"1")
    file, other = disk.open("/one/a"), disk.open("/one-more/a")
    disk.failing.add("/one")
    assert_all_fail(
        errno.EIO,
        lambda: file.read(0, 1),
        lambda: file.append([b"2"]),
        file.flush,
        lambda: disk.open("/one/a"),
        lambda: disk.list("/one"),
        lambda: disk.rename("/one/a", "/one/b"),
        lambda: disk.remove("/one/a"),
        lambda: disk.make_directory("/one/folder"),
        lambda: disk.sync_directory("/one"),
    )
    other.append([b"2"])
    assert other.read(0, 2) == b"12"
    disk.repair()
    assert file.read(0, 9) == b"1"


def test_without_descriptors_nothing_can_be_opened_and_what_is_open_works() -> None:
    disk = MemoryDisk()
    disk.make_directory("/d")
    file = disk.open("/d/a", create=True)
    disk.no_descriptors = True
    file.append([b"1"])
    file.flush()
    assert_all_fail(
        errno.EMFILE,
        lambda: disk.open("/d/a"),
        lambda: disk.read_file("/d/a"),
        lambda: disk.write_file("/d/b", b"2"),
        lambda: disk.list("/d"),
        lambda: disk.lock("/d/.lock"),
        lambda: disk.sync_directory("/d"),
    )
    disk.no_descriptors = False
    assert disk.read_file("/d/a") == b"1"
    assert not disk.exists("/d/b")


def test_a_name_that_was_changed_without_descriptors_is_not_durable() -> None:
    disk = MemoryDisk()
    disk.make_directory("/d")
    disk.write_file("/d/old", b"1")
    disk.no_descriptors = True
    with pytest.raises(OSError):
        disk.rename("/d/old", "/d/new")
    assert disk.exists("/d/new")
    disk.repair()
    disk.crash(keep_unflushed=False)
    assert disk.list("/d") == ["old"]


def test_a_flush_of_one_kind_of_file_fails_and_the_eviction_shows_what_is_lost() -> None:
    disk = MemoryDisk()
    disk.make_directory("/d")
    log, index = disk.open("/d/a.log", create=True), disk.open("/d/a.index", create=True)
    for file in (log, index):
        file.append([b"kept"])
        file.flush()
        file.append([b"more"])
    disk.fail_flush_of = ".log"
    index.flush()
    with pytest.raises(FlushFailed):
        log.flush()
    assert disk.fail_flush_of == ""
    assert disk.has_unwritten
    assert disk.read_file("/d/a.log") == b"keptmore"
    disk.evict()
    assert disk.read_file("/d/a.log") == b"kept\0\0\0\0"
    assert disk.read_file("/d/a.index") == b"keptmore"
    assert (disk.losses, disk.has_unwritten) == (1, False)


def test_an_eviction_of_what_is_on_the_disk_loses_nothing() -> None:
    disk = MemoryDisk()
    disk.make_directory("/d")
    disk.open("/d/a", create=True).append([b"dirty"])
    disk.evict()
    assert (disk.read_file("/d/a"), disk.losses) == (b"dirty", 0)


def test_a_changed_bit_is_read_until_its_bytes_are_gone_and_observers_know_what_was_there() -> None:
    disk = MemoryDisk()
    disk.make_directory("/d")
    file = disk.open("/d/a", create=True)
    file.append([b"0123"])
    file.flush()
    disk.sync_directory("/d")
    disk.flip("/d/a", 2, 0)
    stored = disk.look_into("/d")["a"]
    assert (disk.read_file("/d/a"), bytes(stored.sound)) == (b"0133", b"0123")
    disk.flip_back()
    assert (disk.read_file("/d/a"), disk.is_rotten("a")) == (b"0123", False)
    disk.flip("/d/a", 2, 0)
    disk.crash(keep_unflushed=False)
    assert (disk.read_file("/d/a"), disk.is_rotten("a")) == (b"0133", True)
    disk.open("/d/a").truncate(2)
    assert (bytes(stored.sound), disk.is_rotten("a")) == (b"01", False)
