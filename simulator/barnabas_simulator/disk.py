"""A disk in memory that can forget.

`crash(keep_unflushed=True)` is the death of a process: the page cache, and so everything written,
survives. `crash(keep_unflushed=False)` is a power cut: of each file there remains what was flushed,
then some of the later writes in their order, the last of them torn; a file's new length may have
reached the disk without its bytes, which then read as zeros, any sector of 512 bytes by itself.
Files whose creation, renaming or removal was not made durable by a `sync_directory` are as before.

`free_bytes`, `read_only` and `broken` make the next writes fail as a full, a read-only and a dying
disk do; `fail_next_write` and `fail_next_flush` fail once with EIO. After a flush that failed Linux
takes the pages for clean: they can be read, no later flush writes them, and a power cut loses them,
or an `evict`.
"""

import errno
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from barnabas_broker.disk.disk import Buffer, File, FlushFailed, Lock, flush_failed

Change = bytes | int
"""A write since the last flush: bytes appended, or the size the file was cut to."""


SECTOR = 512
NONSENSE = b"nonsense\n"
"""What `spoil` leaves."""


class Stored(Protocol):
    """What an observer sees of a file: `data` until the next `cuts` only grows."""

    @property
    def data(self) -> bytearray: ...

    @property
    def cuts(self) -> int: ...


def _failure(code: int) -> OSError:
    return OSError(code, os.strerror(code))


@dataclass(eq=False)
class _Content:
    """What a file holds, whatever its name is."""

    data: bytearray = field(default_factory=bytearray)
    flushed: bytes = b""
    changes: list[Change] = field(default_factory=list)
    unwritten: list[range] = field(default_factory=list)  # what a failed flush left behind
    modified_ms: int = 0
    cuts: int = 0  # how often bytes were taken away; between two cuts a file only grows

    def flush(self) -> None:
        flushed = bytearray(self.data)
        for lost in self.unwritten:
            kept = slice(lost.start, min(lost.stop, len(flushed)))
            flushed[kept] = bytes(len(flushed[kept]))
        self.flushed = bytes(flushed)
        self.changes.clear()

    def fail_to_flush(self) -> None:
        """See the module: the pages count as clean, but only the file's length is on the disk."""
        self.unwritten.append(range(self._first_change(), len(self.data)))
        self.flush()

    def evict(self) -> None:
        """What was left behind is read from the disk again."""
        for lost in self.unwritten:
            self.data[lost.start : lost.stop] = bytes(len(self.data[lost.start : lost.stop]))
        self.cuts += 1

    def change(self, change: Change) -> None:
        _apply(self.data, change)
        self.changes.append(change)
        if isinstance(change, int):
            self.cuts += 1
            self.unwritten = [range(r.start, min(r.stop, change)) for r in self.unwritten]

    def _first_change(self) -> int:
        """The bytes before it are as they were flushed."""
        cuts = [change for change in self.changes if isinstance(change, int)]
        return min([len(self.flushed), *cuts])

    def lose_power(self, chance: random.Random) -> None:
        self.unwritten.clear()
        first = self._first_change()
        data = bytearray(self.flushed)
        survivors = chance.randrange(len(self.changes) + 1)
        for change in self.changes[:survivors]:
            _apply(data, change)
        if survivors < len(self.changes):
            _apply(data, _torn(self.changes[survivors], chance))
        if chance.random() < 0.5:
            _forget_sectors(data, first, self.flushed, chance)
        self.data, self.flushed, self.changes = data, bytes(data), []
        self.cuts += 1


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


def _forget_sectors(data: bytearray, first: int, flushed: bytes, chance: random.Random) -> None:
    """The disk writes sectors in an order of its own: some of the changed ones are missing."""
    for start in range(first - first % SECTOR, len(data), SECTOR):
        if chance.random() < 0.5:
            end = min(start + SECTOR, len(data))
            data[start:end] = flushed[start:end].ljust(end - start, b"\0")


