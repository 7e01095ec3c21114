"""A disk whose page cache is this process's own memory, so that `kill -9` is a power loss.

What was not flushed, and names that no `sync_directory` made durable, exist here alone and die with
the process; the files below hold what a machine without power would still hold. For labs and tests:
all that is touched is held in memory. No fsync is done below, for only this process is killed.

Of what a real power loss may leave, this is always the least: nothing unflushed survives, no write
is torn. Directories are made, renamed and removed at once, as a real one may have done.

                   append, truncate, create, rename, remove
        broker ───────────────────────────────────────────►  memory   (dies with the process)
               ───── flush, sync_directory, write_file ────►  files    (what a power loss leaves)
"""

import errno
import os
import posixpath
import resource
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from barnabas_broker.disk.disk import Buffer, Disk, File, Lock

_NEW = ".volatile"


class _Inode:
    """What a file holds, whatever its name is. `stored_at`: where its flushed copy lies.

    The first `common` bytes are the same in both. Without a durable name the copy is `flushed`.
    """

    def __init__(self, data: bytes, modified_ms: int, stored_at: str | None) -> None:
        self.data = bytearray(data)
        self.modified_ms = modified_ms
        self.stored_at = stored_at
        self.common = len(data)
        self.flushed = b""


class _Folder:
    """The names in one directory: as the process sees them, and as they are stored."""

    def __init__(self) -> None:
        self.seen: dict[str, _Inode] = {}
        self.stored: dict[str, _Inode] = {}


class VolatileFile:
    """One open file; see `File`."""

    __slots__ = ("_closed", "_disk", "_inode")

    def __init__(self, disk: "VolatileDisk", inode: _Inode) -> None:
        self._disk = disk
        self._inode = inode
        self._closed = False

    def size(self) -> int:
        return len(self._inode.data)

    def append(self, buffers: Sequence[Buffer]) -> int:
        with self._open() as inode:
            start = len(inode.data)
            data = b"".join(buffers)
            _check_file_size(start + len(data))
            inode.data += data
            inode.modified_ms = self._disk.now_ms()
            return start

    def read(self, position: int, length: int) -> bytes:
        with self._open() as inode:
            return bytes(memoryview(inode.data)[position : position + length])

    def truncate(self, size: int) -> None:
        with self._open() as inode:
            del inode.data[size:]
            inode.data += bytes(size - len(inode.data))
            inode.common = min(inode.common, size)
            inode.modified_ms = self._disk.now_ms()

    def flush(self) -> None:
        with self._open() as inode:
            self._disk.store(inode)

    def close(self) -> None:
        self._closed = True

    @contextmanager
    def _open(self) -> Iterator[_Inode]:
        if self._closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        with self._disk.mutex:
            yield self._inode


