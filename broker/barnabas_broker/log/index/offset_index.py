"""The offset index, `.index`: from an offset to a position near it in the segment's `.log`.

An entry has eight bytes: the last offset of a batch, relative to the segment's base, and the
position where that batch starts. There is one for every `index.interval.bytes` of the log, never
for the segment's first batch. A reader starts at the highest entry that is not above its offset,
and reads batch by batch.
"""

import struct
from typing import NamedTuple

from barnabas_broker.log.index.index_file import IndexFile

SUFFIX = ".index"


class OffsetPosition(NamedTuple):
    """An entry with its absolute offset, and the position in bytes in the `.log` file."""

    offset: int
    position: int


class OffsetIndex(IndexFile):
    """The offset index of one segment; offsets in calls and results are absolute."""

    _form = struct.Struct(">ii")
    _offset_field = 0

    @property
    def is_full(self) -> bool:
        return len(self) >= self.max_entries

    def add(self, last_offset: int, position: int) -> None:
        """Add a batch. A full index is not changed: fewer entries only make lookups longer."""
        if not self.is_full:
            self.append(last_offset - self.base_offset, position)

    def lookup(self, offset: int) -> OffsetPosition:
        """The highest entry at or below `offset`, or the start of the segment."""
        return self._absolute(self.floor(offset - self.base_offset))

    def last_entry(self) -> OffsetPosition:
        """The highest entry, or the start of the segment."""
        return self._absolute(self.last())

    def _absolute(self, entry: tuple[int, ...] | None) -> OffsetPosition:
        if entry is None:
            return OffsetPosition(self.base_offset, 0)
        return OffsetPosition(self.base_offset + entry[0], entry[1])
