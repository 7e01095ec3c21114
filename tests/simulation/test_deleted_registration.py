"""`/brokers/ids/N` of a broker that is alive is deleted: the broker registers again.

Only the end of a session removes the znode by itself; but tools of operators can delete it, and a
broker that did not notice would be missing until its restart.
"""

import asyncio
from collections.abc import Awaitable, Callable

from barnabas import Admin, Consumer, Producer
from barnabas_common.events import Event, EventKind
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import Invariants
from barnabas_simulator.loop import run

TP = TopicPartition("flights", 0)
SECONDS_TO_HEAL = 5.0


def in_a_cluster(test: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=1)
        Invariants(cluster).install()
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(TP.topic, 1, 3, configs={"min.insync.replicas": "2"})
        await test(cluster)

    run(story(), seed=1, max_time=300)


async def produce(cluster: SimulatedCluster, *values: bytes) -> None:
    runtime = cluster.client_runtime("producer")
    async with Producer(cluster.bootstrap, runtime=runtime, acks="all") as producer:
        for value in values:
            await producer.send_and_wait(TP.topic, value, partition=TP.partition)


async def consumed(cluster: SimulatedCluster, count: int) -> list[bytes | None]:
    runtime = cluster.client_runtime("consumer")
    values: list[bytes | None] = []
    async with Consumer(
        bootstrap_servers=cluster.bootstrap, runtime=runtime, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([TP])
        async with asyncio.timeout(30):
            while len(values) < count:
                values += [record.value for record in await consumer.poll(timeout_ms=500)]
    return values


async def delete_registrations(cluster: SimulatedCluster, *broker_ids: int) -> None:
    """Delete registrations, as `zookeeper-shell delete /brokers/ids/N` does."""
    client = cluster.zookeeper.client("operator")
    session = await client.connect(6000, 1000)
    for broker_id in broker_ids:
        await session.delete(znodes.broker_path(broker_id))
    await session.close()


def is_registered(cluster: SimulatedCluster, broker_id: int) -> bool:
    return cluster.zookeeper.tree.find(znodes.broker_path(broker_id)) is not None


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS_TO_HEAL):
        while not condition():
            await asyncio.sleep(0.02)


def in_sync(cluster: SimulatedCluster) -> set[int]:
    node = cluster.zookeeper.tree.node(znodes.state_path(TP))
    return set(znodes.decode_state(TP, node.data, node.version).isr)


def events(cluster: SimulatedCluster, kind: EventKind) -> list[Event]:
    return [event for event in cluster.events() if event.kind is kind]


def test_a_broker_whose_znode_was_deleted_registers_again() -> None:
    async def test(cluster: SimulatedCluster) -> None:
        await produce(cluster, b"before")
        epoch = cluster.broker(2).membership.broker_epoch
        await delete_registrations(cluster, 2)
        await until(lambda: is_registered(cluster, 2))
        await until(lambda: in_sync(cluster) == {1, 2, 3})
        await produce(cluster, b"after")
        assert cluster.broker(2).membership.broker_epoch > epoch
        assert await consumed(cluster, 2) == [b"before", b"after"]
        causes = [event.cause for event in events(cluster, EventKind.REGISTERED_ANEW)]
        assert causes == ["/brokers/ids/2 was deleted while its session lives"]

    in_a_cluster(test)


def test_after_all_registrations_were_deleted_the_cluster_serves_again() -> None:
    async def test(cluster: SimulatedCluster) -> None:
        await produce(cluster, b"before")
        await delete_registrations(cluster, 1, 2, 3)
        await until(lambda: all(is_registered(cluster, broker) for broker in (1, 2, 3)))
        await until(lambda: in_sync(cluster) == {1, 2, 3})
        await produce(cluster, b"after")
        assert await consumed(cluster, 2) == [b"before", b"after"]

    in_a_cluster(test)


def test_nothing_says_that_its_session_ended_and_a_refusal_is_reported_once() -> None:
    async def test(cluster: SimulatedCluster) -> None:
        await delete_registrations(cluster, 1, 2, 3)
        await until(lambda: in_sync(cluster) == {1, 2, 3})
        gone = [event.cause for event in events(cluster, EventKind.BROKER_GONE)]
        assert gone and all("or its registration was deleted" in cause for cause in gone), gone
        assert not events(cluster, EventKind.SESSION_LOST)
        fenced = [
            (event.broker_id, event.details["broker"], event.details["meant_for_broker_epoch"])
            for event in events(cluster, EventKind.REQUEST_FENCED)
            if "meant_for_broker_epoch" in event.details and "broker" in event.details
        ]
        assert len(fenced) == len(set(fenced)), fenced

    in_a_cluster(test)


def test_it_registers_again_as_often_as_its_znode_is_deleted() -> None:
    async def test(cluster: SimulatedCluster) -> None:
        for _ in range(3):
            await delete_registrations(cluster, 1)
            await until(lambda: is_registered(cluster, 1))
        cluster.expire_session(1)
        await until(lambda: not is_registered(cluster, 1) or bool(cluster.broker(1)))
        async with asyncio.timeout(30):
            while not is_registered(cluster, 1):
                await asyncio.sleep(0.05)
        await delete_registrations(cluster, 1)
        await until(lambda: is_registered(cluster, 1))

    in_a_cluster(test)