@dataclass(eq=False)
class _Directory:
    entries: "dict[str, _Content | _Directory]" = field(default_factory=dict)
    durable: "dict[str, _Content | _Directory]" = field(default_factory=dict)

    def sync(self) -> None:
        self.durable = dict(self.entries)

    def evict(self) -> None:
        for entry in self.entries.values():
            entry.evict()

    def lose_power(self, chance: random.Random) -> None:
        self.entries = dict(self.durable)
        for name in sorted(self.entries):
            self.entries[name].lose_power(chance)


class MemoryFile:
    """See `File`. After a crash of the disk, what was open is closed."""

    def __init__(self, disk: "MemoryDisk", content: _Content) -> None:
        self._disk = disk
        self._content = content
        self._life = disk.life
        self._flush_failure: FlushFailed | None = None

    def size(self) -> int:
        return len(self._content.data)

    def append(self, buffers: Sequence[Buffer]) -> int:
        self._check_open()
        data = b"".join(buffers)
        self._disk.before_write(len(data))
        position = len(self._content.data)
        self._change(data)
        return position

    def read(self, position: int, length: int) -> bytes:
        self._check_open()
        self._disk.before_read()
        return bytes(memoryview(self._content.data)[position : position + length])

    def truncate(self, size: int) -> None:
        self._check_open()
        self._disk.before_write(0)
        if size > len(self._content.data):
            self._change(bytes(size - len(self._content.data)))
        else:
            self._change(size)

    def flush(self) -> None:
        self._check_open()
        self._disk.before_write(0)
        if self._disk.fail_next_flush:
            self._disk.fail_next_flush = False
            self._content.fail_to_flush()
            self._flush_failure = flush_failed(_failure(errno.EIO))
        if self._flush_failure is not None:
            raise flush_failed(self._flush_failure)
        self._content.flush()

    def close(self) -> None:
        self._life = -1

    def _change(self, change: Change) -> None:
        self._content.change(change)
        self._content.modified_ms = self._disk.now_ms()

    def _check_open(self) -> None:
        if self._life != self._disk.life:
            raise _failure(errno.EBADF)


class MemoryLock:
    """Held until released, or until the crash of who holds it."""

    def __init__(self, disk: "MemoryDisk", path: str) -> None:
        self._disk = disk
        self._path = path

    def release(self) -> None:
        if self._disk.locks.get(self._path) is self:
            del self._disk.locks[self._path]


