"""Members of a group against a scripted coordinator, on virtual time: what their tests share."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from barnabas import Consumer, RebalanceListener
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run

from tests.support.scripted_group import GroupBrokers

PARTITIONS = [TopicPartition("flights", number) for number in range(4)]


def story(scenario: Callable[[GroupBrokers], Awaitable[None]]) -> None:
    async def tell() -> None:
        async with GroupBrokers() as brokers:
            await scenario(brokers)

    run(tell(), seed=1, max_time=3600.0)


def member(brokers: GroupBrokers, name: str = "c", *topics: str, **options: Any) -> Consumer:
    return Consumer(
        *(topics or ("flights",)),
        bootstrap_servers=brokers.bootstrap,
        runtime=brokers.runtime_of(name),
        **{"group_id": "g", "client_id": name, "auto_offset_reset": "earliest", **options},
    )


def write(brokers: GroupBrokers, count: int) -> None:
    for partition in range(len(brokers.logs)):
        builder = BatchBuilder()
        for number in range(count):
            builder.append(number, None, b"%d" % number, [])
        brokers.log(partition).append(builder.build())
    brokers.changed()


async def settle(*consumers: Consumer, rounds: int = 200) -> None:
    """Poll all of them until together they have every partition, and nothing is due."""
    for _ in range(rounds):
        for consumer in consumers:
            await consumer.poll(timeout_ms=50)
        held = [tp for consumer in consumers for tp in consumer.assignment()]
        if sorted(held) == PARTITIONS and all("reads" in c.health()[0] for c in consumers):
            return
    raise AssertionError([c.health() for c in consumers])


class Noted(RebalanceListener):
    def __init__(self) -> None:
        self.calls: list[tuple[str, list[int]]] = []

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(("assigned", [tp.partition for tp in partitions]))

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        await asyncio.sleep(0.01)
        self.calls.append(("revoked", [tp.partition for tp in partitions]))

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(("lost", [tp.partition for tp in partitions]))
