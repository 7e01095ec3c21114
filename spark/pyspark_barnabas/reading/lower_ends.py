"""Whether a log that ends below a query's position has lost records. Plain decisions.

No leader names an end below that of its predecessor (KIP-207). But a client that has just started
may ask a broker that does not know yet that it no longer leads.
"""

from barnabas_common.topic_partition import TopicPartition

# A broker that no longer leads has learnt of it by then.
LAGGING_SECONDS = 40.0


class LowerEnds:
    """What one run of a query has seen; times in s, on any clock that does not run backwards."""

    def __init__(self) -> None:
        self._highest: dict[TopicPartition, int] = {}
        self._lower: dict[TopicPartition, tuple[float, int]] = {}

    def is_loss(self, tp: TopicPartition, position: int, end: int, now: float) -> bool:
        """Whether records below `position` are gone, now that the log is said to end at `end`.

        An end that rises is a leader's: the records that are gone are being replaced, and would
        soon be passed over.
        """
        reached = self._highest.get(tp, -1) >= position
        self._highest[tp] = max(end, self._highest.get(tp, -1))
        if end >= position:
            self._lower.pop(tp, None)
            return False
        since, before = self._lower.setdefault(tp, (now, end))
        return reached or end > before or now - since >= LAGGING_SECONDS
