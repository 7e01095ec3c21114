"""How much of what is available one micro-batch reads: the admission control of Kafka's source.

`maxOffsetsPerTrigger` is shared out in proportion to what each partition has;
`minOffsetsPerTrigger` holds a batch back until there is enough, for `maxTriggerDelay` at most.
Plain functions on plain data.
"""

import math
from collections.abc import Mapping

from barnabas_common.topic_partition import TopicPartition

Positions = Mapping[TopicPartition, int]


def available(starts: Positions, ends: Positions) -> int:
    """The number of offsets from `starts` to `ends`."""
    return sum(max(end - starts[tp], 0) for tp, end in ends.items())


def share_out(limit: int, starts: Positions, ends: Positions) -> dict[TopicPartition, int]:
    """Return where a batch of about `limit` offsets ends.

    Each share is rounded down, but no partition that has records gets nothing: the sum is at most
    `limit`, and one offset for each partition whose share would be less than one.
    """
    total = available(starts, ends)
    if total <= limit:
        return dict(ends)
    found = {}
    for tp, end in ends.items():
        size = end - starts[tp]
        share = max(limit * size // total, 1) if size > 0 else 0
        found[tp] = min(starts[tp] + share, end) if size > 0 else end
    return found


class TriggerDelay:
    """Whether a batch is held back; times in ms, on any clock that does not run backwards.

    The first one never is, as in Kafka's source: the time of the last one is not known.
    """

    def __init__(self, min_offsets: int, max_delay_ms: int) -> None:
        self._min_offsets = min_offsets
        self._max_delay_ms = max_delay_ms
        self._last_ms = -math.inf

    def holds_back(self, offsets: int, now_ms: float) -> bool:
        """Whether `offsets` are too few for a batch now. If not, the delay begins again."""
        waited = now_ms - self._last_ms
        if offsets < self._min_offsets and waited < self._max_delay_ms:
            return True
        self._last_ms = now_ms
        return False
