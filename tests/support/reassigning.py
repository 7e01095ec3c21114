"""A whole cluster in memory with a partition that moves while records are produced."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from barnabas import Admin, Consumer, Producer
from barnabas_common.errors import BarnabasError, NoReassignmentInProgressError
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.znodes import ReplicaAssignment
from barnabas_simulator.cluster import SimulatedCluster

from tests.support.delivery import History, judge

TP = TopicPartition("flights", 0)
CONFIG = {
    "replica.lag.time.max.ms": "5000",
    "controller.socket.timeout.ms": "5000",
    "auto.leader.rebalance.enable": "false",
    "log.segment.delete.delay.ms": "0",
}


class MovingPartition:
    """A cluster of `brokers` with one partition, which is on `replicas` at first."""

    def __init__(
        self,
        seed: int,
        replicas: list[int],
        brokers: int = 5,
        config: Mapping[str, str] | None = None,
    ) -> None:
        self.cluster = SimulatedCluster(seed, brokers, {**CONFIG, **(config or {})})
        self.history = History()
        self._replicas = replicas
        self._stop = False

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[Admin]:
        runtime = self.cluster.client_runtime("admin")
        async with Admin(self.cluster.bootstrap, runtime=runtime) as admin:
            yield admin

    async def start(self, configs: Mapping[str, str] | None = None) -> None:
        await self.cluster.start()
        async with self.admin() as admin:
            await admin.create_topic(
                TP.topic,
                assignments={0: self._replicas},
                configs={"min.insync.replicas": "2", **(configs or {})},
            )

    # ---- records

    @asynccontextmanager
    async def producing(self, pause: float = 0.02, size: int = 0) -> AsyncIterator[None]:
        """Produce numbered records with acks=all in the block; all are acknowledged at its end."""
        self._stop = False
        task = asyncio.ensure_future(self._produce(pause, size))
        try:
            yield
        finally:
            self._stop = True
        async with asyncio.timeout(60):
            await task

    async def _produce(self, pause: float, size: int) -> None:
        async with Producer(
            self.cluster.bootstrap,
            runtime=self.cluster.client_runtime("producer"),
            request_timeout_ms=4_000,
            delivery_timeout_ms=600_000,
        ) as producer:
            pending = []
            while not self._stop:
                value = (b"%d" % len(self.history.sent)).rjust(size, b".")
                self.history.sent.append(value)
                handle = await producer.send(TP.topic, value, partition=0)
                pending.append(asyncio.ensure_future(self._await(value, handle)))
                await asyncio.sleep(pause)
            await producer.flush()
            await asyncio.gather(*pending)

    async def _await(self, value: bytes, handle: Awaitable[object]) -> None:
        self.history.acked[value] = (await handle).offset  # type: ignore[attr-defined]

    async def assert_nothing_lost(self) -> None:
        """Assert that every acknowledged record is at its offset, by value."""
        records: list[tuple[int, bytes]] = []
        async with Consumer(
            bootstrap_servers=self.cluster.bootstrap,
            runtime=self.cluster.client_runtime("judge"),
            auto_offset_reset="earliest",
        ) as consumer:
            consumer.assign([TP])
            end = (await consumer.end_offsets([TP]))[TP]
            while await consumer.position(TP) < end:
                records += [(r.offset, r.value or b"") for r in await consumer.poll(timeout_ms=500)]
        judge({TP: self.history}, {TP: records}).assert_good()

    # ---- reassignment

    async def reassign(self, target: list[int] | None) -> None:
        """Request a reassignment, or with None a cancel, once; raises the cluster's error."""
        async with self.admin() as admin:
            await admin.alter_partition_reassignments({TP: target})

    async def insist(self, target: list[int] | None) -> None:
        """Request until there is an answer, because a controller that dies may not have done it."""
        while True:
            try:
                await self.reassign(target)
                return
            except NoReassignmentInProgressError:  # the dead controller had done it
                return
            except BarnabasError:
                await asyncio.sleep(0.2)

    @contextmanager
    def controller_dies_after(self, count: int) -> Iterator[list[list[str]]]:
        """Kill the controller after `count` writes about topics, and restart it; 0 kills nothing.

        Yields the paths of each write.
        """
        writes: list[list[str]] = []

        def on_write(paths: list[str]) -> None:
            if any(path.startswith(("/brokers/topics", "/admin")) for path in paths):
                writes.append(paths)
                if len(writes) == count:  # before it receives the answer
                    asyncio.get_running_loop().call_soon(self.restart, self.controller())

        self.cluster.zookeeper.on_write = on_write
        yield writes
        self.cluster.zookeeper.on_write = None

    def controller(self) -> int:
        """Return the broker that is controller, 0 for none."""
        for broker_id in self.cluster.running_brokers:
            controller = self.cluster.broker(broker_id).membership.controller
            if controller is not None and controller.is_active:
                return broker_id
        return 0

    def restart(self, broker_id: int) -> None:
        self.cluster.kill(broker_id)
        self.cluster.start_broker(broker_id)

    # ---- the state in ZooKeeper

    def assignment(self) -> ReplicaAssignment:
        node = self.cluster.zookeeper.tree.node(znodes.topic_path(TP.topic))
        return znodes.decode_topic(TP.topic, node.data).partitions[0]

    def state(self) -> LeaderAndIsr:
        node = self.cluster.zookeeper.tree.node(znodes.state_path(TP))
        return znodes.decode_state(TP, node.data, node.version)

    def is_home(self, *replicas: int) -> bool:
        """Whether the partition is on these brokers only, all in sync, and one of them leads."""
        state = self.state()
        return (
            self.assignment() == ReplicaAssignment(replicas)
            and sorted(state.isr) == sorted(replicas)
            and state.leader in replicas
        )

    async def until(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        deadline = self.cluster.clock.monotonic() + seconds
        while not condition():
            assert self.cluster.clock.monotonic() < deadline, (
                f"not so after {seconds} s: {self.assignment()}, {self.state()}"
            )
            await asyncio.sleep(0.01)

    def hosts(self, broker_id: int) -> bool:
        """Whether a broker runs and has a replica of the partition."""
        partitions = self.cluster.broker(broker_id).replica_manager.partitions
        return partitions.get(TP) is not None