class MemoryDisk:
    """See the module, and `Disk`. `seed` decides what a power cut tears."""

    def __init__(self, seed: int = 0, now_ms: Callable[[], int] = lambda: 0) -> None:
        self.now_ms = now_ms
        self.life = 0
        self.losses = 0
        """How often it has forgotten something that was written."""
        self.locks: dict[str, MemoryLock] = {}
        self.free_bytes: int | None = None
        self.read_only = False
        self.broken = False
        self.fail_next_write = False
        self.fail_next_flush = False
        self._boots = 0
        self._chance = random.Random(seed)
        self._root = _Directory()

    def crash(self, keep_unflushed: bool) -> None:
        """End the life of every open file and lock, and forget as the module says."""
        self.life += 1
        self.locks.clear()
        if not keep_unflushed:
            self.losses += 1
            self._boots += 1
            self._root.lose_power(self._chance)

    def evict(self) -> None:
        """The page cache lets go of all that counts as clean; a failed flush is then seen."""
        self._root.evict()

    def wipe(self) -> None:
        """A new, empty disk is in its place; only between two lives of its owner."""
        self.life += 1
        self.locks.clear()
        self.losses += 1
        self._boots += 1
        self._root = _Directory()

    def lose_directory(self, path: str) -> None:
        """Somebody removed it with all that is in it; only between two lives of its owner."""
        directory, name = self._parent(path)
        del directory.entries[name]
        directory.sync()
        self.losses += 1

    def spoil(self, path: str) -> None:
        """Somebody's nonsense is in a file, durably; only between two lives of its owner."""
        node = self._find(path)
        assert isinstance(node, _Content)
        node.change(0)
        node.change(NONSENSE)
        node.flush()

    def repair(self) -> None:
        """No write fails any more."""
        self.free_bytes, self.read_only, self.broken = None, False, False
        self.fail_next_write = self.fail_next_flush = False

    def look_into(self, path: str) -> Mapping[str, Stored]:
        """The files of a directory as they are now, also on a disk that fails; for observers."""
        directory = self._find(path)
        if not isinstance(directory, _Directory):
            return {}
        return {n: node for n, node in directory.entries.items() if isinstance(node, _Content)}

    def directories(self, path: str) -> list[str]:
        """The names of the directories in a directory; for observers."""
        directory = self._find(path)
        entries = directory.entries if isinstance(directory, _Directory) else {}
        return sorted(name for name, node in entries.items() if isinstance(node, _Directory))

    # ---- faults

    def before_read(self) -> None:
        if self.broken:
            raise _failure(errno.EIO)

    def before_write(self, length: int) -> None:
        self.before_read()
        if self.fail_next_write and length:
            self.fail_next_write = False
            raise _failure(errno.EIO)
        if self.read_only:
            raise _failure(errno.EROFS)
        if self.free_bytes is not None:
            if length > self.free_bytes:
                raise _failure(errno.ENOSPC)
            self.free_bytes -= length

    # ---- Disk

    def open(self, path: str, *, create: bool = False) -> File:
        directory, name = self._parent(path)
        node = directory.entries.get(name)
        if isinstance(node, _Directory):
            raise _failure(errno.EISDIR)
        if node is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            self.before_write(0)
            node = directory.entries[name] = _Content(modified_ms=self.now_ms())
        return MemoryFile(self, node)

    def read_file(self, path: str) -> bytes:
        file = self.open(path)
        return file.read(0, file.size())

    def write_file(self, path: str, data: bytes, *, private: bool = False) -> None:
        temporary = path + ".tmp"
        self.remove(temporary)
        file = self.open(temporary, create=True)
        file.append([data])
        file.flush()
        self.rename(temporary, path)

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        return isinstance(self._find(path), _Directory)

    def list(self, path: str) -> list[str]:
        self.before_read()
        return sorted(self._directory(path).entries)

    def make_directory(self, path: str) -> None:
        directory = self._root
        for name in _names(path):
            node = directory.entries.get(name)
            if node is None:
                self.before_write(0)
                node = directory.entries[name] = _Directory()
                directory.sync()
            if not isinstance(node, _Directory):
                raise _failure(errno.ENOTDIR)
            directory = node

    def rename(self, old: str, new: str, *, sync: bool = True) -> None:
        source, old_name = self._parent(old)
        target, new_name = self._parent(new)
        if old_name not in source.entries:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), old)
        self.before_write(0)
        target.entries[new_name] = source.entries.pop(old_name)
        if sync:
            source.sync()
            target.sync()

    def remove(self, path: str) -> None:
        directory, name = self._parent(path)
        if isinstance(directory.entries.get(name), _Content):
            self.before_write(0)
            del directory.entries[name]

    def remove_tree(self, path: str) -> None:
        directory, name = self._parent(path)
        if name in directory.entries:
            self.before_write(0)
            del directory.entries[name]

    def modified_ms(self, path: str) -> int:
        node = self._find(path)
        if not isinstance(node, _Content):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node.modified_ms

    def sync_directory(self, path: str) -> None:
        self.before_write(0)
        self._directory(path).sync()

    def boot_id(self) -> str:
        return f"boot-{self._boots}"

    def lock(self, path: str) -> Lock:
        if path in self.locks:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), path)
        self.open(path, create=True)
        lock = self.locks[path] = MemoryLock(self, path)
        return lock

    def _find(self, path: str) -> _Content | _Directory | None:
        node: _Content | _Directory | None = self._root
        for name in _names(path):
            node = node.entries.get(name) if isinstance(node, _Directory) else None
        return node

    def _directory(self, path: str) -> _Directory:
        node = self._find(path)
        if not isinstance(node, _Directory):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def _parent(self, path: str) -> tuple[_Directory, str]:
        *parents, name = _names(path)
        return self._directory("/".join(parents)), name


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]
