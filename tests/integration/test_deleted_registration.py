"""Registrations of running brokers are deleted from a real ZooKeeper: they register again."""

import asyncio

import pytest
from barnabas import Producer, TopicPartition
from barnabas_controller.store import znodes
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import create_topic, wait_until_in_sync
from tests.support.workload import read_all
from tests.support.zookeeper_client import broker_epoch, zookeeper

pytestmark = pytest.mark.integration

TP = TopicPartition("registered", 0)


async def test_all_registrations_deleted_and_every_record_stays(cluster: LocalCluster) -> None:
    await create_topic(cluster.bootstrap, TP.topic, 1)
    async with Producer(cluster.bootstrap) as producer, zookeeper(cluster) as session:
        await producer.send_and_wait(TP.topic, b"before", partition=0)
        before = {b: await broker_epoch(session, b) for b in cluster.broker_ids}
        for broker_id in cluster.broker_ids:
            await session.delete(znodes.broker_path(broker_id))
        async with asyncio.timeout(20):
            for broker_id in cluster.broker_ids:
                while await broker_epoch(session, broker_id) in (None, before[broker_id]):
                    await asyncio.sleep(0.02)
        await wait_until_in_sync(cluster.bootstrap, TP.topic)
        await producer.send_and_wait(TP.topic, b"after", partition=0)
    found = await read_all(cluster.bootstrap, [TP])
    assert [value for _, value in found[TP]] == [b"before", b"after"]
    for broker_id in cluster.broker_ids:
        log = cluster.broker(broker_id).log_file.read_text(errors="replace")
        assert "was deleted while its session lives" in log
        assert log.count("STALE_BROKER_EPOCH") <= 5
