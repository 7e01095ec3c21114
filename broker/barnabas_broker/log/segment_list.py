"""The segments of one log, by base offset. Never empty: the last one is the active one."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from barnabas_broker.log.segment import Segment


class SegmentList:
    """Ascending; `size` is in bytes, that of the `.log` files."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._set(list(segments))

    def _set(self, segments: list[Segment]) -> None:
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]
        self._sealed_size = sum(segment.size for segment in segments[:-1])

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __len__(self) -> int:
        return len(self._segments)

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def size(self) -> int:
        return self._sealed_size + self.active.size

    def holding(self, offset: int) -> Segment:
        """The last segment whose base is not above `offset`, or the first."""
        return self._segments[max(bisect_right(self._bases, offset) - 1, 0)]

    def after(self, segment: Segment) -> Segment | None:
        """The segment that follows, or None after the active one."""
        index = bisect_right(self._bases, segment.base_offset)
        return self._segments[index] if index < len(self._segments) else None

    def end_of(self, segment: Segment, log_end_offset: int) -> int:
        """The base of the next segment, or the log's end."""
        following = self.after(segment)
        return following.base_offset if following is not None else log_end_offset

    def from_offset(self, offset: int) -> list[Segment]:
        """The one holding `offset`, and all after it."""
        return self._segments[max(bisect_right(self._bases, offset) - 1, 0) :]

    def add(self, segment: Segment) -> None:
        """Make `segment` the active one."""
        self._set([*self._segments, segment])

    def remove_first(self, count: int) -> list[Segment]:
        """Take the oldest `count` out."""
        removed = self._segments[:count]
        self._set(self._segments[count:])
        return removed

    def remove_above(self, offset: int) -> list[Segment]:
        """Take out those that begin above `offset`, and return them, the newest first."""
        kept = max(bisect_right(self._bases, offset), 1)
        removed = self._segments[kept:]
        self._set(self._segments[:kept])
        return removed[::-1]

    def replace_all(self, segment: Segment) -> list[Segment]:
        """Let `segment` be the only one; the others are returned, the newest first."""
        removed = self._segments[::-1]
        self._set([segment])
        return removed
