"""Creating, deleting and growing topics. Any broker accepts the first two; the controller grows
topics, because its event queue orders that with reassignments.

A request that may have been applied is not sent again. A request that was refused because there is
no controller is sent again.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from barnabas_common.errors import InvalidArgumentError, NotControllerError, raise_for
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.metadata import MetadataRequest, MetadataResponse
from barnabas_common.messages.topics import (
    ConfigEntry,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewPartitions,
    NewTopic,
    ReplicaAssignment,
    TopicResult,
)

from barnabas.admin.descriptions import DeletedTopic
from barnabas.admin.events import NETWORK_MARGIN
from barnabas.admin.visibility import has_partitions, is_gone, wait_until_known
from barnabas.cluster import Cluster
from barnabas.cluster.by_controller import ask_controller
from barnabas.cluster.options import (
    check_bool,
    check_int,
    check_str,
    check_topic,
    checked_brokers,
    checked_names,
)


def names(topics: Iterable[str]) -> list[str]:
    """The names of several topics. A str would be taken for one name a letter."""
    return checked_names("topics", topics)


async def metadata(cluster: Cluster, request: MetadataRequest, patience: float) -> MetadataResponse:
    """Ask for metadata.

    A broker that has just started knows no broker and no topic before there is a controller. It is
    asked again for `patience` s. Raises NotControllerError.
    """
    deadline = cluster.clock.monotonic() + patience
    failures = 0
    while not (response := await cluster.refresh(request)).brokers:
        failures += 1
        pause = cluster.backoff.seconds(failures)
        if cluster.clock.monotonic() + pause >= deadline:
            raise NotControllerError("the broker that answers knows no broker: no controller")
        await asyncio.sleep(pause)
    return response


def assigned(assignments: Mapping[int, Sequence[int]] | None) -> list[ReplicaAssignment]:
    """The brokers of each partition, as requests name them."""
    if assignments is not None and not isinstance(assignments, Mapping):
        raise InvalidArgumentError(
            f"assignments are {{partition: [broker, ...]}}, not {assignments!r}"
        )
    return [
        ReplicaAssignment(p, checked_brokers(f"the replicas of partition {p}", ids))
        for p, ids in (assignments or {}).items()
    ]


def new_topics(topics: Iterable[NewTopic]) -> list[NewTopic]:
    """Several topics to create, each a `NewTopic`."""
    found = list(topics) if isinstance(topics, Iterable) else [topics]
    for topic in found:
        if not isinstance(topic, NewTopic):
            raise InvalidArgumentError(f"topics to create are NewTopic(...), not {topic!r}")
        check_str("the name of a new topic", topic.topic)
        check_int("partitions", topic.partitions, -(2**31), 2**31 - 1)
        check_int("replication_factor", topic.replication_factor, -(2**31), 2**31 - 1)
        _check_parts("configs", topic.configs, ConfigEntry)
        _check_parts("assignments", topic.assignments, ReplicaAssignment)
    return found


def _check_parts(name: str, given: object, kind: type) -> None:
    if not isinstance(given, list | tuple) or not all(isinstance(part, kind) for part in given):
        raise InvalidArgumentError(
            f"{name} of a NewTopic are a list of {kind.__name__}(...), not {given!r};"
            " Admin.create_topic takes a dict"
        )


def configured(configs: Mapping[str, object] | None) -> list[ConfigEntry]:
    """A new topic's settings, as requests name them."""
    if configs is not None and not isinstance(configs, Mapping):
        raise InvalidArgumentError(f"configs is a dict of names and values, not {configs!r}")
    for name in configs or {}:
        check_str("a name in configs", name)
    return [ConfigEntry(name, str(value)) for name, value in (configs or {}).items()]


async def create_topics(
    cluster: Cluster, request: CreateTopicsRequest, patience: float
) -> list[TopicResult]:
    """Create the topics, and wait until every broker knows them.

    Raises the first refusal, once the others are carried out.
    """
    began = cluster.clock.monotonic()
    results = await _change_topics(cluster, request, patience)
    if not request.validate_only:
        counts = {result.topic: result.partitions for result in results if not result.error_code}
        left = _left(cluster, began, request.timeout_ms)
        await wait_until_known(cluster, counts, has_partitions(counts), left)
    return _all_or_raise(results)


