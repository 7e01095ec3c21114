"""A disk whose page cache is this process's own memory, so that `kill -9` is a power loss.

Unflushed bytes, and names that no `sync_directory` made durable, exist only here and end with the
process. The files below hold what a machine without power would still hold. The disk is for labs
and tests, because it keeps the content of every directory that is used in memory.

A real power loss may leave more than this; here nothing unflushed survives, and no write is torn.
Directories are made, renamed and removed immediately, as a real file system may do.

                   append, truncate, create, rename, remove
        broker ───────────────────────────────────────────►  memory   (ends with the process)
               ───── flush, sync_directory, write_file ────►  files    (what a power loss leaves)
"""

import errno
import posixpath
import resource
from collections.abc import Callable

from barnabas_broker.disk.disk import Disk, Lock
from barnabas_broker.disk.page_cache import Directory, Inode, PageCacheDisk, disk_error

_UNFINISHED = ".tmp"


class VolatileDisk(PageCacheDisk):
    """See the module. `below` keeps what is durable; `now_ms` stamps changes."""

    def __init__(self, below: Disk, now_ms: Callable[[], int]) -> None:
        super().__init__(now_ms)
        self._below = below
        self._directories: dict[str, Directory] = {}

    # ---- the model

    def directory(self, path: str) -> Directory:
        """A directory's files; those that exist when it is first used are durable."""
        path = path or "."
        directory = self._directories.get(path)
        if directory is None:
            directory = Directory()
            for name in self._below.list(path):
                file = f"{path}/{name}"
                if self._below.is_directory(file):
                    continue
                if name.endswith(_UNFINISHED):  # the process was killed while it wrote the file
                    self._below.remove(file)
                else:
                    directory.entries[name] = self._load(file)
            directory.sync()
            self._directories[path] = directory
        return directory

    def _load(self, path: str) -> Inode:
        data = self._below.read_file(path)
        changed = self._below.modified_ms(path)
        return Inode(bytearray(data), bytearray(data), len(data), changed)

    def before_write(self, length: int = 0, size: int = 0) -> None:
        """Check the kernel's own limit, which a write that stays in memory would not meet."""
        limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        if limit != resource.RLIM_INFINITY and size > limit:
            raise disk_error(errno.EFBIG)

    # ---- what becomes durable

    def flush(self, inode: Inode) -> None:
        place = self._stored_at(inode)
        if place is not None:
            file = self._below.open(posixpath.join(*place))
            try:
                if file.size() > inode.common:
                    file.truncate(inode.common)
                file.append([memoryview(inode.data)[inode.common :]])
            finally:
                file.close()
        inode.flush()

    def _sync(self, path: str, directory: Directory) -> None:
        """Store the names that a process sees, new and moved ones first; then remove the others."""
        path = path or "."
        for name, inode in directory.entries.items():
            assert isinstance(inode, Inode)
            if directory.durable.get(name) is not inode:
                self._store(inode, path, name)
                directory.durable[name] = inode
        for name in [name for name in directory.durable if name not in directory.entries]:
            self._below.remove(f"{path}/{name}")
            del directory.durable[name]

    def _store(self, inode: Inode, path: str, name: str) -> None:
        place = self._stored_at(inode)
        if place is None:
            self._below.write_file(f"{path}/{name}", bytes(inode.flushed), private=inode.private)
        else:
            self._below.rename(posixpath.join(*place), f"{path}/{name}", sync=False)
            old_path, old_name = place
            del self._directories[old_path].durable[old_name]

    def _stored_at(self, inode: Inode) -> tuple[str, str] | None:
        """The directory and the name under which a file is durable."""
        for path, directory in self._directories.items():
            for name, stored in directory.durable.items():
                if stored is inode:
                    return path, name
        return None

    def _used_below(self, path: str) -> list[str]:
        return [used for used in self._directories if f"{used}/".startswith(f"{path}/")]

    # ---- Disk

    def is_directory(self, path: str) -> bool:
        return self._below.is_directory(path)

    def list(self, path: str) -> list[str]:
        with self.mutex:
            directory = self.directory(path)
            directories = [
                name
                for name in self._below.list(path)
                if name not in directory.durable and self._below.is_directory(f"{path}/{name}")
            ]
            return sorted([*directory.entries, *directories])

    def make_directory(self, path: str) -> None:
        self._below.make_directory(path)

    def rename(self, old: str, new: str, *, sync: bool = True) -> None:
        with self.mutex:
            if not self._below.is_directory(old):
                super().rename(old, new, sync=sync)
                return
            self._below.rename(old, new, sync=False)
            for path in self._used_below(old):
                self._directories[new + path[len(old) :]] = self._directories.pop(path)

    def remove_tree(self, path: str) -> None:
        with self.mutex:
            for used in self._used_below(path):
                del self._directories[used]
            self._below.remove_tree(path)

    def boot_id(self) -> str:
        return ""  # every end of the process is a power loss

    def lock(self, path: str) -> Lock:
        with self.mutex:
            lock = self._below.lock(path)
            directory, name = self._place(path)
            if name not in directory.durable:
                directory.entries[name] = directory.durable[name] = self.new_inode()
            return lock
