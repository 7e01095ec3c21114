"""The stage for tests of the last replica standing: a cluster in memory with one partition.

The tests say what happens to which broker; the stage has what all of them need.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from barnabas import Admin, Consumer, Producer
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_simulator.cluster import SimulatedCluster

TP = TopicPartition("flights", 0)
SECONDS = 60.0
CONFIG = {
    "replica.lag.time.max.ms": "3000",
    "replica.socket.timeout.ms": "3000",
    "controller.socket.timeout.ms": "3000",
}


class Stage:
    """`leader`, which is also the controller's broker, and `others` name the roles at the start."""

    def __init__(self, seed: int, config: Mapping[str, str], min_isr: int, replicas: int = 3):
        self.cluster = SimulatedCluster(seed, config={**CONFIG, **config})
        self._min_isr, self._replicas = min_isr, replicas

    async def open(self) -> None:
        cluster = self.cluster
        await cluster.start()
        await self.until(lambda: cluster.zookeeper.tree.find(znodes.CONTROLLER) is not None)
        self.leader = self.controller()
        self.others = [b for b in cluster.broker_ids if b != self.leader][: self._replicas - 1]
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(
                TP.topic,
                configs={"min.insync.replicas": str(self._min_isr)},
                assignments={0: [self.leader, *self.others]},
            )

    def controller(self) -> int:
        return znodes.decode_controller(self.cluster.zookeeper.tree.node(znodes.CONTROLLER).data)

    def state(self) -> LeaderAndIsr:
        """Return the partition's state, read from the server's tree."""
        node = self.cluster.zookeeper.tree.node(znodes.state_path(TP))
        return znodes.decode_state(TP, node.data, node.version)

    def log(self, broker_id: int) -> UnifiedLog:
        """Return the partition's log on a running broker."""
        log = self.cluster.broker(broker_id).log_manager.get(TP)
        assert log is not None
        return log

    async def until(self, condition: Callable[[], bool], step: float = 0.01) -> None:
        async with asyncio.timeout(SECONDS):
            while not condition():
                await asyncio.sleep(step)

    async def until_isr(self, *members: int) -> None:
        """Wait until the ISR has exactly these members, whichever leads."""
        await self.until(lambda: set(self.state().isr) == set(members))

    async def until_led(self) -> int:
        """Wait until a running broker leads by ZooKeeper's state and its own; returns its id."""
        await self.until(lambda: self._leads(self.state().leader))
        return self.state().leader

    def _leads(self, broker_id: int) -> bool:
        if broker_id not in self.cluster.running_brokers or not self.cluster.is_serving(broker_id):
            return False
        partition = self.cluster.broker(broker_id).replica_manager.partitions.get(TP)
        return partition is not None and partition.leadership is not None

    async def until_whole(self) -> None:
        """Wait until there is a leader and all replicas are in sync."""
        await self.until(
            lambda: len(self.state().isr) == self._replicas and self.state().leader > 0, step=0.1
        )

    def isolate(self, broker_id: int) -> None:
        """Cut the ways to this broker from the others, so that no broker replicates from it.

        It still reaches ZooKeeper and clients, and it can send to every broker.
        """
        for other in self.cluster.running_brokers:
            if other != broker_id:
                self.cluster.cut(other, broker_id)

    def rejoin(self, broker_id: int) -> None:
        for other in self.cluster.running_brokers:
            if other != broker_id:
                self.cluster.heal(other, broker_id)

    def lose_power(self, *brokers: int) -> None:
        for broker_id in brokers:
            self.cluster.kill(broker_id, keep_unflushed=False)

    def kill(self, *brokers: int) -> None:
        for broker_id in brokers:
            self.cluster.kill(broker_id)

    async def produce(self, values: Iterable[bytes], acks: int | str = "all") -> set[bytes]:
        """Send and wait for each acknowledgement; returns the values."""
        done = set()
        async with Producer(
            self.cluster.bootstrap, runtime=self.cluster.client_runtime("producer"), acks=acks
        ) as producer:
            for value in values:
                await producer.send_and_wait(TP.topic, value, partition=TP.partition)
                done.add(value)
        return done

    async def consume(self) -> set[bytes]:
        """Return every value up to the high watermark."""
        found: set[bytes] = set()
        async with Consumer(
            bootstrap_servers=self.cluster.bootstrap,
            runtime=self.cluster.client_runtime("consumer"),
            auto_offset_reset="earliest",
        ) as consumer:
            consumer.assign([TP])
            end = (await consumer.end_offsets([TP]))[TP]
            while await consumer.position(TP) < end:
                found |= {r.value or b"" for r in await consumer.poll(timeout_ms=500)}
        return found


def numbers(prefix: str, count: int = 20) -> list[bytes]:
    """Return `count` values: the prefix, then 0, 1, 2, ..."""
    return [f"{prefix}{number}".encode() for number in range(count)]
