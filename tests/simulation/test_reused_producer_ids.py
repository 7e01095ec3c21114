"""Producer ids that are given out twice, because ZooKeeper has forgotten the first time."""

import asyncio
from contextlib import suppress

import pytest
from barnabas import Producer
from barnabas_broker.coordinator.producer_ids import ProducerIdManager
from barnabas_common.errors import InvalidProducerEpochError
from barnabas_simulator.cluster import SimulatedCluster

from tests.support.whole_cluster import TP, read_back
from tests.support.zookeeper_scene import Scene, in_a_cluster


async def one_record_each(cluster: SimulatedCluster, values: list[bytes]) -> None:
    """A new producer for each record, which is acknowledged."""
    for value in values:
        runtime = cluster.client_runtime(f"producer of {value.decode()}")
        async with Producer(cluster.bootstrap, runtime=runtime) as producer:
            await producer.send_and_wait(TP.topic, value, partition=TP.partition)


def test_no_record_is_taken_for_that_of_an_earlier_producer() -> None:
    async def test(scene: Scene) -> None:
        cluster = scene.cluster
        copy = cluster.zookeeper.copy()
        for broker_id in cluster.broker_ids:
            cluster.kill(broker_id)
            cluster.start_broker(broker_id)
            await cluster.serving()
            await asyncio.sleep(5)
        before = [b"before %d" % number for number in range(12)]
        await one_record_each(cluster, before)
        for broker_id in cluster.broker_ids:
            cluster.kill(broker_id)
        cluster.zookeeper.stop()
        cluster.zookeeper.restore(copy)
        cluster.zookeeper.start()
        await asyncio.sleep(15)
        for broker_id in cluster.broker_ids:
            cluster.start_broker(broker_id)
        await cluster.serving()
        await scene.whole()
        after = [b"after %d" % number for number in range(12)]
        await one_record_each(cluster, after)
        found = [value for _, value in await read_back(cluster)]
        assert found == [*scene.acknowledged, *before, *after]

    in_a_cluster(test, 1)


@pytest.mark.parametrize("seed", range(3))
def test_of_producers_that_share_an_id_nothing_acknowledged_is_lost_or_repeated(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    async def always_7(_: ProducerIdManager) -> int:
        return 7

    monkeypatch.setattr(ProducerIdManager, "generate", always_7)

    async def many(scene: Scene, name: str) -> list[bytes]:
        acknowledged = []
        runtime = scene.cluster.client_runtime(name)
        async with Producer(scene.cluster.bootstrap, runtime=runtime) as producer:
            for value in (f"{name} {number}".encode() for number in range(20)):
                with suppress(InvalidProducerEpochError):  # it is told
                    await producer.send_and_wait(TP.topic, value, partition=TP.partition)
                    acknowledged.append(value)
                await asyncio.sleep(0.1)
        return acknowledged

    async def test(scene: Scene) -> None:
        acknowledged = await asyncio.gather(*(many(scene, name) for name in "abc"))
        found = [value for _, value in await read_back(scene.cluster)]
        assert len(found) == len(set(found))
        assert {value for values in acknowledged for value in values} <= set(found)
        assert any(acknowledged)

    in_a_cluster(test, seed)
