"""A cluster in memory whose ZooKeeper is written back or restored, and what must hold then."""

import asyncio
from collections.abc import Awaitable, Callable

from barnabas import Admin
from barnabas_common.events import Event, EventKind
from barnabas_controller.store import znodes
from barnabas_simulator.campaign import state
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run
from barnabas_simulator.zookeeper.server import ZooKeeperCopy

from tests.support.whole_cluster import TP, read_back, send

SECONDS_TO_HEAL = 20.0
SETTINGS = {"zookeeper.session.timeout.ms": "6000", "replica.lag.time.max.ms": "5000"}


class Scene:
    """A cluster of three brokers with one topic, and the acknowledged records."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self.acknowledged: list[bytes] = []

    async def produce(self, count: int = 20) -> None:
        first = len(self.acknowledged)
        values = [b"%d" % number for number in range(first, first + count)]
        async with asyncio.timeout(60):
            await send(self.cluster, TP, values)
        self.acknowledged += values

    def leader(self) -> int:
        return state.partition_states(self.cluster)[TP].state.leader

    def leader_in_fact(self) -> int:
        """The broker that leads by its own account."""
        return next(
            broker.broker_id
            for broker in self.cluster.brokers().values()
            if (found := broker.replica_manager.partitions.get(TP)) and found.leadership
        )

    async def start_all(self) -> None:
        """Start every broker; none runs."""
        for broker_id in self.cluster.broker_ids:
            self.cluster.start_broker(broker_id)
        await self.cluster.serving()

    async def whole(self, within: float = SECONDS_TO_HEAL) -> None:
        """Wait until the three replicas are in sync and agree about the leader."""
        async with asyncio.timeout(within):
            while not self._is_whole():
                await asyncio.sleep(0.05)

    def _is_whole(self) -> bool:
        told = state.partition_states(self.cluster).get(TP)
        if told is None or set(told.state.isr) != {1, 2, 3}:
            return False
        agreed = {
            broker.broker_id
            for broker in self.cluster.brokers().values()
            if (known := broker.metadata_cache.partition(*TP)) is not None
            and (known.leader, known.leader_epoch) == (told.state.leader, told.state.leader_epoch)
        }
        return agreed == {1, 2, 3}

    async def restart_leader(self) -> None:
        """Kill the leader, wait for another, and restart the first as a follower."""
        leader = self.leader()
        self.cluster.kill(leader)
        async with asyncio.timeout(SECONDS_TO_HEAL):
            while self.leader() in (leader, -1):
                await asyncio.sleep(0.05)
        await self.produce()
        self.cluster.start_broker(leader)
        await self.whole()

    async def check(self) -> None:
        """Check that it serves, that nothing acknowledged is lost, and that replicas are equal."""
        await self.whole()
        await self.produce()
        assert [value for _, value in await read_back(self.cluster)] == self.acknowledged
        await asyncio.sleep(1)
        self.check_epochs()
        await self.restart_leader()  # the death of a leader leads to an ordinary election
        assert [value for _, value in await read_back(self.cluster)] == self.acknowledged
        await asyncio.sleep(1)
        self.check_epochs()

    def check_epochs(self) -> None:
        logs = {
            broker.broker_id: broker.log_manager.get(TP)
            for broker in self.cluster.brokers().values()
        }
        epochs = {}
        for broker_id, log in logs.items():
            assert log is not None
            cache = log.leader_epochs
            epochs[broker_id] = [cache.epoch_for_offset(o) for o in range(log.log_end_offset)]
        assert epochs[1] == epochs[2] == epochs[3], epochs

    def events(self, kind: EventKind) -> list[Event]:
        return [event for event in self.cluster.events() if event.kind is kind]


def in_a_cluster(test: Callable[[Scene], Awaitable[None]], seed: int = 1) -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=seed, config=SETTINGS)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(TP.topic, 1, 3, configs={"min.insync.replicas": "2"})
        scene = Scene(cluster)
        await scene.produce()
        await test(scene)

    run(story(), seed=seed, max_time=600)


def data(cluster: SimulatedCluster, path: str) -> bytes:
    node = cluster.zookeeper.tree.find(path)
    assert node is not None
    return node.data


def made_again(cluster: SimulatedCluster, path: str, data: bytes) -> None:
    """Delete the znode and create it: its version says nothing of what was there before."""
    cluster.zookeeper.delete(path)
    cluster.zookeeper.put(path, data)


def controller(cluster: SimulatedCluster) -> int:
    found = state.controller(cluster)
    assert found is not None
    return found


async def restart_controller(scene: Scene) -> None:
    """Kill the controller, wait for another one, and restart it."""
    old = controller(scene.cluster)
    scene.cluster.kill(old)
    await asyncio.sleep(10)
    scene.cluster.start_broker(old)
    await scene.cluster.serving()


async def next_controller(scene: Scene) -> None:
    """Have another controller elected without a failure. It gets the time to ask the replicas what
    they hold, and to act by their answers."""
    elected = len(scene.events(EventKind.CONTROLLER_ELECTED))
    scene.cluster.zookeeper.delete(znodes.CONTROLLER)
    async with asyncio.timeout(SECONDS_TO_HEAL):
        while len(scene.events(EventKind.CONTROLLER_ELECTED)) == elected:
            await asyncio.sleep(0.05)
    await asyncio.sleep(3)


async def leave_to_others(scene: Scene, leader: int) -> None:
    """Kill the leader. The others have the time to elect one of themselves, rightly or wrongly."""
    scene.cluster.kill(leader)
    await asyncio.sleep(10)


async def stop(scene: Scene, broker_id: int) -> None:
    """Stop a broker in order, and wait for another leader than it."""
    await scene.cluster.stop_broker(broker_id)
    async with asyncio.timeout(SECONDS_TO_HEAL):
        while scene.leader() in (broker_id, -1):
            await asyncio.sleep(0.05)


def restore(scene: Scene, copy: ZooKeeperCopy) -> None:
    """Restore the copy; no broker runs then."""
    cluster = scene.cluster
    cluster.zookeeper.stop()
    cluster.zookeeper.restore(copy)
    cluster.zookeeper.start()
    for broker_id in list(cluster.running_brokers):
        cluster.kill(broker_id)
