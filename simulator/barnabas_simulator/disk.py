"""A disk in memory that can lose what was written.

`crash(keep_unflushed=True)` is the end of a process: the page cache, and so everything written,
survives. `crash(keep_unflushed=False)` is a power loss. Of each file there remains what was
flushed, then some of the later writes in their order, the last of them torn. A file's new length
may have reached the disk without its bytes, which then read as zeros, each sector of 512 bytes
independently. Names that no `sync_directory` made durable are undone.

`free_bytes`, `read_only` and `broken` make the next writes fail as a full, a read-only and a broken
disk do; `fail_next_write` and `fail_next_flush` fail once with EIO. After a failed flush Linux
counts the pages as clean: they can be read, no later flush writes them, and a power loss or an
`evict` loses them.
"""

import errno
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from barnabas_broker.disk.disk import Lock, flush_failed
from barnabas_broker.disk.page_cache import Directory, Inode, PageCacheDisk, disk_error

Change = bytes | int
"""A write since the last flush: bytes appended, or the size the file was cut to."""

SECTOR = 512
NONSENSE = b"nonsense\n"
"""What a damaged file contains."""


class Stored(Protocol):
    """What an observer sees of a file: `data` until the next `cuts` only grows. So many of its
    first bytes as `flushed_size` survive a power loss."""

    @property
    def data(self) -> bytearray: ...

    @property
    def cuts(self) -> int: ...

    @property
    def flushed_size(self) -> int: ...


@dataclass(eq=False)
class FaultyInode(Inode):
    """A file that keeps its unflushed writes apart, because a power loss may keep some of them."""

    changes: list[Change] = field(default_factory=list)
    unwritten: list[range] = field(default_factory=list)  # what a failed flush left behind

    @property
    def flushed_size(self) -> int:
        return min([self.common, *(lost.start for lost in self.unwritten if lost)])

    def append(self, data: bytes) -> None:
        super().append(data)
        self.changes.append(data)

    def cut(self, size: int) -> None:
        super().cut(size)
        self.changes.append(size)
        self.unwritten = [range(r.start, min(r.stop, size)) for r in self.unwritten]

    def flush(self) -> None:
        super().flush()
        self.changes.clear()
        for lost in self.unwritten:
            _zero(self.flushed, lost)

    def fail_to_flush(self) -> None:
        """Count the pages as clean, although only the file's length is on the disk."""
        self.unwritten.append(range(self.common, len(self.data)))
        self.flush()

    def evict(self) -> None:
        """Read from the disk again what a failed flush left behind."""
        for lost in self.unwritten:
            _zero(self.data, lost)
        self.cuts += 1

    def lose_power(self, chance: random.Random) -> None:
        data = bytearray(self.flushed)
        survivors = chance.randrange(len(self.changes) + 1)
        for change in self.changes[:survivors]:
            _apply(data, change)
        if survivors < len(self.changes):
            _apply(data, _torn(self.changes[survivors], chance))
        if chance.random() < 0.5:
            _lose_sectors(data, self.common, self.flushed, chance)
        self.data, self.flushed, self.common = data, bytearray(data), len(data)
        self.changes.clear()
        self.unwritten.clear()
        self.cuts += 1


def _zero(data: bytearray, lost: range) -> None:
    data[lost.start : lost.stop] = bytes(len(data[lost.start : lost.stop]))


def _apply(data: bytearray, change: Change) -> None:
    if isinstance(change, int):
        del data[change:]
    else:
        data += change


def _torn(change: Change, chance: random.Random) -> Change:
    """A part of a write; one of its ends is as likely to be zeros as to be missing."""
    if isinstance(change, int):
        return b""
    kept = chance.randrange(len(change) + 1)
    zeros = chance.choice([0, chance.randrange(len(change) - kept + 1)])
    return change[:kept] + bytes(zeros)


def _lose_sectors(data: bytearray, first: int, flushed: bytearray, chance: random.Random) -> None:
    """The disk writes sectors in an order of its own: some of the changed ones are missing."""
    for start in range(first - first % SECTOR, len(data), SECTOR):
        if chance.random() < 0.5:
            end = min(start + SECTOR, len(data))
            data[start:end] = flushed[start:end].ljust(end - start, b"\0")


def _evict(node: Inode | Directory) -> None:
    if isinstance(node, FaultyInode):
        node.evict()
    elif isinstance(node, Directory):
        for entry in node.entries.values():
            _evict(entry)


def _lose_power(node: Inode | Directory, chance: random.Random) -> None:
    if isinstance(node, FaultyInode):
        node.lose_power(chance)
    elif isinstance(node, Directory):
        node.entries = dict(node.durable)
        for name in sorted(node.entries):
            _lose_power(node.entries[name], chance)


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
        _evict(self._root)

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

    def repair(self) -> None:
        """No write fails any more."""
        self.free_bytes, self.read_only, self.broken = None, False, False
        self.fail_next_write = self.fail_next_flush = False

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

    # ---- Disk

    def rename(self, old: str, new: str, *, sync: bool = True) -> None:
        super().rename(old, new, sync=sync)
        self.on_rename(new)

    def new_inode(self) -> Inode:
        return FaultyInode(modified_ms=self.now_ms())

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), Directory)

    def list(self, path: str) -> list[str]:
        self.before_read()
        return sorted(self.directory(path).entries)

    def make_directory(self, path: str) -> None:
        directory = self._root
        for name in _names(path):
            node = directory.entries.get(name)
            if node is None:
                self.before_write()
                node = directory.entries[name] = Directory()
                directory.sync()
            if not isinstance(node, Directory):
                raise disk_error(errno.ENOTDIR)
            directory = node

    def remove_tree(self, path: str) -> None:
        directory, name = self._place(path)
        if name in directory.entries:
            self.before_write()
            del directory.entries[name]

    def boot_id(self) -> str:
        return f"boot-{self._boots}"

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
