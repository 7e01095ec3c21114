"""The disk seam: what the log needs from a file system.

Implementations: POSIX files, and two disks that model a power loss (`page_cache.py`). All calls
block. The caller offloads those that may take long (fsync, rename, deletion, recovery), while
appends and page-cache reads run on the event loop. Paths are absolute or relative strings with `/`.
Failures raise OSError (ENOSPC, EIO, EROFS, ...).
"""

import errno
from collections.abc import Sequence
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class FlushFailed(OSError):
    """An fsync failed. Linux counts the pages as clean nevertheless, whatever the error was: they
    can still be read, but no later fsync writes them, and they are lost with the page cache."""


def flush_failed(error: OSError) -> FlushFailed:
    """Return the error of an fsync as FlushFailed."""
    return FlushFailed(error.errno, error.strerror, error.filename)


def is_out_of_descriptors(error: OSError) -> bool:
    """Whether the process (EMFILE) or the machine (ENFILE) had no file descriptor left.

    Nothing was read or written then. The disk is sound, and the same call succeeds later.
    """
    return error.errno in (errno.EMFILE, errno.ENFILE) and not isinstance(error, FlushFailed)


class File(Protocol):
    """An open file that grows at its end."""

    def size(self) -> int:
        """The size in bytes, known without a system call."""
        ...

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Write the buffers one after the other at the end; returns their start position.

        If the write fails or is short, the file is truncated to its old size before the OSError
        is raised, so that a full disk leaves no torn batch while the process runs.
        """
        ...

    def read(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""
        ...

    def truncate(self, size: int) -> None:
        """Set the size to `size` bytes."""
        ...

    def flush(self) -> None:
        """fsync: what was written survives a power loss.

        After one FlushFailed every later call raises it too: the kernel reports a failure only
        once, so a later success would prove nothing.
        """
        ...

    def close(self) -> None: ...


class Lock(Protocol):
    """An exclusive lock on a file, held until released or until the process ends."""

    def release(self) -> None: ...


class Disk(Protocol):
    """A file system."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and appending. Without `create`, raises FileNotFoundError."""
        ...

    def read_file(self, path: str) -> bytes:
        """Return the whole content. Raises FileNotFoundError."""
        ...

    def write_file(self, path: str, data: bytes, *, private: bool = False) -> None:
        """Replace a small file atomically: `<path>.tmp`, fsync, rename, fsync of the directory.

        A `private` file can be read only by its owner.
        """
        ...

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        ...

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents durably; no error if it exists."""
        ...

    def rename(self, old: str, new: str, *, sync: bool = True) -> None:
        """Rename atomically, also over an existing file, with an fsync of both parent directories.

        The new one is first: after a power loss between the two the file has both names, not none.
        Without `sync` the caller makes it durable later, by `sync_directory`.
        """
        ...

    def remove(self, path: str) -> None:
        """Remove a file; no error if it does not exist."""
        ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory with its content; no error if it does not exist."""
        ...

    def modified_ms(self, path: str) -> int:
        """Return the time of the last change, in ms since 1970."""
        ...

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and deletions in a directory durable."""
        ...

    def boot_id(self) -> str:
        """Return an id that changes whenever unflushed data may be lost; empty if it is unknown."""
        ...

    def lock(self, path: str) -> Lock:
        """Take an exclusive lock. Raises BlockingIOError if another process holds it."""
        ...
