"""The offset index, `.index`: from an offset to a position near it in the segment's `.log`.

Eight bytes an entry: the last offset of a batch, relative to the segment's base, and the position
where that batch starts. Sparse: an entry for every `index.interval.bytes` of log, never for the
segment's first batch. So a reader starts at the entry below, and walks from batch to batch.
"""

import struct
from typing import NamedTuple

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.index_file import IndexFile

SUFFIX = ".index"
_ENTRY = struct.Struct(">ii")


class OffsetPosition(NamedTuple):
    offset: int
    position: int


class OffsetIndex(IndexFile):
    def __init__(self, disk: Disk, path: str, base_offset: int, max_bytes: int) -> None:
        super().__init__(disk, path, _ENTRY, max_bytes)
        self.base_offset = base_offset

    @property
    def is_full(self) -> bool:
        return len(self) >= self.max_entries

    def add(self, last_offset: int, position: int) -> None:
        """Name a batch. A full index stays as it is: fewer entries only mean a longer walk."""
        if not self.is_full:
            self.append(last_offset - self.base_offset, position)

    def lookup(self, offset: int) -> OffsetPosition:
        """The highest entry at or below `offset`, or the start of the segment."""
        entry = self.floor(offset - self.base_offset)
        return self._absolute(entry)

    def last_entry(self) -> OffsetPosition:
        """The highest entry, or the start of the segment."""
        return self._absolute(self.last())

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at `offset` and above."""
        relative = offset - self.base_offset
        self.truncate(lambda entry: entry[0] < relative)

    def _absolute(self, entry: tuple[int, ...] | None) -> OffsetPosition:
        if entry is None:
            return OffsetPosition(self.base_offset, 0)
        return OffsetPosition(self.base_offset + entry[0], entry[1])
