"""A broker refuses requests for its earlier incarnation at the same address."""

import asyncio

from barnabas import Admin
from barnabas_common.errors import TransportError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import (
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from barnabas_common.runtime import Address, Message, Service
from barnabas_simulator.cluster import INTERNAL_PORT, SimulatedCluster
from barnabas_simulator.loop import run

OLD_EPOCH = 1
ORDERS: list[Message] = [
    LeaderAndIsrRequest(
        1, 1, OLD_EPOCH, [LeaderAndIsrPartition("flights", 0, "", 1, 1, 9, 9, replicas=[1, 2, 3])]
    ),
    StopReplicaRequest(1, 1, OLD_EPOCH, partitions=[StopReplicaPartition("flights", 0, -1, True)]),
    UpdateMetadataRequest(1, 1, OLD_EPOCH),
]


async def answer_at_birth(cluster: SimulatedCluster, order: Message) -> int:
    """Send a request repeatedly, as a controller does, until a broker answers it."""
    network = cluster.client_runtime("old controller").network
    while True:
        channel = network.connect(Address("broker-1", INTERNAL_PORT), Service.CONTROL)
        try:
            return int((await channel.call(order, 1.0)).error_code)
        except TransportError:
            await asyncio.sleep(0)
        finally:
            await channel.close()


def test_orders_for_an_earlier_incarnation_are_refused_from_the_first_moment() -> None:
    async def story(order: Message) -> None:
        cluster = SimulatedCluster(seed=3)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("flights", 1, 3)
        cluster.kill(1)
        asking = asyncio.create_task(answer_at_birth(cluster, order))
        cluster.start_broker(1)
        assert await asking == ErrorCode.STALE_BROKER_EPOCH
        await cluster.serving()

    for order in ORDERS:
        run(story(order), seed=3)