class VolatileDisk:
    """See the module, and `Disk`. `below` keeps what is durable; `now_ms` stamps changes."""

    def __init__(self, below: Disk, now_ms: Callable[[], int]) -> None:
        self.mutex = threading.RLock()
        self.now_ms = now_ms
        self._below = below
        self._folders: dict[str, _Folder] = {}

    def store(self, inode: _Inode) -> None:
        """Flush: bring the stored copy up to date."""
        if inode.stored_at is None:
            inode.flushed = bytes(inode.data)
        else:
            file = self._below.open(inode.stored_at)
            try:
                if file.size() > inode.common:
                    file.truncate(inode.common)
                file.append([memoryview(inode.data)[inode.common :]])
            finally:
                file.close()
        inode.common = len(inode.data)

    # ---- Disk

    def open(self, path: str, *, create: bool = False) -> File:
        with self.mutex:
            folder, name = self._place(path)
            inode = folder.seen.get(name)
            if inode is None:
                if self._below.is_directory(path):
                    raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
                if not create:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
                inode = folder.seen[name] = _Inode(b"", self.now_ms(), None)
            return VolatileFile(self, inode)

    def read_file(self, path: str) -> bytes:
        file = self.open(path)
        return file.read(0, file.size())

    def write_file(self, path: str, data: bytes, *, private: bool = False) -> None:
        with self.mutex:
            folder, name = self._place(path)
            self._sync(folder, posixpath.dirname(path))
            if name in folder.stored:
                self._detach(folder.stored[name])
            self._below.write_file(path, data, private=private)
            inode = _Inode(data, self.now_ms(), path)
            folder.seen[name] = folder.stored[name] = inode

    def exists(self, path: str) -> bool:
        with self.mutex:
            if self._below.is_directory(path):
                return True
            try:
                folder, name = self._place(path)
            except FileNotFoundError:
                return False
            return name in folder.seen

    def is_directory(self, path: str) -> bool:
        return self._below.is_directory(path)

    def list(self, path: str) -> list[str]:
        with self.mutex:
            folder = self._folder(path)
            directories = [
                name
                for name in self._below.list(path)
                if name not in folder.stored and self._below.is_directory(f"{path}/{name}")
            ]
            return sorted([*folder.seen, *directories])

    def make_directory(self, path: str) -> None:
        self._below.make_directory(path)

    def rename(self, old: str, new: str, *, sync: bool = True) -> None:
        with self.mutex:
            if self._below.is_directory(old):
                self._rename_directory(old, new)
                return
            source, old_name = self._place(old)
            target, new_name = self._place(new)
            if old_name not in source.seen:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), old)
            target.seen[new_name] = source.seen.pop(old_name)
            if sync:
                self._sync(target, posixpath.dirname(new))
                self._sync(source, posixpath.dirname(old))

    def _rename_directory(self, old: str, new: str) -> None:
        self._below.rename(old, new, sync=False)
        for path in [path for path in self._folders if f"{path}/".startswith(f"{old}/")]:
            folder = self._folders.pop(path)
            self._folders[new + path[len(old) :]] = folder
            for name, inode in folder.stored.items():
                inode.stored_at = f"{new}{path[len(old) :]}/{name}"

    def remove(self, path: str) -> None:
        with self.mutex:
            folder, name = self._place(path)
            folder.seen.pop(name, None)

    def remove_tree(self, path: str) -> None:
        with self.mutex:
            for known in [known for known in self._folders if f"{known}/".startswith(f"{path}/")]:
                for inode in self._folders.pop(known).stored.values():
                    inode.stored_at = None
            self._below.remove_tree(path)

    def modified_ms(self, path: str) -> int:
        with self.mutex:
            folder, name = self._place(path)
            if name not in folder.seen:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return folder.seen[name].modified_ms

    def sync_directory(self, path: str) -> None:
        with self.mutex:
            self._sync(self._folder(path), path)

    def boot_id(self) -> str:
        return ""  # every end of the process is a loss of power

    def lock(self, path: str) -> Lock:
        with self.mutex:
            lock = self._below.lock(path)
            folder, name = self._place(path)
            if name not in folder.stored:
                folder.seen[name] = folder.stored[name] = _Inode(b"", self.now_ms(), path)
            return lock

    # ---- names

    def _place(self, path: str) -> tuple[_Folder, str]:
        directory, name = posixpath.split(path)
        return self._folder(directory or "."), name

    def _folder(self, path: str) -> _Folder:
        """A directory's names; those it has when it is first looked at are the stored ones."""
        folder = self._folders.get(path)
        if folder is None:
            folder = _Folder()
            for name in self._below.list(path):
                file = f"{path}/{name}"
                if name.endswith(_NEW):  # its process died before it had its name
                    self._below.remove(file)
                elif not self._below.is_directory(file):
                    data, changed = self._below.read_file(file), self._below.modified_ms(file)
                    folder.stored[name] = _Inode(data, changed, file)
            folder.seen = dict(folder.stored)
            self._folders[path] = folder
        return folder

    def _sync(self, folder: _Folder, path: str) -> None:
        """Make the stored names those that are seen: new and moved ones first, then the gone."""
        gone = {name: inode for name, inode in folder.stored.items() if name not in folder.seen}
        for name, inode in folder.seen.items():
            if folder.stored.get(name) is not inode:
                self._store_name(folder, inode, f"{path}/{name}")
        for name, inode in gone.items():
            if inode.stored_at == f"{path}/{name}":
                self._detach(inode)
                self._below.remove(f"{path}/{name}")
        folder.stored = dict(folder.seen)

    def _store_name(self, folder: _Folder, inode: _Inode, path: str) -> None:
        replaced = folder.stored.get(posixpath.basename(path))
        if replaced is not None and replaced.stored_at == path:
            self._detach(replaced)
        if inode.stored_at is None:
            inode.stored_at = path + _NEW
            file = self._below.open(inode.stored_at, create=True)
            file.truncate(0)
            file.append([inode.flushed])
            file.close()
            inode.flushed = b""
        self._below.rename(inode.stored_at, path, sync=False)
        inode.stored_at = path

    def _detach(self, inode: _Inode) -> None:
        """Keep the flushed copy here: another file is about to take its place."""
        assert inode.stored_at is not None
        inode.flushed = self._below.read_file(inode.stored_at)
        inode.stored_at = None


def _check_file_size(size: int) -> None:
    """The kernel's own limit, which a write that stays in memory would not meet."""
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY and size > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
