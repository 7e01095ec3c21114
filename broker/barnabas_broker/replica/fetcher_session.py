"""The follower's side of an incremental fetch session (KIP-227).

Remembers what the leader was told, so that a request names only the partitions that moved since;
anything unexpected drops the session, and the next request opens a new one with all partitions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from barnabas.messages.fetch import FetchForgotten, FetchPartition, FetchRequest
from barnabas.topic_partition import TopicPartition


@dataclass(frozen=True)
class FetchLimits:
    """What a follower asks for: times in ms, sizes in bytes."""

    max_wait_ms: int
    min_bytes: int
    response_max_bytes: int
    partition_max_bytes: int


class FetcherSession:
    """One session after the other with the same leader."""

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
        """Whether the next request, or the one just out, opens a session."""
        return self._session_id == 0

    def moved(self, key: TopicPartition) -> None:
        """The position changed, or the partition is new here or back from a pause."""
        self._moved[key] = None
        self._gone.pop(key, None)

    def gone(self, key: TopicPartition) -> None:
        """Not to be fetched any more, or not for now."""
        self._moved.pop(key, None)
        if key in self._sent:
            self._gone[key] = None

    def requested(self, key: TopicPartition) -> FetchPartition | None:
        """What the leader was last told of a partition: what its answer is about."""
        return self._sent.get(key)

    def reset(self) -> None:
        """Forget the session; the leader drops its side when a new one opens."""
        self._session_id = self._epoch = 0
        self._sent.clear()
        self._gone.clear()

    def opened(self, session_id: int) -> None:
        """The leader answered without an error of the whole request."""
        if session_id:
            self._session_id = session_id
            self._epoch += 1

    def request(
        self,
        positions: Mapping[TopicPartition, FetchPartition],
        longest_wait: float | None = None,
    ) -> FetchRequest:
        """The next request; `positions` are all partitions if `is_full`, else those of `moved`.

        `longest_wait`: the leader must not park it for more seconds than that.
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

    def position(
        self, key: TopicPartition, leader_epoch: int, offsets: "FetchOffsets"
    ) -> FetchPartition:
        """One partition as it travels."""
        return FetchPartition(
            *key,
            fetch_offset=offsets.fetch_offset,
            current_leader_epoch=leader_epoch,
            max_bytes=self._limits.partition_max_bytes,
            last_fetched_epoch=offsets.last_fetched_epoch,
            log_start_offset=offsets.log_start_offset,
        )


@dataclass(slots=True)
class FetchOffsets:
    """Where a follower reads next, the epoch of its last record, and where its log starts."""

    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
