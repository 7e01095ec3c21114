"""Which committed offsets have expired (`offsets.retention.minutes`)."""

from collections.abc import Callable, Container

from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.coordinator.group.committed.committed import Committed
from barnabas_broker.coordinator.group.records import NO_TIMESTAMP, OffsetValue
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.coordinator.group.subscription import CONSUMER_PROTOCOL_TYPE


def expired_offsets(
    committed: Committed,
    state: GroupState,
    protocol_type: str | None,
    subscribed_topics: frozenset[str] | None,
    state_timestamp_ms: int,
    now_ms: int,
    retention_ms: int,
) -> list[TopicPartition]:
    """The offsets that no member has needed for `retention_ms` (KIP-211).

    Of an empty group, counted from when it became empty. Of a group that never had members, from
    each commit. Of a stable group of consumers, from each commit, and only topics to which no
    member subscribes. Other groups keep everything.
    """

    def old(since_ms: Callable[[OffsetValue], int], kept: Container[str]) -> list[TopicPartition]:
        return [
            partition
            for partition, commit in committed.offsets.items()
            if partition.topic not in kept
            and not committed.is_pending(partition)
            and _is_old(commit.value, since_ms(commit.value), now_ms, retention_ms)
        ]

    if protocol_type is None:
        return old(_commit_time, ())
    if state is GroupState.EMPTY:
        if state_timestamp_ms == NO_TIMESTAMP:
            return old(_commit_time, ())
        return old(lambda _: state_timestamp_ms, ())
    if (
        state is GroupState.STABLE
        and protocol_type == CONSUMER_PROTOCOL_TYPE
        and subscribed_topics is not None
    ):
        return old(_commit_time, subscribed_topics)
    return []


def _commit_time(value: OffsetValue) -> int:
    return value.commit_timestamp_ms


def _is_old(value: OffsetValue, since_ms: int, now_ms: int, retention_ms: int) -> bool:
    if value.expire_timestamp_ms != NO_TIMESTAMP:
        return now_ms >= value.expire_timestamp_ms
    return now_ms - since_ms >= retention_ms
