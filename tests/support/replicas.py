"""What each broker reports about its own replica of a partition, through the public Admin."""

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas import Admin
from barnabas_common.messages.replicas import ReplicaDescription
from barnabas_common.topic_partition import TopicPartition


async def replicas(
    bootstrap: str, key: TopicPartition, **client: Any
) -> dict[int, ReplicaDescription]:
    """Return the replicas on all brokers that answer, by broker id."""
    async with Admin(bootstrap_servers=bootstrap, **client) as admin:
        answers = await admin.describe_replicas([key.topic])
    return {
        answer.broker_id: replica
        for answer in answers
        for replica in answer.replicas
        if replica.partition == key.partition
    }


async def until_replicas(
    bootstrap: str,
    key: TopicPartition,
    condition: Callable[[dict[int, ReplicaDescription]], bool],
    within: float = 20.0,
    **client: Any,
) -> dict[int, ReplicaDescription]:
    """Ask until the replicas satisfy the condition. A TimeoutError shows their last state."""
    found: dict[int, ReplicaDescription] = {}
    try:
        async with asyncio.timeout(within):
            while not condition(found := await replicas(bootstrap, key, **client)):
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise TimeoutError(f"{key} is not as wanted: {found}") from None
    return found
