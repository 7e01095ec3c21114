"""A model of a disk that can lose power: what a process reads, and what a power loss would leave.

Every file and every directory has two states. All reads see the first, the page cache. The second
is durable: `flush` copies a file's bytes to it, and `sync_directory` copies a directory's names. A
power loss leaves the durable state.

`PageCacheDisk` is the disk seam over this model, without I/O and without faults. `VolatileDisk`
adds the files that hold the durable state; the simulator's `MemoryDisk` adds the faults.
"""

import errno
import os
import posixpath
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from barnabas_broker.disk.disk import Buffer, File, FlushFailed, flush_failed


def disk_error(code: int, path: str | None = None) -> OSError:
    """The OSError of an errno, of its own class: FileNotFoundError for ENOENT."""
    return OSError(code, os.strerror(code), path) if path else OSError(code, os.strerror(code))


@dataclass(eq=False)
class Inode:
    """The content of a file under any name; `flushed` is durable once a directory names it."""

    data: bytearray = field(default_factory=bytearray)
    flushed: bytearray = field(default_factory=bytearray)
    common: int = 0  # how many leading bytes are known to be equal in both
    modified_ms: int = 0
    private: bool = False
    cuts: int = 0  # how often bytes were removed; between two cuts a file only grows

    def append(self, data: bytes) -> None:
        self.data += data

    def cut(self, size: int) -> None:
        """Remove the bytes from `size` on."""
        del self.data[size:]
        self.common = min(self.common, size)
        self.cuts += 1

    def flush(self) -> None:
        self.flushed[self.common :] = memoryview(self.data)[self.common :]
        self.common = len(self.data)


@dataclass(eq=False)
class Directory:
    """The names in a directory: those that a process sees, and those that are durable."""

    entries: "dict[str, Inode | Directory]" = field(default_factory=dict)
    durable: "dict[str, Inode | Directory]" = field(default_factory=dict)

    def sync(self) -> None:
        self.durable = dict(self.entries)


class CachedFile:
    """One open file; see `File`. A crash of the disk closes it."""

    __slots__ = ("_disk", "_flush_failure", "_incarnation", "inode")

    def __init__(self, disk: "PageCacheDisk", inode: Inode) -> None:
        self.inode = inode
        self._disk = disk
        self._incarnation = disk.incarnation
        self._flush_failure: FlushFailed | None = None

    def size(self) -> int:
        return len(self.inode.data)

    def append(self, buffers: Sequence[Buffer]) -> int:
        data = b"".join(buffers)
        with self._disk.mutex:
            self._check_open()
            position = self.size()
            self._disk.before_write(len(data), position + len(data))
            self._append(data)
            return position

    def read(self, position: int, length: int) -> bytes:
        with self._disk.mutex:
            self._check_open()
            self._disk.before_read()
            return bytes(memoryview(self.inode.data)[position : position + length])

    def truncate(self, size: int) -> None:
        with self._disk.mutex:
            self._check_open()
            self._disk.before_write()
            if size > self.size():
                self._append(bytes(size - self.size()))
            else:
                self.inode.cut(size)
                self.inode.modified_ms = self._disk.now_ms()

    def flush(self) -> None:
        with self._disk.mutex:
            self._check_open()
            self._disk.before_write()
            if self._flush_failure is None:
                try:
                    self._disk.flush(self.inode)
                except FlushFailed as error:
                    self._flush_failure = error
            if self._flush_failure is not None:
                raise flush_failed(self._flush_failure)

    def close(self) -> None:
        self._incarnation = -1

    def _append(self, data: bytes) -> None:
        self.inode.append(data)
        self.inode.modified_ms = self._disk.now_ms()

    def _check_open(self) -> None:
        if self._incarnation != self._disk.incarnation:
            raise disk_error(errno.EBADF)


class PageCacheDisk:
    """See the module, and `Disk`. `now_ms` stamps changes."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self.incarnation = 0
        self.mutex = threading.RLock()

    # ---- what each of the two disks adds

    def directory(self, path: str) -> Directory:
        """The directory at a path. Raises FileNotFoundError."""
        raise NotImplementedError

    def is_directory(self, path: str) -> bool:
        raise NotImplementedError

    def new_inode(self) -> Inode:
        return Inode(modified_ms=self.now_ms())

    def flush(self, inode: Inode) -> None:
        """Make a file's bytes durable; raises FlushFailed."""
        inode.flush()

    def before_read(self) -> None:
        """Raise an OSError if a read fails now."""

    def before_write(self, length: int = 0, size: int = 0) -> None:
        """Raise an OSError if a change fails now.

        An append adds `length` bytes, and the file then has `size`; other changes pass 0 for both.
        """

    # ---- Disk

    def open(self, path: str, *, create: bool = False) -> File:
        return self._open(path, create)

    def _open(self, path: str, create: bool = False) -> CachedFile:
        with self.mutex:
            directory, name = self._place(path)
            inode = directory.entries.get(name)
            if not isinstance(inode, Inode):
                if self.is_directory(path):
                    raise disk_error(errno.EISDIR, path)
                if not create:
                    raise disk_error(errno.ENOENT, path)
                self.before_write()
                inode = directory.entries[name] = self.new_inode()
            return CachedFile(self, inode)

    def read_file(self, path: str) -> bytes:
        file = self.open(path)
        return file.read(0, file.size())

    def write_file(self, path: str, data: bytes, *, private: bool = False) -> None:
        temporary = path + ".tmp"
        with self.mutex:
            self.remove(temporary)
            file = self._open(temporary, create=True)
            file.inode.private = private
            file.append([data])
            file.flush()
            self.rename(temporary, path)

    def exists(self, path: str) -> bool:
        with self.mutex:
            try:
                directory, name = self._place(path)
            except FileNotFoundError:
                return False
            return name in directory.entries or self.is_directory(path)

    def rename(self, old: str, new: str, *, sync: bool = True) -> None:
        with self.mutex:
            source, old_name = self._place(old)
            target, new_name = self._place(new)
            if old_name not in source.entries:
                raise disk_error(errno.ENOENT, old)
            self.before_write()
            target.entries[new_name] = source.entries.pop(old_name)
            if sync:
                self._sync(posixpath.dirname(new), target)
                self._sync(posixpath.dirname(old), source)

    def remove(self, path: str) -> None:
        with self.mutex:
            directory, name = self._place(path)
            if isinstance(directory.entries.get(name), Inode):
                self.before_write()
                del directory.entries[name]

    def modified_ms(self, path: str) -> int:
        with self.mutex:
            directory, name = self._place(path)
            inode = directory.entries.get(name)
            if not isinstance(inode, Inode):
                raise disk_error(errno.ENOENT, path)
            return inode.modified_ms

    def sync_directory(self, path: str) -> None:
        with self.mutex:
            self.before_write()
            self._sync(path, self.directory(path))

    def _sync(self, path: str, directory: Directory) -> None:
        """Make the names in a directory durable."""
        directory.sync()

    def _place(self, path: str) -> tuple[Directory, str]:
        parent, name = posixpath.split(path)
        return self.directory(parent), name
