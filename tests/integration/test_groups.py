"""Consumer groups over real sockets: commits and membership outlive kill -9 of the coordinator."""

import asyncio
import signal

import pytest
from barnabas import Admin
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.runtime import Address, Channel, Message, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_common.transport.grpc_network import GrpcNetwork
from barnabas_tools.local.cluster import LocalCluster

from tests.support.raw_groups import Coordinators, RawMember, settle

pytestmark = pytest.mark.integration

ORDERS = TopicPartition("group-orders", 0)


class RealCoordinators(Coordinators):
    """Sends requests to brokers that are processes."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._local = cluster
        self._network = GrpcNetwork()
        self._channels: dict[int, Channel] = {}

    async def ask(self, broker_id: int, request: Message, timeout: float = 30.0) -> Message:
        if broker_id not in self._channels:
            address = Address("127.0.0.1", self._local.layout.client_ports[broker_id - 1])
            self._channels[broker_id] = self._network.connect(address, Service.COORDINATOR)
        return await self._channels[broker_id].call(request, timeout)

    def _broker_ids(self) -> list[int]:
        return self._local.running_brokers()


def test_commits_outlive_the_coordinator_and_its_member_stays(cluster: LocalCluster) -> None:
    async def story() -> None:
        async with Admin(cluster.layout.bootstrap) as admin:
            await admin.create_topic(ORDERS.topic, partitions=1, replication_factor=3)
        coordinators = RealCoordinators(cluster)
        first = await coordinators.find("g")
        await coordinators.describe("g")
        member = RawMember(coordinators, first, "g", session_timeout_ms=60_000)
        await settle([member])
        for offset in range(200):
            assert await member.commit(ORDERS, offset) is ErrorCode.NONE
        cluster.signal(first, signal.SIGKILL)
        while (second := await coordinators.find("g")) == first:
            await asyncio.sleep(0.1)
        assert await coordinators.committed("g", ORDERS) == 199
        member.broker_id = second
        assert await member.heartbeat() is ErrorCode.NONE
        await coordinators.close()

    asyncio.run(story())
