"""A failed flush, on real files and on the disk in memory.

It is recorded immediately. The next start writes the unflushed part again, and it counts as lost.
"""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from barnabas_broker.disk import posix_disk
from barnabas_broker.disk.disk import Disk, FlushFailed
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.log.index.offset_index import OffsetIndex
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.recovery.log_history import LogHistory
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk

from tests.support.log_manager_world import ManagerWorld, append
from tests.support.log_world import values_in

T0 = TopicPartition("t", 0)
MARK, CLEAN = ".barnabas_flush_failed", ".kafka_cleanshutdown"
SEGMENT = "t-0/00000000000000000000.log"
FailFsync = Callable[..., None]


@pytest.fixture
def fail_fsync(monkeypatch: pytest.MonkeyPatch) -> FailFsync:
    """Return a function that fails the next fsync of a file: `fail_fsync(".log", errno.EIO)`."""
    real = os.fsync
    failing: list[tuple[str, int]] = []

    def fsync(descriptor: int) -> None:
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        if failing and name.endswith(failing[0][0]):
            code = failing.pop()[1]
            raise OSError(code, os.strerror(code))
        real(descriptor)

    monkeypatch.setattr(posix_disk.os, "fsync", fsync)
    return lambda suffix, code=errno.EIO: failing.append((suffix, code))


class World(ManagerWorld):
    """A log manager on the files of `folder`, or of several `directories`."""

    def __init__(self, folder: Path, *directories: Path) -> None:
        super().__init__({"log.dirs": ",".join(map(str, directories or [folder]))})
        self.disk = PosixDisk()  # type: ignore[assignment]
        self.folder = folder

    async def open_with(self, *values: bytes) -> LogManager:
        manager = await self.start()
        append(await self.open(manager), *values)
        await manager.write_history(17)
        return manager

    async def after_kill(self, manager: LogManager) -> LogManager:
        manager.unlock_directories()
        return await self.start()

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()


async def stopped_after_failed_flush(
    folder: Path, fail_fsync: FailFsync
) -> tuple[World, LogManager]:
    """Return a log of one record, whose last flush, at the stop, has failed."""
    world = World(folder)
    manager = await world.open_with(b"a")
    fail_fsync(".log")
    await manager.stop()
    return world, manager


def values(manager: LogManager) -> list[bytes | None]:
    log = manager.get(T0)
    assert log is not None
    return values_in(log.read(0, 1 << 20, log.log_end_offset))


