"""Creating, growing and deleting topics: any broker takes the first and the last, and the
controller has the second, for it must wait for its turn among reassignments.

A request that may have been applied is not sent again; one that was refused because there is no
controller is.
"""

import asyncio
from collections.abc import Mapping, Sequence

from barnabas.admin.events import NETWORK_MARGIN
from barnabas.cluster import Cluster
from barnabas.cluster.by_controller import ask_controller
from barnabas.cluster.options import check_int
from barnabas.error_code import ErrorCode
from barnabas.errors import NotControllerError, raise_for
from barnabas.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewPartitions,
    ReplicaAssignment,
    TopicResult,
)


def assigned(assignments: Mapping[int, Sequence[int]] | None) -> list[ReplicaAssignment]:
    """The brokers of each partition, as requests name them."""
    return [ReplicaAssignment(p, list(ids)) for p, ids in (assignments or {}).items()]


async def change_topics(
    cluster: Cluster, request: CreateTopicsRequest | DeleteTopicsRequest, patience: float
) -> list[TopicResult]:
    """Ask, and again for `patience` s while the asked broker knows no controller.

    Raises the first refusal, once the others are carried out.
    """
    timeout = _timeout(request.timeout_ms)
    deadline = cluster.clock.monotonic() + patience
    failures = 0
    while True:
        response = await cluster.ask(request, timeout)
        if not _controller_is_missing(response):
            return _all_or_raise(list(response.topics))
        failures += 1
        pause = cluster.backoff.seconds(failures)
        if cluster.clock.monotonic() + pause >= deadline:
            raise NotControllerError("there is no controller now")
        await asyncio.sleep(pause)


async def grow_topic(
    cluster: Cluster, new: NewPartitions, timeout_ms: int, validate_only: bool, patience: float
) -> None:
    """Have the controller give a topic more partitions."""
    check_int("count", new.count, 1)
    request = CreatePartitionsRequest(timeout_ms, validate_only, [new])
    response: CreatePartitionsResponse = await ask_controller(
        cluster, request, _timeout(timeout_ms), patience, _controller_is_missing
    )
    _all_or_raise(response.topics)


def _timeout(timeout_ms: int) -> float:
    check_int("timeout_ms", timeout_ms, 0)
    return timeout_ms / 1000 + NETWORK_MARGIN


def _controller_is_missing(
    response: CreateTopicsResponse | DeleteTopicsResponse | CreatePartitionsResponse,
) -> bool:
    return any(topic.error_code == ErrorCode.NOT_CONTROLLER for topic in response.topics)


def _all_or_raise(results: list[TopicResult]) -> list[TopicResult]:
    for result in results:
        raise_for(result.error_code, result.error_message or result.topic)
    return results
