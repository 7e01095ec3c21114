"""The disk seam: the few things the log asks of a file system.

Two implementations: POSIX files, and the simulator's, which forgets what was not flushed and tears
the last write. All calls block; those that may take long (fsync, rename, deletion, recovery) are
offloaded by the caller, while appends and page-cache reads run inline in the event loop's turn.
Paths are absolute or relative strings with `/`. Failures raise OSError (ENOSPC, EIO, EROFS, ...).
"""

from collections.abc import Sequence
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class FlushFailed(OSError):
    """An fsync failed. Linux takes the pages for clean all the same, whatever the error was: they
    can still be read, no later fsync writes them, and they vanish with the page cache."""


def flush_failed(error: OSError) -> FlushFailed:
    """The error of an fsync as what it means."""
    return FlushFailed(error.errno, error.strerror)


class File(Protocol):
    """An open file that grows at its end."""

    def size(self) -> int:
        """Bytes, known without a system call."""
        ...

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Write the buffers one after the other at the end; returns the position they start at.

        If the write fails or is short, the file is cut back to its old size before the OSError
        is raised, so that a full disk leaves no torn batch behind a living process.
        """
        ...

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position`; fewer only at the end of the file."""
        ...

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes."""
        ...

    def flush(self) -> None:
        """fsync: what was written survives a power loss.

        Raises FlushFailed, and from then on always: the kernel tells of a loss only once.
        """
        ...

    def close(self) -> None: ...


class Lock(Protocol):
    """An exclusive lock on a file, held until released or until the process dies."""

    def release(self) -> None: ...


class Disk(Protocol):
    """A file system."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and appending; FileNotFoundError unless `create`."""
        ...

    def read_file(self, path: str) -> bytes:
        """The whole content; FileNotFoundError."""
        ...

    def write_file(self, path: str, data: bytes, *, private: bool = False) -> None:
        """Replace a small file atomically: `<path>.tmp`, fsync, rename, fsync of the directory.

        A `private` file can be read by its owner alone.
        """
        ...

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""
        ...

    def make_directory(self, path: str) -> None:
        """With its parents, durably; no error if it exists."""
        ...

    def rename(self, old: str, new: str, *, sync: bool = True) -> None:
        """Atomic, over an existing file too; made durable by an fsync of the parent directory.

        Without `sync` the caller does that later, by `sync_directory`.
        """
        ...

    def remove(self, path: str) -> None:
        """A file; no error if it is not there."""
        ...

    def remove_tree(self, path: str) -> None:
        """A directory with all it holds; no error if it is not there."""
        ...

    def modified_ms(self, path: str) -> int:
        """Time of the last change, in ms since 1970."""
        ...

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and deletions in a directory durable."""
        ...

    def boot_id(self) -> str:
        """Changes whenever what was written but not flushed may have been lost; empty: unknown."""
        ...

    def lock(self, path: str) -> Lock:
        """Take an exclusive lock; BlockingIOError if another process holds it."""
        ...
