"""The disk seam over POSIX files.

Files are written with `pwritev` at a size kept here, so that an append is one system call and
knows its own position. All calls block.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import threading
from collections.abc import Iterator, Sequence

from barnabas_broker.disk.disk import Buffer, File, FlushFailed, Lock, flush_failed

_MOST_BUFFERS = os.sysconf("SC_IOV_MAX")
_CLOSED = -1
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def _fsync(descriptor: int, path: str) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        error.filename = path
        if error.errno == errno.EBADF:  # the file has been closed; nothing is lost
            raise
        raise flush_failed(error) from error


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    """Give errors of calls on a descriptor the file's path, as errors of calls on a path have."""
    try:
        yield
    except OSError as error:
        error.filename = path
        raise


class PosixFile:
    """One open file; see `File`."""

    __slots__ = ("_descriptor", "_flush_failure", "_flushing", "_path", "_size")

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor = descriptor
        self._path = path
        self._flushing = threading.Lock()  # both of two concurrent flushes must get a failure
        self._flush_failure: FlushFailed | None = None
        self._size = os.fstat(descriptor).st_size

    def size(self) -> int:
        return self._size

    def append(self, buffers: Sequence[Buffer]) -> int:
        start = self._size
        length = sum(map(len, buffers))
        try:
            written = 0
            if len(buffers) <= _MOST_BUFFERS:
                written = os.pwritev(self._descriptor, buffers, start)
            if written < length:
                self._write_rest(b"".join(buffers), start, written)
        except OSError as error:
            error.filename = self._path
            self._cut_back(start)
            raise
        self._size = start + length
        return start

    def _write_rest(self, data: bytes, start: int, written: int) -> None:
        """Continue a short write; its next part either succeeds or raises the cause."""
        view = memoryview(data)
        while written < len(data):
            more = os.pwrite(self._descriptor, view[written:], start + written)
            if more == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written += more

    def _cut_back(self, size: int) -> None:
        """Undo a failed append. A second error is ignored, because recovery truncates the rest."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, size)

    def read(self, position: int, length: int) -> bytes:
        try:
            return os.pread(self._descriptor, length, position)
        except OSError as error:
            error.filename = self._path
            raise

    def truncate(self, size: int) -> None:
        with _naming(self._path):
            os.ftruncate(self._descriptor, size)
        self._size = size

    def flush(self) -> None:
        with self._flushing:
            descriptor = self._descriptor
            if descriptor == _CLOSED:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            if self._flush_failure is None:
                try:
                    _fsync(descriptor, self._path)
                except FlushFailed as error:
                    self._flush_failure = error
            if self._flush_failure is not None:
                raise flush_failed(self._flush_failure)

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, _CLOSED
        if descriptor != _CLOSED:
            os.close(descriptor)


class PosixLock:
    """An `flock`: the kernel releases it when the process ends in any way."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, _CLOSED
        if descriptor != _CLOSED:
            os.close(descriptor)


class PosixDisk:
    """The machine's file system; see `Disk`."""

    def open(self, path: str, *, create: bool = False) -> File:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return PosixFile(os.open(path, flags, 0o644), path)

    def read_file(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write_file(self, path: str, data: bytes, *, private: bool = False) -> None:
        temporary = path + ".tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600 if private else 0o644)
        with _naming(temporary), open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            _fsync(file.fileno(), temporary)
        self.rename(temporary, path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_directory(self, path: str) -> None:
        if os.path.isdir(path):
            return
        parent = os.path.dirname(os.path.abspath(path))
        self.make_directory(parent)
        os.mkdir(path)
        try:
            self.sync_directory(parent)
        except OSError:
            os.rmdir(path)  # the next attempt would find it, and not make it durable
            raise

    def rename(self, old: str, new: str, *, sync: bool = True) -> None:
        os.rename(old, new)
        if sync:
            parents = [os.path.dirname(os.path.abspath(path)) for path in (new, old)]
            for parent in dict.fromkeys(parents):
                self.sync_directory(parent)

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def remove_tree(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _fsync(descriptor, path)
        finally:
            os.close(descriptor)

    def boot_id(self) -> str:
        try:
            return self.read_file(_BOOT_ID).decode("ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""

    def lock(self, path: str) -> Lock:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return PosixLock(descriptor)
