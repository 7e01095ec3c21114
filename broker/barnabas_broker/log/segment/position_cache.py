"""The positions where readers of a log will continue, so that they need no index lookup.

A follower or consumer asks for the offset after the last one it got. With the ends of the last
reads, sequential reading costs the same at any position of a segment.
"""

from barnabas_broker.log.segment.segment import Segment

_PLACES = 64


class PositionCache:
    """The ends of the last reads. Must be cleared when segments are truncated or removed."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[Segment, int]] = {}

    def get(self, offset: int) -> tuple[Segment, int] | None:
        """The segment and the position at which the batch with this offset starts."""
        return self._places.get(offset)

    def remember(self, offset: int, segment: Segment, position: int) -> None:
        places = self._places
        if offset not in places and len(places) >= _PLACES:
            del places[next(iter(places))]
        places[offset] = (segment, position)

    def clear(self) -> None:
        self._places.clear()
