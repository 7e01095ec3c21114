"""An index: entries of a fixed size, in ascending order of their first number.

A segment that is written to keeps its entries in memory, in the very bytes of the file, and saves
them when it is sealed: after a crash an index is rebuilt from the log anyway. A sealed one takes no
memory and no descriptor; a lookup halves its way through the file, which the page cache holds.

`OffsetIndex` and `TimeIndex` give the entries their meaning.
"""

import struct
from collections.abc import Callable
from typing import Any

from barnabas_broker.disk.disk import Disk, FlushFailed, flush_failed

EntryAt = Callable[[int], tuple[Any, ...]]


class IndexFile:
    """`max_bytes` is `segment.index.bytes`. I/O errors are OSError."""

    def __init__(self, disk: Disk, path: str, form: struct.Struct, max_bytes: int) -> None:
        self._disk = disk
        self.path = path
        self._form = form
        self.max_entries = max_bytes // form.size
        self._buffer: bytearray | None = bytearray()
        self._saved_size = 0
        self._is_durable = False
        self._flush_failure: FlushFailed | None = None

    def create(self) -> None:
        """Begin with an empty file, whatever was there."""
        self._buffer = bytearray()
        file = self._disk.open(self.path, create=True)
        try:
            file.truncate(0)
        finally:
            file.close()
        self._saved_size = 0

    def open_sealed(self) -> bool:
        """Take over the file of a sealed segment; whether its size can be that of an index."""
        file = self._disk.open(self.path)
        self._saved_size = file.size()
        file.close()
        self._buffer = None
        self._is_durable = True
        return self._saved_size % self._form.size == 0

    def __len__(self) -> int:
        size = self._saved_size if self._buffer is None else len(self._buffer)
        return size // self._form.size

    def append(self, *fields: int) -> None:
        """Add an entry; it must not be below the last one."""
        self._unsealed().extend(self._form.pack(*fields))

    def last(self) -> tuple[Any, ...] | None:
        """The highest entry, or None if there is none."""
        return self._with_entries(lambda entry_at: entry_at(len(self) - 1)) if len(self) else None

    def floor(self, number: int) -> tuple[Any, ...] | None:
        """The last entry whose first number is not above `number`, or None."""

        def find(entry_at: EntryAt) -> tuple[Any, ...] | None:
            low, high = 0, len(self)
            while low < high:
                middle = (low + high) // 2
                if entry_at(middle)[0] <= number:
                    low = middle + 1
                else:
                    high = middle
            return entry_at(low - 1) if low else None

        return self._with_entries(find) if len(self) else None

    def truncate(self, keep: Callable[[tuple[Any, ...]], bool]) -> None:
        """Drop entries from the end for as long as `keep` does not hold for the last one."""
        buffer = self._unsealed()
        while buffer and not keep(self._form.unpack_from(buffer, len(buffer) - self._form.size)):
            del buffer[-self._form.size :]
            self._is_durable = False
        self._saved_size = min(self._saved_size, len(buffer))

    def unseal(self) -> None:
        """Read the entries into memory, so that there can be more or fewer of them."""
        self._unsealed()

    def seal(self) -> None:
        """Save, and forget the entries in memory. Not durable until `sync`."""
        self.save()
        self._buffer = None

    def save(self) -> None:
        """Make the file exactly the entries."""
        buffer = self._unsealed()
        file = self._disk.open(self.path, create=True)
        self._is_durable &= file.size() == self._saved_size == len(buffer)
        try:
            kept = min(self._saved_size, file.size())
            if file.size() != kept:
                file.truncate(kept)
            if len(buffer) > kept:
                file.append([memoryview(buffer)[kept:]])
        finally:
            file.close()
        self._saved_size = len(buffer)

    def sync(self) -> None:
        """fsync what was saved, if it was not. It may run off the loop, after `seal`."""
        if self._is_durable:
            return
        if self._flush_failure is not None:
            raise flush_failed(self._flush_failure)
        try:
            file = self._disk.open(self.path)
        except FileNotFoundError:  # the segment has been deleted meanwhile
            return
        try:
            file.flush()
        except FlushFailed as error:
            self._flush_failure = error
            raise
        finally:
            file.close()
        self._is_durable = True

    def _unsealed(self) -> bytearray:
        if self._buffer is None:
            self._buffer = bytearray(self._disk.read_file(self.path))
            self._saved_size = len(self._buffer)
        return self._buffer

    def _with_entries(self, use: Callable[[EntryAt], Any]) -> Any:
        form, buffer = self._form, self._buffer
        if buffer is not None:
            return use(lambda i: form.unpack_from(buffer, i * form.size))
        file = self._disk.open(self.path)
        try:
            return use(lambda i: form.unpack(file.read(i * form.size, form.size)))
        finally:
            file.close()
