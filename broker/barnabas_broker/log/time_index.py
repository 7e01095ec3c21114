"""The time index, `.timeindex`: from a timestamp to an offset below which all records are older.

Twelve bytes an entry: the largest timestamp so far, and the last offset of the batch that has it,
relative to the segment's base. Written together with the offset index, if the largest timestamp has
grown since; and once more when the segment is sealed or the log closed, so that the last entry is
the largest timestamp of all.
"""

import struct
from typing import NamedTuple

from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.index_file import IndexFile

SUFFIX = ".timeindex"
NO_TIMESTAMP = -1
_ENTRY = struct.Struct(">qi")


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int


class TimeIndex(IndexFile):
    def __init__(self, disk: Disk, path: str, base_offset: int, max_bytes: int) -> None:
        super().__init__(disk, path, _ENTRY, max_bytes)
        self.base_offset = base_offset

    @property
    def is_full(self) -> bool:
        """One place is kept for the entry of the seal."""
        return len(self) >= self.max_entries - 1

    def add(self, timestamp: int, offset: int, even_if_full: bool = False) -> None:
        """Note the largest timestamp so far, if it is larger than the last noted."""
        if timestamp > self.last_entry().timestamp and (even_if_full or not self.is_full):
            self.append(timestamp, offset - self.base_offset)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The highest entry at or below `timestamp`, or the start of the segment."""
        return self._absolute(self.floor(timestamp))

    def last_entry(self) -> TimestampOffset:
        """The highest entry; without one, no timestamp and the segment's base."""
        return self._absolute(self.last())

    def truncate_to(self, offset: int) -> None:
        """Drop the entries of `offset` and above."""
        relative = offset - self.base_offset
        self.truncate(lambda entry: entry[1] < relative)

    def _absolute(self, entry: tuple[int, ...] | None) -> TimestampOffset:
        if entry is None:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return TimestampOffset(entry[0], self.base_offset + entry[1])
