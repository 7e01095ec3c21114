"""What the log relies on in a file system: the real, the volatile and the simulator's disk."""

import errno
import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from barnabas_broker.disk.disk import Disk
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.disk.volatile_disk import VolatileDisk
from barnabas_simulator.disk import MemoryDisk

Limit = Callable[[int], AbstractContextManager[None]]


@pytest.fixture(params=["posix", "volatile", "memory"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def disk(kind: str) -> Disk:
    if kind == "posix":
        return PosixDisk()
    if kind == "volatile":
        return VolatileDisk(PosixDisk(), now_ms=lambda: 1_700_000_000_000)
    return MemoryDisk(now_ms=lambda: 1_700_000_000_000)


@pytest.fixture
def root(disk: Disk, tmp_path: Path) -> str:
    path = str(tmp_path / "data")
    disk.make_directory(path)
    return path


@pytest.fixture
def room(disk: Disk) -> Limit:
    """Return a context in which a file can grow only up to so many bytes."""

    @contextmanager
    def posix(size: int) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    @contextmanager
    def memory(size: int) -> Iterator[None]:
        assert isinstance(disk, MemoryDisk)
        disk.free_bytes = size
        yield
        disk.free_bytes = None

    return memory if isinstance(disk, MemoryDisk) else posix


def test_buffers_are_written_one_after_the_other_at_the_end(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/a", create=True)
    assert file.append([b"one", memoryview(b"-two-")[1:4]]) == 0
    assert file.append([bytearray(b"three")]) == 6
    assert file.size() == 11
    assert file.read(0, 100) == b"onetwothree"
    assert file.read(3, 3) == b"two"
    assert file.read(11, 5) == b""
    file.close()
    assert disk.open(f"{root}/a").size() == 11


def test_more_buffers_than_the_kernel_takes_in_one_call(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/a", create=True)
    file.append([b"%04d" % i for i in range(3000)])
    assert file.size() == 12000
    assert file.read(4 * 2999, 4) == b"2999"


def test_a_write_that_finds_no_room_leaves_nothing_behind(
    disk: Disk, root: str, room: Limit
) -> None:
    file = disk.open(f"{root}/a", create=True)
    file.append([b"before"])
    with room(100), pytest.raises(OSError) as raised:
        file.append([b"x" * 60, b"y" * 60])
    assert raised.value.errno in (errno.EFBIG, errno.ENOSPC)
    assert file.size() == 6
    assert disk.read_file(f"{root}/a") == b"before"
    assert file.append([b" after"]) == 6
    assert disk.read_file(f"{root}/a") == b"before after"


def test_a_cut_file_goes_on_from_its_new_end(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/a", create=True)
    file.append([b"0123456789"])
    file.truncate(4)
    assert file.append([b"x"]) == 4
    file.flush()
    assert disk.read_file(f"{root}/a") == b"0123x"


def test_what_is_not_there_is_not_found(disk: Disk, root: str) -> None:
    for look in (disk.open, disk.read_file, disk.modified_ms, disk.list, disk.sync_directory):
        with pytest.raises(FileNotFoundError):
            look(f"{root}/none")
    with pytest.raises(FileNotFoundError):
        disk.rename(f"{root}/none", f"{root}/other")
    disk.remove(f"{root}/none")
    disk.remove_tree(f"{root}/none")
    assert not disk.exists(f"{root}/none")


def test_a_small_file_is_replaced_whole(disk: Disk, root: str) -> None:
    disk.write_file(f"{root}/a", b"a longer text")
    disk.write_file(f"{root}/a", b"short", private=True)
    assert disk.read_file(f"{root}/a") == b"short"
    assert disk.list(root) == ["a"]
    assert disk.modified_ms(f"{root}/a") > 1_600_000_000_000


def test_directories(disk: Disk, root: str) -> None:
    disk.make_directory(f"{root}/t-0/inner")
    disk.make_directory(f"{root}/t-0/inner")
    disk.write_file(f"{root}/t-0/b", b"")
    disk.write_file(f"{root}/t-0/a", b"")
    assert disk.list(f"{root}/t-0") == ["a", "b", "inner"]
    assert disk.is_directory(f"{root}/t-0/inner") and not disk.is_directory(f"{root}/t-0/a")
    disk.rename(f"{root}/t-0", f"{root}/t-0.deleted")
    assert disk.list(root) == ["t-0.deleted"]
    disk.remove_tree(f"{root}/t-0.deleted")
    assert disk.list(root) == []


def test_an_open_file_outlives_its_name(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/a", create=True)
    file.append([b"data"])
    disk.rename(f"{root}/a", f"{root}/b", sync=False)
    file.append([b" and more"])
    assert disk.read_file(f"{root}/b") == b"data and more"
    disk.remove(f"{root}/b")
    assert file.read(0, 4) == b"data"


def test_a_rename_takes_the_place_of_what_was_there(disk: Disk, root: str) -> None:
    disk.write_file(f"{root}/a", b"new")
    disk.write_file(f"{root}/b", b"old")
    disk.rename(f"{root}/a", f"{root}/b")
    assert disk.list(root) == ["b"]
    assert disk.read_file(f"{root}/b") == b"new"


def test_a_rename_into_another_directory_is_made_durable_in_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    disk = PosixDisk()
    for name in ("from", "to"):
        disk.make_directory(f"{tmp_path}/{name}")
    disk.write_file(f"{tmp_path}/from/a", b"data")
    monkeypatch.setattr(PosixDisk, "sync_directory", lambda _, path: synced.append(path))
    disk.rename(f"{tmp_path}/from/a", f"{tmp_path}/to/a")
    assert synced == [f"{tmp_path}/to", f"{tmp_path}/from"]
    disk.rename(f"{tmp_path}/to/a", f"{tmp_path}/to/b")
    assert synced[2:] == [f"{tmp_path}/to"]


def test_a_closed_file_cannot_be_used(disk: Disk, root: str) -> None:
    file = disk.open(f"{root}/a", create=True)
    file.close()
    file.close()
    for use in (lambda: file.append([b"x"]), lambda: file.read(0, 1), file.flush):
        with pytest.raises(OSError):
            use()


def test_a_lock_has_one_holder(disk: Disk, root: str) -> None:
    lock = disk.lock(f"{root}/.lock")
    with pytest.raises(BlockingIOError):
        disk.lock(f"{root}/.lock")
    lock.release()
    lock.release()
    disk.lock(f"{root}/.lock").release()