async def delete_topics(
    cluster: Cluster, request: DeleteTopicsRequest, patience: float
) -> list[DeletedTopic]:
    """Delete the topics, and wait until no broker knows them; raises as `create_topics`."""
    began = cluster.clock.monotonic()
    results = await _change_topics(cluster, request, patience)
    gone = [result.topic for result in results if not result.error_code]
    await wait_until_known(cluster, gone, is_gone, _left(cluster, began, request.timeout_ms))
    return [DeletedTopic(each.topic, tuple(each.waits_for)) for each in _all_or_raise(results)]


# Answers after which a change is sent again: no controller, or no ZooKeeper session.
_AGAIN = (ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION)


async def _change_topics(
    cluster: Cluster, request: CreateTopicsRequest | DeleteTopicsRequest, patience: float
) -> list[TopicResult]:
    """Send the request. For `patience` s, send again the topics that the asked broker could not
    change without a controller, or without a ZooKeeper session. The others are not sent again:
    their second answer would be a refusal.

    An attempt whose session ended may have changed a topic. If it is unknown then, its deletion has
    succeeded; if it exists, its creation is refused, as Kafka's client does.
    """
    timeout = _timeout(request.timeout_ms)
    deadline = cluster.clock.monotonic() + patience
    failures = 0
    done: dict[str, TopicResult] = {}
    unclear: set[str] = set()
    while True:
        response = await cluster.ask(request, timeout)
        missing = {r.topic for r in response.topics if r.error_code in _AGAIN}
        unclear |= {r.topic for r in response.topics if r.error_code == ErrorCode.NETWORK_EXCEPTION}
        done |= {r.topic: _judged(r, r.topic in unclear) for r in response.topics}
        if not missing:
            return list(done.values())
        failures += 1
        pause = cluster.backoff.seconds(failures)
        if cluster.clock.monotonic() + pause >= deadline:
            if any(done[topic].error_code == ErrorCode.NOT_CONTROLLER for topic in missing):
                raise NotControllerError("there is no controller now")
            return list(done.values())
        await asyncio.sleep(pause)
        request = _only(request, missing)


def _judged(result: TopicResult, is_unclear: bool) -> TopicResult:
    if is_unclear and result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return replace(result, error_code=ErrorCode.NONE, error_message="")
    return result


def _only(
    request: CreateTopicsRequest | DeleteTopicsRequest, names: set[str]
) -> CreateTopicsRequest | DeleteTopicsRequest:
    if isinstance(request, DeleteTopicsRequest):
        return replace(request, topics=[name for name in request.topics if name in names])
    return replace(request, topics=[new for new in request.topics if new.topic in names])


def _left(cluster: Cluster, began: float, timeout_ms: int) -> float:
    return max(0.0, began + timeout_ms / 1000 - cluster.clock.monotonic())


async def grow_topic(
    cluster: Cluster, new: NewPartitions, timeout_ms: int, validate_only: bool, patience: float
) -> None:
    """Ask the controller to give a topic more partitions, and wait until every broker knows."""
    check_topic(new.topic)
    check_int("count", new.count, 1, 2**31 - 1)
    check_bool("validate_only", validate_only)
    request = CreatePartitionsRequest(timeout_ms, validate_only, [new])
    began = cluster.clock.monotonic()
    response: CreatePartitionsResponse = await ask_controller(
        cluster, request, _timeout(timeout_ms), patience, _controller_is_missing
    )
    _all_or_raise(response.topics)
    if not validate_only:
        counts = {new.topic: new.count}
        left = _left(cluster, began, timeout_ms)
        await wait_until_known(cluster, counts, has_partitions(counts), left)


def _timeout(timeout_ms: int) -> float:
    check_int("timeout_ms", timeout_ms, 0, 2**31 - 1)
    return timeout_ms / 1000 + NETWORK_MARGIN


def _controller_is_missing(response: CreatePartitionsResponse) -> bool:
    return any(topic.error_code == ErrorCode.NOT_CONTROLLER for topic in response.topics)


def _all_or_raise(results: list[TopicResult]) -> list[TopicResult]:
    for result in results:
        raise_for(result.error_code, result.error_message or result.topic)
    return results
