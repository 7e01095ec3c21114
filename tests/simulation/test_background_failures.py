"""A background task that fails once is repeated; a controller that fails is replaced."""

import asyncio

import pytest
from barnabas import Admin, Producer
from barnabas_broker.replica.leader.leadership import Leadership
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.active_controller import ActiveController
from barnabas_controller.brokers.broker_changes import BrokerChanges
from barnabas_controller.store import znodes
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

TP = TopicPartition("flights", 0)
LAG = {"replica.lag.time.max.ms": "3000", "failure.detection": "session"}


async def a_topic(cluster: SimulatedCluster) -> None:
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(TP.topic, assignments={0: [1, 2, 3]})


async def produce(cluster: SimulatedCluster, value: bytes) -> None:
    runtime = cluster.client_runtime("producer")
    async with Producer(cluster.bootstrap, runtime=runtime, acks=1) as producer:
        await producer.send_and_wait(TP.topic, value, partition=0)


def isr(cluster: SimulatedCluster) -> tuple[int, ...]:
    node = cluster.zookeeper.tree.node(znodes.state_path(TP))
    return znodes.decode_state(TP, node.data, node.version).isr


def test_an_isr_check_that_fails_once_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = 0
    check = Leadership.maybe_shrink_isr

    def fails_once(leadership: Leadership) -> None:
        nonlocal failures
        if failures == 0:
            failures += 1
            raise ValueError("planted")
        check(leadership)

    monkeypatch.setattr(Leadership, "maybe_shrink_isr", fails_once)

    async def story() -> None:
        cluster = SimulatedCluster(seed=1, config=LAG)
        await cluster.start()
        await a_topic(cluster)
        async with asyncio.timeout(30):
            while not failures:
                await asyncio.sleep(0.1)
        cluster.cut(3, 1)
        cluster.cut(1, 3)
        await produce(cluster, b"a")
        async with asyncio.timeout(30):
            while isr(cluster) != (1, 2):
                await asyncio.sleep(0.1)

    run(story(), seed=1, max_time=200)


def test_a_controller_whose_term_cannot_be_closed_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    close, read = ActiveController.close, BrokerChanges.read
    broken = False

    async def fails(active: ActiveController) -> None:
        nonlocal broken
        if broken:
            broken = False
            raise ValueError("planted")
        await close(active)

    async def breaks(changes: BrokerChanges) -> object:
        if broken:
            raise ValueError("planted too")
        return await read(changes)

    async def story() -> None:
        nonlocal broken
        cluster = SimulatedCluster(seed=1)
        await cluster.start()
        await a_topic(cluster)
        first = cluster.zookeeper.tree.node(znodes.CONTROLLER).czxid
        monkeypatch.setattr(ActiveController, "close", fails)
        monkeypatch.setattr(BrokerChanges, "read", breaks)
        broken = True
        others = [b for b in cluster.broker_ids if b != controller(cluster)]
        cluster.kill(others[0])
        async with asyncio.timeout(60):
            while cluster.zookeeper.tree.find(znodes.CONTROLLER) is None or (
                cluster.zookeeper.tree.node(znodes.CONTROLLER).czxid == first
            ):
                await asyncio.sleep(0.1)

    run(story(), seed=1, max_time=200)


def controller(cluster: SimulatedCluster) -> int:
    return znodes.decode_controller(cluster.zookeeper.tree.node(znodes.CONTROLLER).data)
