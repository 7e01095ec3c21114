"""Brokers that have lost ZooKeeper for good still answer clients, and know of nobody else."""

import asyncio
from dataclasses import replace
from typing import Any

from barnabas import Producer
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_simulator.loop import run

from tests.support.scripted_group import GroupBrokers

ISOLATED = (3, 4)
ROUNDS = 10
"""So many answers of the isolated brokers: the client knows of no other from metadata."""


class HalfIsolated(GroupBrokers):
    """Brokers 3 and 4 know only each other, and of no leader."""

    async def _handle(self, broker_id: int, request: Any) -> Any:
        answer = await super()._handle(broker_id, request)
        if broker_id not in ISOLATED or not isinstance(request, MetadataRequest):
            return answer
        for topic in answer.topics:
            for partition in topic.partitions:
                partition.leader_id, partition.leader_epoch = -1, 0
        known = [broker for broker in answer.brokers if broker.broker_id in ISOLATED]
        return replace(answer, brokers=known)


def test_two_of_them_do_not_keep_a_client_from_the_others() -> None:
    """Each answer names the other one: they were asked in turn, and the bootstrap servers never."""

    async def tell() -> None:
        async with HalfIsolated(brokers=4) as brokers:
            brokers.kill(1)
            brokers.kill(2)
            runtime = brokers.runtime_of("p")
            async with Producer(brokers.bootstrap, runtime=runtime) as producer:
                handle = await producer.send("flights", b"v", partition=0)
                while brokers.metadata_requests < ROUNDS:
                    await asyncio.sleep(0.1)
                await brokers.start(1)
                await brokers.start(2)
                brokers.elect(0, 1)
                async with asyncio.timeout(10):
                    await handle
            assert [record.value for record in brokers.log().records()] == [b"v"]

    run(tell(), seed=1, max_time=600.0)
