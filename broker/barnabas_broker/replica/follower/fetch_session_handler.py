"""The follower's side of an incremental fetch session (KIP-227).

It remembers what was sent to the leader, so that a request names only the partitions whose
positions changed since. An error drops the session; the next request opens one with all partitions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from barnabas_common.messages.fetch import FetchForgotten, FetchPartition, FetchRequest
from barnabas_common.topic_partition import TopicPartition


@dataclass(frozen=True)
class FetchLimits:
    """The limits of a follower's fetches: times in ms, sizes in bytes."""

    max_wait_ms: int
    min_bytes: int
    response_max_bytes: int
    partition_max_bytes: int


class FetchSessionHandler:
    """Successive sessions with the same leader."""

    def __init__(
        self, limits: FetchLimits, broker_id: int, broker_epoch: Callable[[], int]
    ) -> None:
        self._limits = limits
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._session_id = 0
        self._epoch = 0
        self._sent: dict[TopicPartition, FetchPartition] = {}
        self._moved: dict[TopicPartition, None] = {}
        self._gone: dict[TopicPartition, None] = {}

    @property
    def is_full(self) -> bool:
        """Whether the next request, or the one in flight, opens a session."""
        return self._session_id == 0

    def moved(self, key: TopicPartition) -> None:
        """Name the partition in the next request, because it is new or its position changed."""
        self._moved[key] = None
        self._gone.pop(key, None)

    def gone(self, key: TopicPartition) -> None:
        """Remove the partition from the session, permanently or until `moved`."""
        self._moved.pop(key, None)
        if key in self._sent:
            self._gone[key] = None

    def requested(self, key: TopicPartition) -> FetchPartition | None:
        """The position last sent to the leader, which its answer is about."""
        return self._sent.get(key)

    def reset(self) -> None:
        """Leave the session; the leader drops its side when a new one opens."""
        self._session_id = self._epoch = 0
        self._sent.clear()
        self._gone.clear()

    def opened(self, session_id: int) -> None:
        """Continue the session: the leader answered without a top-level error."""
        if session_id:
            self._session_id = session_id
            self._epoch += 1

    def request(
        self,
        positions: Mapping[TopicPartition, FetchPartition],
        longest_wait: float | None = None,
    ) -> FetchRequest:
        """Build the next request; `positions` are all partitions if `is_full`, else the moved ones.

        `longest_wait` limits, in seconds, how long the leader may park the request.
        """
        forgotten = [FetchForgotten(*key) for key in self._gone]
        for key in self._gone:
            self._sent.pop(key, None)
        self._gone.clear()
        self._moved.clear()
        self._sent.update(positions)
        limits = self._limits
        return FetchRequest(
            max_wait_ms=(
                limits.max_wait_ms
                if longest_wait is None
                else min(limits.max_wait_ms, round(longest_wait * 1000))
            ),
            min_bytes=limits.min_bytes,
            max_bytes=limits.response_max_bytes,
            replica_id=self._broker_id,
            replica_epoch=self._broker_epoch(),
            session_id=self._session_id,
            session_epoch=self._epoch,
            partitions=list(positions.values()),
            forgotten=forgotten,
        )

    def to_name(self) -> list[TopicPartition]:
        """The partitions whose positions changed since the last request."""
        return list(self._moved)
