"""A disk in memory that can lose what was written.

`crash(keep_unflushed=True)` is the end of a process: the page cache, and so everything written,
survives. `crash(keep_unflushed=False)` is a power loss. Of each file there remains what was
flushed, then some of the later writes in their order, the last of them torn. A file's new length
may have reached the disk without its bytes, which then read as zeros, each sector of 512 bytes
independently. Names that no `sync_directory` made durable are undone.

`free_bytes`, `read_only` and `broken` make the next writes fail as a full, a read-only and a broken
disk do, `failing` only those below some directories, each of which is a disk of its own;
`fail_next_write` and `fail_next_flush` fail once with EIO. After a failed flush Linux counts the
pages as clean: they can be read, no later flush writes them, and a power loss or an `evict` loses
them. With `no_descriptors` every call fails that opens a file or a directory; what is open works.

`flip` changes a bit of what is stored, as happens on a disk in time. Observers can still see what
was there before (`Stored.sound`).
"""

import errno
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from barnabas_broker.disk.disk import Buffer, Lock, flush_failed
from barnabas_broker.disk.page_cache import (
    CachedFile,
    Directory,
    Inode,
    PageCacheDisk,
    disk_error,
)

from barnabas_simulator.faulty_inode import FaultyInode

NONSENSE = b"nonsense\n"
"""What a damaged file contains."""


class Stored(Protocol):
    """What an observer sees of a file: `data` until the next `cuts` only grows, `sound` is without
    the bits that have changed by themselves. So many of its first bytes as `flushed_size` survive a
    power loss."""

    @property
    def data(self) -> bytearray: ...

    @property
    def sound(self) -> bytearray: ...

    @property
    def cuts(self) -> int: ...

    @property
    def flushed_size(self) -> int: ...


def _files(directory: Directory, end: str = "") -> Iterator[FaultyInode]:
    """All files below a directory whose names have this end."""
    for name, entry in directory.entries.items():
        if isinstance(entry, Directory):
            yield from _files(entry, end)
        elif isinstance(entry, FaultyInode) and name.endswith(end):
            yield entry


def _lose_power(node: Inode | Directory, chance: random.Random) -> None:
    if isinstance(node, FaultyInode):
        node.lose_power(chance)
    elif isinstance(node, Directory):
        node.entries = dict(node.durable)
        for name in sorted(node.entries):
            _lose_power(node.entries[name], chance)


class MemoryFile(CachedFile):
    """An open file on a disk of which a part may fail."""

    __slots__ = ("_memory", "_path")

    def __init__(self, disk: "MemoryDisk", inode: Inode, path: str) -> None:
        super().__init__(disk, inode)
        self._memory = disk
        self._path = path

    def append(self, buffers: Sequence[Buffer]) -> int:
        self._memory.reach(self._path)
        return super().append(buffers)

    def read(self, position: int, length: int) -> bytes:
        self._memory.reach(self._path)
        return super().read(position, length)

    def truncate(self, size: int) -> None:
        self._memory.reach(self._path)
        super().truncate(size)

    def flush(self) -> None:
        self._memory.reach(self._path)
        failing = self._memory.fail_flush_of
        is_dirty = self.inode.common < len(self.inode.data)
        if failing and is_dirty and self._path.endswith(failing):
            self._memory.fail_flush_of, self._memory.fail_next_flush = "", True
        super().flush()


class MemoryLock:
    """Held until released, or until the crash of its holder."""

    def __init__(self, disk: "MemoryDisk", path: str) -> None:
        self._disk = disk
        self._path = path

    def release(self) -> None:
        if self._disk.locks.get(self._path) is self:
            del self._disk.locks[self._path]


