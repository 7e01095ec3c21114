"""Committed offsets: how far a group has read, as its coordinator keeps it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from barnabas_common.errors import (
    BarnabasError,
    InvalidArgumentError,
    UnknownTopicOrPartitionError,
    error_for,
    raise_for,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchGroup,
    OffsetFetchPartition,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from barnabas_common.runtime import Clock
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster.cluster import UNKNOWN_TOPIC_GRACE
from barnabas.cluster.options import check_int, check_str, checked_partition
from barnabas.group.coordinator import GroupCoordinator
from barnabas.group.states import COMMIT, Generation


class OffsetAndMetadata(NamedTuple):
    """`offset` is that of the next record to read; `metadata` is the application's.

    `leader_epoch`: that of the last record read, or -1.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


Offsets = Mapping[TopicPartition, OffsetAndMetadata]
OnFailure = Callable[[BarnabasError], None]


class ConsumerGroupMetadata(NamedTuple):
    """For whom a producer commits offsets in its transaction (KIP-447).

    With a generation and a member the coordinator refuses what a member sends after others have
    taken its partitions. A group id alone is not checked.
    """

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str = ""


class CommitFailedError(BarnabasError):
    """This member is no longer in the group's generation: others read its partitions now.

    Records since the last commit will be read again. Poll to join again.
    """


def checked(
    offsets: Mapping[Any, int | OffsetAndMetadata],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """The caller's offsets; an int is an offset without metadata."""
    if not isinstance(offsets, Mapping):
        raise InvalidArgumentError(f"offsets are {{(topic, number): offset}}, not {offsets!r}")
    found = {}
    for partition, given in offsets.items():
        tp = checked_partition(partition)
        if isinstance(given, int):
            value = OffsetAndMetadata(given)
        elif isinstance(given, tuple) and 1 <= len(given) <= 3:
            value = OffsetAndMetadata(*given)
        else:
            raise InvalidArgumentError(f"the offset of {tp} must be an int, not {given!r}")
        check_int(f"the offset of {tp}", value.offset, 0)
        check_str(f"the metadata of {tp}", value.metadata)
        check_int(f"the leader epoch of {tp}", value.leader_epoch, -1, 2**31 - 1)
        found[tp] = value
    return found


def commit_request(
    coordinator: GroupCoordinator, generation: Generation, instance_id: str, offsets: Offsets,
    storage: str,
) -> OffsetCommitRequest:  # fmt: skip
    return OffsetCommitRequest(
        coordinator.group_id,
        generation.number,
        generation.member_id if generation.number >= 0 else "",
        instance_id if generation.number >= 0 else "",
        [
            OffsetCommitPartition(*tp, value.offset, value.leader_epoch, value.metadata)
            for tp, value in offsets.items()
        ],
        storage,
        coordinator.client_id,
    )


def commit_codes(response: OffsetCommitResponse) -> list[int]:
    return [result.error_code for result in response.partitions]


def commit_failure(response: OffsetCommitResponse) -> tuple[int, BarnabasError] | None:
    """The first partition's failure, as code and error; None if all succeeded."""
    for result in response.partitions:
        if result.error_code != ErrorCode.NONE:
            tp = TopicPartition(result.topic, result.partition)
            return result.error_code, error_for(result.error_code, f"commit of {tp}")
    return None


def give_up_unknown(clock: Clock) -> OnFailure:
    """Ends the attempts of a commit when one of its topics stays unknown, as it was deleted.

    It raises the failure once brokers have had the time to learn of a topic.
    """
    since: float | None = None

    def failed(failure: BarnabasError) -> None:
        nonlocal since
        if isinstance(failure, UnknownTopicOrPartitionError):
            since = clock.monotonic() if since is None else since
            if clock.monotonic() - since >= UNKNOWN_TOPIC_GRACE:
                raise failure

    return failed


async def commit(
    coordinator: GroupCoordinator, generation: Generation, instance_id: str, offsets: Offsets,
    storage: str, timeout: float, on_failure: OnFailure = lambda failure: None,
) -> OffsetCommitResponse:  # fmt: skip
    """Commit, and again until the coordinator accepts or refuses it, or `on_failure` raises."""
    request = commit_request(coordinator, generation, instance_id, offsets, storage)
    try:
        response: OffsetCommitResponse = await coordinator.ask(
            request, timeout, commit_codes, COMMIT, on_failure
        )
    except UnknownTopicOrPartitionError as error:
        named = ", ".join(map(str, offsets))
        raise UnknownTopicOrPartitionError(
            f"group {coordinator.group_id!r}: not all of these exist: {named}"
        ) from error
    return response


async def commit_once(
    coordinator: GroupCoordinator, generation: Generation, instance_id: str, offsets: Offsets,
    storage: str, timeout: float,
) -> OffsetCommitResponse:  # fmt: skip
    """Commit with a single attempt; the answer may hold any error."""
    request = commit_request(coordinator, generation, instance_id, offsets, storage)
    response: OffsetCommitResponse = await coordinator.call(request, timeout)
    return response


def _fetch_codes(response: OffsetFetchResponse) -> list[int]:
    return [
        code
        for group in response.groups
        for code in (group.error_code, *(found.error_code for found in group.partitions))
    ]


async def fetch_committed(
    coordinator: GroupCoordinator,
    partitions: Iterable[TopicPartition] | None,
    timeout: float,
    storage: str,
) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """What the group has committed, None where nothing; for `partitions`, or all it ever did.

    A member that begins to read partitions waits while their offsets are part of an open
    transaction: it would otherwise read again what the transaction has processed (KIP-447).
    """
    wanted = None if partitions is None else list(partitions)
    request = OffsetFetchRequest(
        [
            OffsetFetchGroup(
                coordinator.group_id,
                [OffsetFetchPartition(*tp) for tp in wanted or ()],
                all_topics=wanted is None,
            )
        ],
        require_stable=wanted is not None,
        storage=storage,
        client_id=coordinator.client_id,
    )
    response: OffsetFetchResponse = await coordinator.ask(request, timeout, _fetch_codes)
    found: dict[TopicPartition, OffsetAndMetadata | None] = dict.fromkeys(wanted or ())
    for group in response.groups:
        raise_for(group.error_code, f"group {coordinator.group_id!r}")
        for answer in group.partitions:
            tp = TopicPartition(answer.topic, answer.partition)
            raise_for(answer.error_code, str(tp))
            if answer.committed_offset >= 0:
                found[tp] = OffsetAndMetadata(
                    answer.committed_offset, answer.metadata, answer.committed_leader_epoch
                )
    return found