async def test_a_failed_flush_is_recorded_although_no_file_descriptor_is_left(
    tmp_path: Path, fail_fsync: FailFsync, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    manager = await world.open_with(b"a")
    log = manager.get(T0)
    assert log is not None

    def no_descriptor(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    fail_fsync(".log")
    with monkeypatch.context() as patch, pytest.raises(FlushFailed):
        patch.setattr(posix_disk.os, "open", no_descriptor)
        manager.directories[0].watched(log.segments()[-1].log.flush)
    assert world.has(MARK)
    again = await world.after_kill(manager)
    assert again.directories[0].had_failed_flush
    await again.write_history(18)
    assert not world.has(MARK)
    again.directories[0].record_failed_flush()
    again.directories[0].record_failed_flush()
    assert world.has(MARK)
    await again.stop()


# ---- the seam


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_an_open_file_reports_its_failed_flush_forever(
    tmp_path: Path, fail_fsync: FailFsync, code: int
) -> None:
    disk = PosixDisk()
    file, other = (disk.open(str(tmp_path / name), create=True) for name in ("a.log", "b.log"))
    file.append([b"x"])
    fail_fsync("a.log", code)
    for _ in range(3):
        with pytest.raises(FlushFailed) as caught:
            file.flush()
        assert caught.value.errno == code
    other.flush()
    # Linux has reported the error once, and does not again
    disk.open(str(tmp_path / "a.log")).flush()


def test_a_file_that_is_closed_as_it_is_flushed_casts_no_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This happens to a log that is deleted while a background task flushes it."""
    file, real = PosixDisk().open(str(tmp_path / "a.log"), create=True), os.fsync

    def fsync(descriptor: int) -> None:
        file.close()
        real(descriptor)

    monkeypatch.setattr(posix_disk.os, "fsync", fsync)
    with pytest.raises(OSError, match="Bad file descriptor") as caught:
        file.flush()
    assert not isinstance(caught.value, FlushFailed)


def test_of_two_flushes_at_once_both_report_the_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel would report the error to one, and success to the other."""
    second_waits, told = threading.Event(), []

    def fsync(_: int) -> None:
        if not told:
            told.append("EIO")
            second_waits.wait(5)
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(posix_disk.os, "fsync", fsync)
    file = PosixDisk().open(str(tmp_path / "a"), create=True)
    outcomes: list[str] = []

    def flush() -> None:
        try:
            file.flush()
            outcomes.append("flushed")
        except FlushFailed:
            outcomes.append("failed")

    threads = [threading.Thread(target=flush) for _ in range(2)]
    for thread in threads:
        thread.start()
    second_waits.set()
    for thread in threads:
        thread.join()
    assert outcomes == ["failed", "failed"]


def index_with_one_entry(disk: Disk, path: str) -> OffsetIndex:
    index = OffsetIndex(disk, path, 0, 1 << 10)
    index.create()
    index.add(7, 100)
    index.save()
    return index


def test_an_index_reports_it_forever_too(tmp_path: Path, fail_fsync: FailFsync) -> None:
    index = index_with_one_entry(PosixDisk(), str(tmp_path / "a.index"))
    fail_fsync("a.index")
    for _ in range(2):
        with pytest.raises(FlushFailed):
            index.sync()


# ---- the mark


async def test_a_failed_flush_is_noted_and_the_next_start_writes_again(
    tmp_path: Path, fail_fsync: FailFsync
) -> None:
    world = World(tmp_path)
    manager = await world.open_with(b"a", b"b")
    log = manager.get(T0)
    assert log is not None
    before = (tmp_path / SEGMENT).stat().st_ino
    fail_fsync(".log")
    await manager.flush(log)
    assert log.recovery_point == 0
    assert world.failures == [(str(tmp_path), errno.EIO)]
    assert world.has(MARK)
    await manager.stop()
    assert not world.has(CLEAN)
    manager = await world.after_kill(manager)
    assert manager.log_dirs_with_failed_flush == [str(tmp_path)]
    assert manager.history() == LogHistory(None, is_new=False)
    assert values(manager) == [b"a", b"b"]
    assert (tmp_path / SEGMENT).stat().st_ino != before
    # The mark stays until it is known since when nothing was lost.
    manager = await world.after_kill(manager)
    assert manager.history() == LogHistory(None, is_new=False)
    await manager.write_history(40)
    assert not world.has(MARK)
    manager = await world.after_kill(manager)
    assert manager.history() == LogHistory(40, is_new=False)
    assert values(manager) == [b"a", b"b"]
    await manager.stop()


async def test_a_flush_that_fails_before_the_start_is_over_leaves_the_mark(
    tmp_path: Path, fail_fsync: FailFsync
) -> None:
    """The mark is there at every moment, because the process may be killed at any."""
    world = World(tmp_path)
    manager = await world.open_with(b"a")
    manager.directories[0].record_failed_flush()
    (tmp_path / MARK).write_bytes(b"the same file")
    await manager.write_history(17)
    assert (tmp_path / MARK).read_bytes() == b"the same file"
    await manager.stop()
    manager = await world.after_kill(manager)
    assert manager.history().unbroken_since is None
    assert not manager.had_clean_shutdown, "the checksums of what follows must be verified"


async def test_of_two_directories_the_other_goes_on_and_the_doubt_waits_for_its_own(
    tmp_path: Path, fail_fsync: FailFsync
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    world = World(tmp_path, one, other)
    manager = await world.open_with(b"a")
    log = manager.get(T0)
    assert log is not None and log.directory == str(one / "t-0")
    fail_fsync(".log")
    await manager.flush(log)
    assert manager.live_log_dirs() == [str(other)]
    assert (one / MARK).exists() and not (other / MARK).exists()
    # A start that cannot rewrite the log claims nothing about its content, and leaves the mark.
    fail_fsync(".log.tmp")
    manager = await world.after_kill(manager)
    assert manager.live_log_dirs() == [str(other)] and manager.get(T0) is None
    assert manager.history() == LogHistory(17, is_new=False)
    await manager.write_history(17)
    assert (one / MARK).exists()
    # One that can counts as having lost something; the other brokers do not know in which
    # directory.
    manager = await world.after_kill(manager)
    assert manager.log_dirs_with_failed_flush == [str(one)] and values(manager) == [b"a"]
    assert manager.history() == LogHistory(None, is_new=False)
    await manager.write_history(40)
    assert not (one / MARK).exists()
    manager = await world.after_kill(manager)
    assert manager.history() == LogHistory(40, is_new=False)
    await manager.stop()


async def test_a_flush_that_fails_at_the_stop_leaves_no_good_order(
    tmp_path: Path, fail_fsync: FailFsync
) -> None:
    world, manager = await stopped_after_failed_flush(tmp_path, fail_fsync)
    assert world.has(MARK) and not world.has(CLEAN)
    manager = await world.after_kill(manager)
    assert manager.history().unbroken_since is None
    assert values(manager) == [b"a"]
    await manager.stop()


async def test_a_copy_that_cannot_be_flushed_leaves_the_doubt(
    tmp_path: Path, fail_fsync: FailFsync
) -> None:
    world, manager = await stopped_after_failed_flush(tmp_path, fail_fsync)
    fail_fsync(".log.tmp")
    manager = await world.after_kill(manager)
    assert manager.live_log_dirs() == []
    await manager.write_history(40)
    await manager.stop()
    assert world.has(MARK) and not world.has(CLEAN)
    manager = await world.after_kill(manager)
    assert manager.history().unbroken_since is None
    assert values(manager) == [b"a"]
    assert not world.has(SEGMENT + ".tmp")
    await manager.stop()


async def test_a_log_that_cannot_be_opened_is_written_again_too(
    tmp_path: Path, fail_fsync: FailFsync
) -> None:
    world, manager = await stopped_after_failed_flush(tmp_path, fail_fsync)
    metadata = tmp_path / "t-0/partition.metadata"
    good = metadata.read_bytes()
    metadata.write_bytes(b"?")
    before = (tmp_path / SEGMENT).stat().st_ino
    manager = await world.after_kill(manager)
    assert T0 in manager.lost
    assert (tmp_path / SEGMENT).stat().st_ino != before
    await manager.stop()
    metadata.write_bytes(good)


async def test_a_full_disk_casts_no_doubt() -> None:
    """A failed write leaves nothing in the log."""
    world = ManagerWorld()
    manager = await world.start()
    append(await world.open(manager), b"a")
    world.disk.free_bytes = 0
    log = manager.get(T0)
    assert log is not None
    with pytest.raises(Exception, match="No space"):
        append(log, b"b")
    assert manager.live_log_dirs() == []
    assert not world.disk.exists(f"/data/{MARK}")


async def test_what_the_page_cache_let_go_of_is_missed() -> None:
    """Above the recovery point the log is truncated; what had been flushed before stays."""
    world = ManagerWorld()
    manager = await world.start()
    log = await world.open(manager)
    append(log, b"kept")
    await manager.flush(log)
    await manager.checkpoint_all_offsets()
    append(log, b"lost")
    world.disk.fail_next_flush = True
    await manager.flush(log)
    assert log.recovery_point == 1
    world.disk.evict()
    world.disk.crash(keep_unflushed=True)
    manager = await world.start()
    assert values(manager) == [b"kept"]
    assert manager.history().unbroken_since is None
    await manager.stop()


async def test_what_was_written_again_survives_the_power() -> None:
    for seed in range(20):
        world = ManagerWorld(disk=MemoryDisk(seed))
        manager = await world.start()
        log = await world.open(manager)
        append(log, b"a")
        world.disk.fail_next_flush = True
        await manager.flush(log)
        world.disk.crash(keep_unflushed=True)
        manager = await world.start()
        world.disk.crash(keep_unflushed=False)
        manager = await world.start()
        assert values(manager) == [b"a"]
