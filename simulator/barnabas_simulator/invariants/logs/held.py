"""Which records of a compacted topic a log has had, whether they are still in it or not."""

from bisect import bisect_left, insort
from collections.abc import Iterable

from barnabas_simulator.labels import key_of


class Held:
    """The offsets of each key. A truncation takes records back; compaction does not."""

    def __init__(self) -> None:
        self._offsets: dict[bytes, list[int]] = {}

    def add(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Note offsets and labels that are in the log now."""
        for offset, label in records:
            key = key_of(label)
            if key is not None:
                offsets = self._offsets.setdefault(key, [])
                if not offsets or offsets[-1] < offset:
                    offsets.append(offset)
                elif offsets[bisect_left(offsets, offset)] != offset:
                    insort(offsets, offset)

    def newest_below(self, key: bytes, end: int) -> int:
        """The highest offset of a key below `end`, -1 without one."""
        offsets = self._offsets.get(key, [])
        index = bisect_left(offsets, end)
        return offsets[index - 1] if index else -1

    def truncate(self, end: int) -> None:
        """The log has ended at `end`."""
        for offsets in self._offsets.values():
            del offsets[bisect_left(offsets, end) :]
