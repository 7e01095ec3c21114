"""Requests about consumer groups: to the coordinator of each; a listing to all brokers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas_common.errors import (
    BarnabasError,
    KafkaError,
    NotApplied,
    UnknownTopicOrPartitionError,
    raise_for,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetDeletePartition,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from barnabas_common.runtime import Service
from barnabas_common.topic_partition import TopicPartition

from barnabas.admin.repeating import every_broker
from barnabas.cluster import Cluster
from barnabas.group.awaiting import Awaiting, awaiting_of
from barnabas.group.coordinator import GroupCoordinator
from barnabas.group.offsets import (
    OffsetAndMetadata,
    Offsets,
    commit,
    commit_failure,
    commit_once,
    fetch_committed,
    give_up_unknown,
)
from barnabas.group.protocol import MalformedProtocol, decode_assignment, decode_subscription
from barnabas.group.states import Generation

_CLIENT = "admin"
# A coordinator may answer with one of these after the append.
_AFTER_AN_APPEND = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class _Removal:
    """The attempts of one request that removes a group or offsets.

    A failed attempt may have removed them; the next one then finds no group.
    """

    def __init__(self) -> None:
        self._maybe_done = False

    def failed(self, failure: BarnabasError) -> None:
        """Note an attempt that failed."""
        if isinstance(failure, KafkaError):
            self._maybe_done |= failure.code in _AFTER_AN_APPEND
        else:
            self._maybe_done |= not isinstance(failure, NotApplied)

    def check(self, code: int, what: str) -> None:
        """Raise for the outcome of the last attempt, unless it shows that an earlier one was
        carried out."""
        if not (self._maybe_done and code == ErrorCode.GROUP_ID_NOT_FOUND):
            raise_for(code, what)


@dataclass(frozen=True)
class GroupMemberDescription:
    """`topics`: what it subscribes to; `assignment`: what it reads."""

    member_id: str
    group_instance_id: str
    client_id: str
    host: str
    topics: tuple[str, ...]
    assignment: tuple[TopicPartition, ...]


@dataclass(frozen=True)
class GroupDescription:
    """`state` is Kafka's: Empty, PreparingRebalance, CompletingRebalance, Stable, Dead.

    `assignor`: the protocol that the group has selected; `coordinator`: a broker's id; `awaiting`:
    whom its rebalance waits for.
    """

    group_id: str
    state: str
    assignor: str
    protocol_type: str
    coordinator: int
    members: tuple[GroupMemberDescription, ...]
    generation: int
    awaiting: Awaiting


async def list_groups(
    cluster: Cluster, states: Sequence[str], storage: str, timeout: float
) -> list[ListedGroup]:
    """The groups of all brokers, by name; raises if one of them does not answer in time."""
    request = ListGroupsRequest(list(states), storage, _CLIENT)

    async def ask(broker_id: int, seconds: float) -> list[ListedGroup]:
        channel = cluster.channel(broker_id, Service.COORDINATOR)
        answer: ListGroupsResponse = await channel.call(request, seconds)
        raise_for(answer.error_code, f"broker {broker_id}")
        return answer.groups

    answers = await every_broker(cluster, ask, timeout, "not every broker listed its groups")
    found = {group.group_id: group for answer in answers for group in answer}
    return [found[group_id] for group_id in sorted(found)]


async def describe_group(cluster: Cluster, group_id: str, timeout: float) -> GroupDescription:
    """State Dead: there is no such group."""
    coordinator = GroupCoordinator(cluster, group_id, _CLIENT)
    request = DescribeGroupsRequest([group_id], _CLIENT)
    response: DescribeGroupsResponse = await coordinator.ask(request, timeout, _codes_of_groups)
    (group,) = response.groups
    if group.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
        raise_for(group.error_code, f"group {group_id!r}")
    return GroupDescription(
        group_id,
        group.group_state,
        group.protocol_data,
        group.protocol_type,
        coordinator.broker_id,
        tuple(_member(member) for member in group.members),
        group.generation_id,
        awaiting_of(group),
    )


def _codes_of_groups(response: Any) -> list[int]:
    groups: list[DescribedGroup] = response.groups
    return [group.error_code for group in groups]


def _member(member: DescribedGroupMember) -> GroupMemberDescription:
    """Bytes of another kind of group (a protocol type of its own) are no topics here."""
    try:
        topics = (
            decode_subscription(member.member_metadata).topics if member.member_metadata else ()
        )
        assignment = decode_assignment(member.member_assignment)
    except MalformedProtocol:
        topics, assignment = (), []
    return GroupMemberDescription(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        tuple(topics),
        tuple(assignment),
    )


async def delete_group(cluster: Cluster, group_id: str, storage: str, timeout: float) -> None:
    """The group and its offsets; `NonEmptyGroupError` while it has members."""
    coordinator = GroupCoordinator(cluster, group_id, _CLIENT)
    request = DeleteGroupsRequest([group_id], storage, _CLIENT)
    removal = _Removal()
    response: DeleteGroupsResponse = await coordinator.ask(
        request,
        timeout,
        lambda answer: [result.error_code for result in answer.results],
        on_failure=removal.failed,
    )
    for result in response.results:
        removal.check(result.error_code, f"group {group_id!r}")


async def group_offsets(
    cluster: Cluster, group_id: str, storage: str, timeout: float
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Everything the group has committed."""
    coordinator = GroupCoordinator(cluster, group_id, _CLIENT)
    found = await fetch_committed(coordinator, None, timeout, storage)
    return {tp: committed for tp, committed in sorted(found.items()) if committed is not None}


async def alter_group_offsets(
    cluster: Cluster, group_id: str, offsets: Offsets, storage: str, timeout: float
) -> None:
    """As a consumer outside the group: refused while the group has members."""
    coordinator = GroupCoordinator(cluster, group_id, _CLIENT)
    arguments = (coordinator, Generation(), "", offsets, storage)
    try:
        response = await commit(*arguments, timeout, give_up_unknown(cluster.clock))
    except UnknownTopicOrPartitionError:
        # The answer names the partition.
        response = await commit_once(*arguments, cluster.request_timeout)
    failure = commit_failure(response)
    if failure is not None:
        code, error = failure
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            raise type(error)(f"group {group_id!r} has members: stop them first") from error
        raise error


async def delete_group_offsets(
    cluster: Cluster, group_id: str, partitions: Iterable[TopicPartition], timeout: float
) -> None:
    """`GroupSubscribedToTopicError` for partitions that members read."""
    coordinator = GroupCoordinator(cluster, group_id, _CLIENT)
    request = OffsetDeleteRequest(
        group_id, [OffsetDeletePartition(*tp) for tp in partitions], _CLIENT
    )
    removal = _Removal()
    response: OffsetDeleteResponse = await coordinator.ask(
        request, timeout, lambda answer: [answer.error_code], on_failure=removal.failed
    )
    removal.check(response.error_code, f"group {group_id!r}")
    for result in response.partitions:
        raise_for(result.error_code, f"{result.topic}-{result.partition}")
