"""The segments of one log, by base offset. Never empty: the last one is active."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from barnabas_broker.log.segment.segment import Segment


class SegmentList:
    """Ascending; `size` is that of the `.log` files, in bytes."""

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
        """The last segment whose base is not above `offset`, or the first one."""
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
        """The segment that holds `offset`, and all later ones."""
        return self._segments[max(bisect_right(self._bases, offset) - 1, 0) :]

    def add(self, segment: Segment) -> None:
        """Make `segment` the active one."""
        self._set([*self._segments, segment])

    def remove_first(self, count: int) -> list[Segment]:
        """Remove and return the oldest `count` segments."""
        removed = self._segments[:count]
        self._set(self._segments[count:])
        return removed

    def above(self, offset: int) -> list[Segment]:
        """The segments that start above `offset`, but never the first; the newest first."""
        return self._segments[: max(bisect_right(self._bases, offset), 1) - 1 : -1]

    def remove_above(self, offset: int) -> None:
        """Remove the segments that `above` returns."""
        self._set(self._segments[: max(bisect_right(self._bases, offset), 1)])

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Put `new` in the place of `old`, which are neighbours and sealed."""
        first = self._segments.index(old[0])
        self._set([*self._segments[:first], new, *self._segments[first + len(old) :]])

    def replace_all(self, segment: Segment) -> list[Segment]:
        """Make `segment` the only one; return the others, the newest first."""
        removed = self._segments[::-1]
        self._set([segment])
        return removed
