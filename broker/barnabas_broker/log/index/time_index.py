"""The time index, `.timeindex`: from a timestamp to an offset below which all records are older.

An entry has twelve bytes: the largest timestamp so far, and the last offset of its batch, relative
to the segment's base. It is added together with an entry of the offset index, if the largest
timestamp has grown; and once more when the segment is sealed or the log closed, so that the last
entry has the largest timestamp of all.
"""

import struct
from typing import NamedTuple

from barnabas_broker.log.index.index_file import IndexFile

SUFFIX = ".timeindex"
NO_TIMESTAMP = -1


class TimestampOffset(NamedTuple):
    """An entry with its timestamp in ms and its absolute offset."""

    timestamp: int
    offset: int


class TimeIndex(IndexFile):
    """The time index of one segment; offsets in calls and results are absolute."""

    _form = struct.Struct(">qi")
    _offset_field = 1

    @property
    def is_full(self) -> bool:
        """One place is reserved for the last entry, added by the seal."""
        return len(self) >= self.max_entries - 1

    def add(self, timestamp: int, offset: int, even_if_full: bool = False) -> None:
        """Add the largest timestamp so far, if it is larger than that of the last entry."""
        if timestamp > self.last_entry().timestamp and (even_if_full or not self.is_full):
            self.append(timestamp, offset - self.base_offset)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The highest entry at or below `timestamp`, or the start of the segment."""
        return self._absolute(self.floor(timestamp))

    def last_entry(self) -> TimestampOffset:
        """The highest entry, or NO_TIMESTAMP and the segment's base."""
        return self._absolute(self.last())

    def _absolute(self, entry: tuple[int, ...] | None) -> TimestampOffset:
        if entry is None:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return TimestampOffset(entry[0], self.base_offset + entry[1])
