"""Producers and consumers with what the clients of a run have in common.

Each has its own node of the network, which it is named after.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas import Consumer, Producer
from barnabas_common.errors import NoBrokerReachableError
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.options import Options
from barnabas_simulator.cluster import SimulatedCluster

Read = dict[TopicPartition, list[tuple[int, bytes]]]
"""What was read from each partition: offsets and labels."""

REQUEST_TIMEOUT_MS = 4_000
RETRY_SECONDS = 0.5
# A deposed leader without ZooKeeper does not find out, and serves its consumers until they refresh
# their metadata: in Kafka after five minutes.
METADATA_MAX_AGE_MS = 10_000


async def started_producer(
    cluster: SimulatedCluster,
    options: Options,
    name: str,
    told: Callable[[NoBrokerReachableError], None],
    **settings: Any,
) -> Producer:
    """Start a producer, although every broker may be unreachable while faults last."""
    every: dict[str, Any] = {
        "request_timeout_ms": REQUEST_TIMEOUT_MS,
        "delivery_timeout_ms": 600_000,
        "batch_size": options.batch_size,
        "linger_ms": options.linger_ms,
        "metadata_max_age_ms": METADATA_MAX_AGE_MS,
    }
    while True:
        try:
            runtime = cluster.client_runtime(name)
            return await Producer(cluster.bootstrap, runtime=runtime, **every | settings).start()
        except NoBrokerReachableError as error:
            told(error)
            await asyncio.sleep(RETRY_SECONDS)


def consumer(
    cluster: SimulatedCluster, options: Options, name: str, bootstrap: str = "", **settings: Any
) -> Consumer:
    """A consumer without a group. `bootstrap`: other brokers than all."""
    every: dict[str, Any] = {
        "auto_offset_reset": "earliest",
        "fetch_max_bytes": options.fetch_max_bytes,
        "metadata_max_age_ms": METADATA_MAX_AGE_MS,
    }
    return Consumer(
        bootstrap_servers=bootstrap or cluster.bootstrap,
        runtime=cluster.client_runtime(name),
        **every | settings,
    )
