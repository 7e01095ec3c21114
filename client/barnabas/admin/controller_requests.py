"""Elections and reassignments: requests that go through the controller's event queue."""

from collections.abc import Iterable, Mapping, Sequence

from barnabas_common.errors import BarnabasError, InvalidArgumentError, error_for, raise_for
from barnabas_common.messages.elections import ElectLeadersRequest, ElectLeadersResponse
from barnabas_common.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingReassignment,
    PartitionName,
    ReassignPartition,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas.admin.events import NETWORK_MARGIN
from barnabas.cluster import Cluster
from barnabas.cluster.by_controller import ask_controller
from barnabas.cluster.options import (
    check_int,
    check_str,
    checked_brokers,
    checked_partition,
    checked_partitions,
)


async def elect(
    cluster: Cluster,
    election_type: str,
    partitions: Iterable[TopicPartition] | None,
    timeout_ms: int,
    patience: float,
) -> dict[TopicPartition, BarnabasError | None]:
    """For each partition None, or why it has no such leader."""
    check_str("election_type", election_type)
    check_int("timeout_ms", timeout_ms, 0, 2**31 - 1)
    request = ElectLeadersRequest(election_type, partitions is None, _names(partitions), timeout_ms)
    response: ElectLeadersResponse = await ask_controller(
        cluster, request, timeout_ms / 1000 + NETWORK_MARGIN, patience
    )
    raise_for(response.error_code, response.error_message or "election")
    return {
        TopicPartition(result.topic, result.partition): error_for(
            result.error_code, result.error_message
        )
        if result.error_code
        else None
        for result in response.partitions
    }


async def reassign(
    cluster: Cluster,
    reassignments: Mapping[TopicPartition, Sequence[int] | None],
    patience: float,
) -> None:
    """Start to move partitions; None cancels. Raises the first refusal."""
    if not isinstance(reassignments, Mapping):
        raise InvalidArgumentError(
            f"reassignments are {{(topic, number): [broker, ...]}}, not {reassignments!r}"
        )
    request = AlterPartitionReassignmentsRequest(
        [_reassign_partition(*item) for item in reassignments.items()]
    )
    response: AlterPartitionReassignmentsResponse = await ask_controller(
        cluster, request, cluster.request_timeout, patience
    )
    raise_for(response.error_code, response.error_message or "reassignment")
    for result in response.partitions:
        name = TopicPartition(result.topic, result.partition)
        raise_for(result.error_code, f"{name}: {result.error_message}")


async def ongoing_reassignments(
    cluster: Cluster, partitions: Iterable[TopicPartition] | None, patience: float
) -> dict[TopicPartition, OngoingReassignment]:
    """The reassignments of these partitions, or of all."""
    request = ListPartitionReassignmentsRequest(partitions is None, _names(partitions))
    response: ListPartitionReassignmentsResponse = await ask_controller(
        cluster, request, cluster.request_timeout, patience
    )
    raise_for(response.error_code, "list of reassignments")
    return {TopicPartition(found.topic, found.partition): found for found in response.partitions}


def _names(partitions: Iterable[TopicPartition] | None) -> list[PartitionName]:
    if partitions is None:
        return []
    return [PartitionName(*partition) for partition in checked_partitions(partitions)]


def _reassign_partition(
    partition: TopicPartition, replicas: Sequence[int] | None
) -> ReassignPartition:
    tp = checked_partition(partition)
    if replicas is None:
        return ReassignPartition(*tp, [], True)
    return ReassignPartition(*tp, checked_brokers(f"the replicas of {tp}", replicas), False)
