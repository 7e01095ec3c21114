"""A cluster in memory with one partition, for tests that break something and then explain it."""

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from barnabas import Admin, Producer
from barnabas.admin.explaining import view_of
from barnabas.cluster import Cluster, ClusterConfig
from barnabas.explain import Explanation, PartitionView
from barnabas_common.bootstrap_servers import parse_bootstrap_servers
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_simulator.cluster import SimulatedCluster

TP = TopicPartition("flights", 0)
LAG_SECONDS = 3.0
SECONDS = 120.0
CONFIG = {
    "replica.lag.time.max.ms": str(int(LAG_SECONDS * 1000)),
    "replica.socket.timeout.ms": "2000",
    "auto.leader.rebalance.enable": "false",
}


class Scene:
    """One broker leads, two follow, one is only the controller; min.insync.replicas is 2."""

    def __init__(
        self, config: Mapping[str, str], topic_config: Mapping[str, str], brokers: int = 4
    ) -> None:
        self.cluster = SimulatedCluster(1, brokers, {**CONFIG, **config})
        self.admin = self.new_admin()
        self._topic_config = {"min.insync.replicas": "2", **topic_config}

    def new_admin(self) -> Admin:
        cluster = self.cluster
        return Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin"))

    async def __aenter__(self) -> Self:
        await self.cluster.start()
        await self.until(lambda: self.cluster.zookeeper.tree.find(znodes.CONTROLLER) is not None)
        self.controller = self.controller_now()
        others = [b for b in self.cluster.broker_ids if b != self.controller]
        self.leader, self.follower, self.second, *self.spare = others
        await self.admin.create_topic(
            TP.topic,
            configs=self._topic_config,
            assignments={0: [self.leader, self.follower, self.second]},
        )
        await self.produce(10, acks="all")
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.admin.close()

    # ---- state

    def controller_now(self) -> int:
        return znodes.decode_controller(self.cluster.zookeeper.tree.node(znodes.CONTROLLER).data)

    def state(self) -> LeaderAndIsr:
        """Return the partition's state, read from the server's tree."""
        node = self.cluster.zookeeper.tree.node(znodes.state_path(TP))
        return znodes.decode_state(TP, node.data, node.version)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS):
            while not condition():
                await asyncio.sleep(0.05)

    async def until_isr(self, *members: int) -> None:
        await self.until(lambda: set(self.state().isr) == set(members))

    async def until_led_by_another(self, than: int) -> int:
        await self.until(lambda: self.state().leader not in (than, -1))
        return self.state().leader

    async def explain(self) -> Explanation:
        """Explain the partition after the cluster has settled."""
        await asyncio.sleep(2.0)
        return await self.admin.explain(*TP)

    async def view(self) -> PartitionView:
        """Return the input of `explain`'s reasoning."""
        await asyncio.sleep(2.0)
        config = ClusterConfig(parse_bootstrap_servers(self.cluster.bootstrap))
        client = Cluster(config, self.cluster.client_runtime("view"))
        await client.start()
        try:
            return await view_of(client, await client.refresh(MetadataRequest([TP.topic])), TP)
        finally:
            await client.close()

    # ---- actions

    async def produce(self, count: int, acks: int | str = 1, size: int = 10) -> None:
        """Produce `count` records, each acknowledged before the next is sent."""
        runtime = self.cluster.client_runtime("producer")
        async with Producer(self.cluster.bootstrap, runtime=runtime, acks=acks) as producer:
            for _ in range(count):
                await producer.send_and_wait(TP.topic, b"x" * size, partition=TP.partition)

    def isolate_leader(self) -> None:
        """Cut the followers off from the leader, which the controller still reaches."""
        for follower in (self.follower, self.second):
            self.cluster.network.cut(self.host(follower), self.host(self.leader))

    def rejoin_leader(self) -> None:
        for follower in (self.follower, self.second):
            self.cluster.network.heal(self.host(follower), self.host(self.leader))

    def host(self, broker_id: int) -> str:
        return self.cluster.host(broker_id)

    async def restart(self, broker_id: int) -> None:
        self.cluster.start_broker(broker_id)
        await self.cluster.serving()