class MemoryDisk(PageCacheDisk):
    """See the module, and `Disk`. `seed` decides what a power loss tears."""

    def __init__(self, seed: int = 0, now_ms: Callable[[], int] = lambda: 0) -> None:
        super().__init__(now_ms)
        self.losses = 0
        """How often it has lost something that was written."""
        self.locks: dict[str, MemoryLock] = {}
        self.free_bytes: int | None = None
        self.read_only = False
        self.broken = False
        self.fail_next_write = False
        self.fail_next_flush = False
        self.failing: set[str] = set()
        """Directories in the root whose disk fails."""
        self.no_descriptors = False
        self.fail_flush_of = ""
        """The end of a name: the next flush fails that has something of such a file to write."""
        self.on_rename: Callable[[str], None] = lambda _: None
        """Called with the new path after every rename."""
        self._boots = 0
        self._chance = random.Random(seed)
        self._root = Directory()

    # ---- faults

    def crash(self, keep_unflushed: bool) -> None:
        """Close every open file and lock, and lose what the module says."""
        self.incarnation += 1
        self.locks.clear()
        if not keep_unflushed:
            self.losses += 1
            self._boots += 1
            _lose_power(self._root, self._chance)

    def evict(self) -> None:
        """Drop all clean pages from the page cache; what a failed flush lost is then seen."""
        self.losses += self.has_unwritten
        for file in _files(self._root):
            file.evict()

    def wipe(self) -> None:
        """Put a new, empty disk in its place; only while its owner does not run."""
        self.incarnation += 1
        self.locks.clear()
        self.losses += 1
        self._boots += 1
        self._root = Directory()

    def lose_directory(self, path: str) -> None:
        """Remove it with its content, as an operator might; only while its owner does not run."""
        directory, name = self._place(path)
        del directory.entries[name]
        directory.sync()
        self.losses += 1

    def spoil(self, path: str) -> None:
        """Overwrite a file with malformed data, durably; only while its owner does not run."""
        inode = self._find(path)
        assert isinstance(inode, Inode)
        inode.cut(0)
        inode.append(NONSENSE)
        inode.flush()

    def flip(self, path: str, position: int, bit: int) -> None:
        """Change one stored bit of a file."""
        inode = self._find(path)
        assert isinstance(inode, FaultyInode)
        inode.flip(position, bit)

    def flip_back(self) -> None:
        """Undo every `flip`, as an operator does who has a sound copy of the files; only while its
        owner does not run."""
        for file in _files(self._root):
            file.flip_back()

    def repair(self) -> None:
        """No write fails any more."""
        self.free_bytes, self.read_only, self.broken = None, False, False
        self.fail_next_write = self.fail_next_flush = False
        self.fail_flush_of = ""
        self.failing.clear()
        self.no_descriptors = False

    def reach(self, path: str, descriptors: int = 0) -> None:
        """Raise if the directory fails that the path is in, or if descriptors are missing."""
        if self.failing and any(_is_below(path, root) for root in self.failing):
            raise disk_error(errno.EIO, path)
        if descriptors and self.no_descriptors:
            raise disk_error(errno.EMFILE, path)

    def before_read(self) -> None:
        if self.broken:
            raise disk_error(errno.EIO)

    def before_write(self, length: int = 0, size: int = 0) -> None:
        self.before_read()
        if self.fail_next_write and length:
            self.fail_next_write = False
            raise disk_error(errno.EIO)
        if self.read_only:
            raise disk_error(errno.EROFS)
        if self.free_bytes is not None:
            if length > self.free_bytes:
                raise disk_error(errno.ENOSPC)
            self.free_bytes -= length

    def flush(self, inode: Inode) -> None:
        assert isinstance(inode, FaultyInode)
        if self.fail_next_flush:
            self.fail_next_flush = False
            inode.fail_to_flush()
            raise flush_failed(disk_error(errno.EIO))
        inode.flush()

    # ---- for observers

    @property
    def has_unwritten(self) -> bool:
        """Whether a failed flush has left something in the page cache alone."""
        return any(any(file.unwritten) for file in _files(self._root))

    def is_rotten(self, end: str) -> bool:
        """Whether a changed bit is still in a file whose name has this end."""
        return any(file.rot for file in _files(self._root, end))

    def look_into(self, path: str) -> Mapping[str, Stored]:
        """The files of a directory as they are now, also on a disk that fails."""
        entries = self._entries(path).items()
        return {name: node for name, node in entries if isinstance(node, FaultyInode)}

    def durable_files(self, path: str) -> Mapping[str, Stored]:
        """The files of a directory by the names that a power loss leaves them."""
        node: Inode | Directory | None = self._root
        for name in _names(path):
            if not isinstance(node, Directory) or name not in node.entries:
                return {}
            if node.durable.get(name) is not node.entries[name]:
                return {}
            node = node.entries[name]
        durable = node.durable.items() if isinstance(node, Directory) else ()
        return {name: inode for name, inode in durable if isinstance(inode, FaultyInode)}

    def directories(self, path: str) -> list[str]:
        """The names of the directories in a directory."""
        entries = self._entries(path).items()
        return sorted(name for name, node in entries if isinstance(node, Directory))

    def _entries(self, path: str) -> "Mapping[str, Inode | Directory]":
        directory = self._find(path)
        return directory.entries if isinstance(directory, Directory) else {}

    @property
    def roots(self) -> list[str]:
        """The directories in the root: data directories, each with the files of one disk."""
        return [f"/{name}" for name in self.directories("/")]

    # ---- Disk

    def _open(self, path: str, create: bool = False) -> CachedFile:
        self.reach(path, descriptors=1)
        return MemoryFile(self, super()._open(path, create).inode, path)

    def rename(self, old: str, new: str, *, sync: bool = True) -> None:
        self.reach(new)
        super().rename(old, new, sync=sync and not self.no_descriptors)
        self.on_rename(new)
        if sync:
            self.reach(new, descriptors=1)

    def remove(self, path: str) -> None:
        self.reach(path)
        super().remove(path)

    def modified_ms(self, path: str) -> int:
        self.reach(path)
        return super().modified_ms(path)

    def sync_directory(self, path: str) -> None:
        self.reach(path, descriptors=1)
        super().sync_directory(path)

    def new_inode(self) -> Inode:
        return FaultyInode(modified_ms=self.now_ms())

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), Directory)

    def list(self, path: str) -> list[str]:
        self.reach(path, descriptors=1)
        self.before_read()
        return sorted(self.directory(path).entries)

    def make_directory(self, path: str) -> None:
        directory = self._root
        for name in _names(path):
            node = directory.entries.get(name)
            if node is None:
                self.reach(path)
                self.before_write()
                node = directory.entries[name] = Directory()
                try:
                    self.reach(path, descriptors=1)
                except OSError:
                    del directory.entries[name]
                    raise
                directory.sync()
            if not isinstance(node, Directory):
                raise disk_error(errno.ENOTDIR)
            directory = node

    def remove_tree(self, path: str) -> None:
        self.reach(path, descriptors=1)
        directory, name = self._place(path)
        if name in directory.entries:
            self.before_write()
            del directory.entries[name]

    def boot_id(self) -> str:
        return "" if self.no_descriptors else f"boot-{self._boots}"

    def lock(self, path: str) -> Lock:
        if path in self.locks:
            raise disk_error(errno.EWOULDBLOCK, path)
        self.open(path, create=True)
        lock = self.locks[path] = MemoryLock(self, path)
        return lock

    def directory(self, path: str) -> Directory:
        node = self._find(path)
        if not isinstance(node, Directory):
            raise disk_error(errno.ENOENT, path)
        return node

    def _find(self, path: str) -> Inode | Directory | None:
        node: Inode | Directory | None = self._root
        for name in _names(path):
            node = node.entries.get(name) if isinstance(node, Directory) else None
        return node


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")
