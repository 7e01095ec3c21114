"""Where the readers of a log will go on: from an offset to its place, without looking it up.

A follower or consumer asks for the offset after the last one it got. Remembering where each of the
last answers ended makes reading in order cost the same wherever in the segment it happens.
"""

from barnabas_broker.log.segment import Segment

_PLACES = 64


class PositionCache:
    """The last few places. To be cleared when segments are cut or removed."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[Segment, int]] = {}

    def get(self, offset: int) -> tuple[Segment, int] | None:
        """The segment and the position at which the batch with this offset begins."""
        return self._places.get(offset)

    def remember(self, offset: int, segment: Segment, position: int) -> None:
        places = self._places
        if offset not in places and len(places) >= _PLACES:
            del places[next(iter(places))]
        places[offset] = (segment, position)

    def clear(self) -> None:
        self._places.clear()
