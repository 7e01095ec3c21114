"""An index: entries of a fixed size, in ascending order of their first number.

The active segment keeps its entries in memory, in the format of the file, and saves them when it
is sealed: after a crash an index is rebuilt from the log anyway. The index of a sealed segment
takes no memory and no descriptor; a lookup is a binary search in the file, in the page cache.

`OffsetIndex` and `TimeIndex` define the entries.
"""

import struct
from collections.abc import Callable
from contextlib import closing
from typing import Any

from barnabas_broker.disk.disk import Disk, FlushFailed, flush_failed

EntryAt = Callable[[int], tuple[Any, ...]]


class IndexFile:
    """`max_bytes` is `segment.index.bytes`. I/O errors are OSError.

    A subclass sets the format of an entry, and which of its fields is the relative offset.
    """

    _form: struct.Struct
    _offset_field: int

    def __init__(self, disk: Disk, path: str, base_offset: int, max_bytes: int) -> None:
        self._disk = disk
        self.path = path
        self.base_offset = base_offset
        self.max_entries = max_bytes // self._form.size
        self._buffer: bytearray | None = bytearray()
        self._saved_size = 0
        self._is_durable = False
        self._flush_failure: FlushFailed | None = None

    def create(self) -> None:
        """Start with an empty file; an existing one is overwritten."""
        self._buffer = bytearray()
        with closing(self._disk.open(self.path, create=True)) as file:
            file.truncate(0)
        self._saved_size = 0
        self._is_durable = False

    def open_sealed(self) -> bool:
        """Open the file of a sealed segment; False if its size cannot be that of an index."""
        with closing(self._disk.open(self.path)) as file:
            self._saved_size = file.size()
        self._buffer = None
        self._is_durable = True
        return self._saved_size % self._form.size == 0

    def __len__(self) -> int:
        size = self._saved_size if self._buffer is None else len(self._buffer)
        return size // self._form.size

    @property
    def size_bytes(self) -> int:
        return len(self) * self._form.size

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

    def truncate_to(self, offset: int) -> None:
        """Remove the entries at `offset` and above."""
        buffer, form, relative = self._unsealed(), self._form, offset - self.base_offset
        while buffer:
            if form.unpack_from(buffer, len(buffer) - form.size)[self._offset_field] < relative:
                break
            del buffer[-form.size :]
            self._is_durable = False
        self._saved_size = min(self._saved_size, len(buffer))

    def unseal(self) -> None:
        """Read the entries into memory, so that they can be changed."""
        self._unsealed()

    def seal(self) -> None:
        """Save, and release the entries in memory. Not durable until `sync`."""
        self.save()
        self.forget()

    def forget(self) -> None:
        """Release the entries in memory, after `save`."""
        self._buffer = None

    def save(self) -> None:
        """Write the entries to the file."""
        buffer = self._unsealed()
        with closing(self._disk.open(self.path, create=True)) as file:
            self._is_durable &= file.size() == self._saved_size == len(buffer)
            kept = min(self._saved_size, file.size())
            if file.size() != kept:
                file.truncate(kept)
            if len(buffer) > kept:
                file.append([memoryview(buffer)[kept:]])
        self._saved_size = len(buffer)

    def sync(self) -> None:
        """fsync what was saved, unless it is durable. May run off the event loop after `seal`."""
        if self._is_durable:
            return
        if self._flush_failure is not None:
            raise flush_failed(self._flush_failure)
        try:
            with closing(self._disk.open(self.path)) as file:
                file.flush()
        except FileNotFoundError:  # the segment has been deleted
            return
        except FlushFailed as error:
            self._flush_failure = error
            raise
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
        with closing(self._disk.open(self.path)) as file:
            return use(lambda i: form.unpack(file.read(i * form.size, form.size)))
