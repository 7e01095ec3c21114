"""Ask the leaders of many partitions concurrently, and again where leaders move, until a deadline.

Consumer and admin use it for ListOffsets and OffsetForLeaderEpoch: each leader gets one request
with all its partitions.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from barnabas_common.errors import (
    BarnabasError,
    KafkaError,
    LeaderNotAvailableError,
    RequestTimedOutError,
    TransportError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
    error_for,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.offsets import (
    ListedOffset,
    ListOffsetsPartition,
    ListOffsetsRequest,
)
from barnabas_common.runtime import Service
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster.cluster import Cluster
from barnabas.cluster.metadata import Leader

# Builds one leader's request from its partitions and the leaders in the client's metadata.
BuildRequest = Callable[[Sequence[tuple[TopicPartition, Leader]]], Any]


async def ask_leaders(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    build: BuildRequest,
    timeout: float,
    on_answer: Callable[[TopicPartition, Any], None] = lambda partition, answer: None,
    is_round: bool = False,
) -> dict[TopicPartition, Any]:
    """Every partition's answer, in the order of `partitions`; `on_answer` gets each as it arrives.

    `is_round`: the caller asks again after the time. Then a leader that needs longer is waited for,
    up to `request_timeout`: it would not answer the next round in time either.

    Retries retriable failures, and partitions that a leader leaves out of its answer. Raises the
    first other refusal, or `RequestTimedOutError` with the last failure after `timeout` seconds;
    `ClosedError` if the client is closed meanwhile.
    """
    wanted = list(dict.fromkeys(partitions))
    deadline = cluster.clock.monotonic() + timeout
    found: dict[TopicPartition, Any] = {}
    attempts = 0
    while True:
        missing = [tp for tp in wanted if tp not in found]
        if not missing:
            return {tp: found[tp] for tp in wanted}
        cluster.check_open()
        await _check_partitions(cluster, missing, deadline - cluster.clock.monotonic())
        limit = cluster.request_timeout if is_round else cluster.request_time(deadline)
        failure = await _ask_once(cluster, missing, build, found, on_answer, limit)
        if failure is None:
            continue
        attempts += 1
        cluster.request_refresh()
        pause = cluster.backoff.seconds(attempts)
        if cluster.clock.monotonic() + pause >= deadline:
            missing = [tp for tp in wanted if tp not in found]
            raise RequestTimedOutError(
                f"no answer about {', '.join(map(str, missing))} in {timeout:.1f} s; "
                f"last failure: {failure}"
            ) from failure
        await asyncio.sleep(pause)


async def list_offsets(
    cluster: Cluster,
    timestamps: Mapping[TopicPartition, int],
    isolation_level: int,
    timeout: float,
    on_answer: Callable[[TopicPartition, ListedOffset], None] = lambda partition, answer: None,
    is_round: bool = False,
) -> dict[TopicPartition, ListedOffset]:
    """The offset at each partition's timestamp (ms, or one of `messages.offsets`' constants)."""

    def build(partitions: Sequence[tuple[TopicPartition, Leader]]) -> ListOffsetsRequest:
        return ListOffsetsRequest(
            isolation_level=isolation_level,
            partitions=[
                ListOffsetsPartition(*tp, timestamps[tp], leader.epoch) for tp, leader in partitions
            ],
        )

    return await ask_leaders(cluster, timestamps, build, timeout, on_answer, is_round)


async def _check_partitions(
    cluster: Cluster, partitions: Sequence[TopicPartition], timeout: float
) -> None:
    for topic, partition in partitions:
        info = await cluster.topic(topic, max(timeout, 0.0), partition + 1)
        if not 0 <= partition < info.partition_count:
            raise UnknownTopicOrPartitionError(
                f"topic {topic!r} has no partition {partition}, it has {info.partition_count} "
                "from 0 on"
            )


async def _ask_once(
    cluster: Cluster,
    partitions: Sequence[TopicPartition],
    build: BuildRequest,
    found: dict[TopicPartition, Any],
    on_answer: Callable[[TopicPartition, Any], None],
    limit: float,
) -> BarnabasError | None:
    """Send one request to each leader, for at most `limit` seconds; returns a failure unless all
    partitions are found."""
    refusals: list[BarnabasError] = []

    async def ask(
        broker_id: int, group: Sequence[tuple[TopicPartition, Leader]]
    ) -> BarnabasError | None:
        """What one leader says counts at once: another one may take long to answer."""
        outcome = await _ask_leader(cluster, broker_id, build(group), limit)
        if isinstance(outcome, BarnabasError):
            return outcome
        failure: BarnabasError | None = None
        asked = {tp for tp, _ in group}
        for answer in outcome:
            tp = TopicPartition(answer.topic, answer.partition)
            if tp not in asked:
                continue
            if answer.error_code == ErrorCode.NONE:
                found[tp] = answer
                on_answer(tp, answer)
                continue
            failure = error_for(answer.error_code, str(tp))
            if not failure.retriable:
                refusals.append(failure)
        return failure

    by_leader: dict[int, list[tuple[TopicPartition, Leader]]] = {}
    failure: BarnabasError | None = None
    for tp in partitions:
        leader = cluster.metadata.leader(tp)
        if leader is None:
            failure = LeaderNotAvailableError(f"{tp} has no leader now")
        else:
            by_leader.setdefault(leader.broker_id, []).append((tp, leader))
    outcomes = await asyncio.gather(*(ask(broker, group) for broker, group in by_leader.items()))
    if refusals:
        raise refusals[0]
    failure = next((outcome for outcome in reversed(outcomes) if outcome is not None), failure)
    left_out = [tp for tp in partitions if tp not in found]
    if failure is None and left_out:
        failure = UnknownServerError(f"the leader of {left_out[0]} left it out of its answer")
    return failure


async def _ask_leader(cluster: Cluster, broker_id: int, request: Any, limit: float) -> Any:
    """The answers of one leader, or why there are none."""
    try:
        channel = cluster.channel(broker_id, Service.DATA)
        response = await channel.call(request, limit)
    except (TransportError, KafkaError) as error:
        cluster.note_failure(broker_id)
        return error
    return response.partitions
