"""The transaction index, `.txnindex`: the aborted transactions whose markers are in the segment.

There is no file until there is an entry. An entry has 34 bytes (Kafka's `AbortedTxn`):

     0  int16  version           0
     2  int64  producerId
    10  int64  firstOffset       of its first batch, perhaps in an earlier segment
    18  int64  lastOffset        of its marker
    26  int64  lastStableOffset  where the first transaction that was still open began

Entries are in the order of their markers. A reader of the offsets up to `end` needs none after the
first whose last stable offset is not below `end`: later ones began after it.
"""

import posixpath
import struct
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.index.index_file import EntryAt, IndexFile

SUFFIX = ".txnindex"
_VERSION = 0


class AbortedTxn(NamedTuple):
    """An entry without its version."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex(IndexFile):
    """The transaction index of one segment; offsets are absolute in the file too.

    `is_stale`: the entries are missing, and the log must be read for them.
    """

    _form = struct.Struct(">hqqqq")
    _offset_field = 3

    def __init__(self, disk: Disk, path: str) -> None:
        super().__init__(disk, path, 0, sys.maxsize)
        self.is_stale = False
        self._has_durable_name = False

    def create(self) -> None:
        """Start without entries, and without a file."""
        self._buffer = bytearray()
        self._disk.remove(self.path)
        self._saved_size = 0
        self._is_durable = self._has_durable_name = False

    def open_sealed(self) -> bool:
        """Open the file, if there is one."""
        if self._disk.exists(self.path):
            self._has_durable_name = True
            return super().open_sealed()
        self._buffer, self._saved_size, self._is_durable = None, 0, True
        return True

    def is_valid(self, start: int, end: int, begun_later: int) -> bool:
        """Whether the entries can be those of a segment with the offsets from `start` to `end`.

        `begun_later` is the lowest first offset in the indexes of later segments: nothing is stable
        from there on.
        """
        if any(version != _VERSION for version, *_ in self._all()):
            return False
        marker_behind = end
        for entry in reversed(self.entries()):
            if not (
                start <= entry.last_offset < marker_behind
                and 0 <= entry.first_offset < entry.last_offset
                and 0 <= entry.last_stable_offset <= min(begun_later, entry.last_offset + 1)
            ):
                return False
            marker_behind = entry.last_offset
            begun_later = min(begun_later, entry.first_offset)
        return True

    def add(self, entry: AbortedTxn) -> None:
        """Add a transaction whose marker is behind those of all others."""
        self.append(_VERSION, *entry)
        self._is_durable = False

    def entries(self) -> list[AbortedTxn]:
        """All entries."""
        return [AbortedTxn._make(fields) for _, *fields in self._all()]

    def ending_from(self, offset: int, end: int) -> list[AbortedTxn]:
        """The entries whose markers are at `offset` or above, up to the first after which a reader
        of the offsets below `end` needs none."""

        def find(entry_at: EntryAt) -> list[AbortedTxn]:
            low, high = 0, len(self)
            while low < high:
                middle = (low + high) // 2
                if entry_at(middle)[self._offset_field] < offset:
                    low = middle + 1
                else:
                    high = middle
            entries = []
            for number in range(low, len(self)):
                entries.append(AbortedTxn._make(entry_at(number)[1:]))
                if entries[-1].last_stable_offset >= end:
                    break
            return entries

        found: list[AbortedTxn] = self._with_entries(find) if len(self) else []
        return found

    def save(self) -> None:
        """Write the entries to the file; without any there need be none."""
        if self._unsealed() or self._saved_size or self._disk.exists(self.path):
            super().save()

    def sync(self) -> None:
        """fsync what was saved, and the name of a new file: an index without one is valid too."""
        if not (self._is_durable and self._has_durable_name) and self._has_file():
            super().sync()
            if not self._has_durable_name:
                self._disk.sync_directory(posixpath.dirname(self.path))
                self._has_durable_name = True

    def _has_file(self) -> bool:
        return len(self) > 0 or self._disk.exists(self.path)

    def _unsealed(self) -> bytearray:
        if self._buffer is None and not self._saved_size:
            self._buffer = bytearray()
        return super()._unsealed()

    def _all(self) -> Iterator[tuple[int, ...]]:
        if not len(self):
            return iter(())
        # A file is read at once: an entry alone costs a system call.
        data = self._disk.read_file(self.path) if self._buffer is None else bytes(self._buffer)
        return self._form.iter_unpack(data[: len(self) * self._form.size])


def aborted_between(
    indexes: Iterable[TransactionIndex], start: int, end: int
) -> Iterator[AbortedTxn]:
    """The aborted transactions with offsets from `start` to below `end`; perhaps a few more.

    `indexes` are those of the segment that holds `start` and of all later ones.
    """
    for index in indexes:
        for entry in index.ending_from(start, end):
            if entry.first_offset < end:
                yield entry
            if entry.last_stable_offset >= end:
                return
