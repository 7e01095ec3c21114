"""The last member of the ISR never returns, on real processes: an eligible replica leads."""

import asyncio
import signal
import time
from pathlib import Path

import pytest
from barnabas import Admin, Consumer, Producer
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.zookeeper.session import Session

from tests.support.cluster_state import controller_id
from tests.support.real_cluster import real_cluster
from tests.support.zookeeper_client import zookeeper

pytestmark = pytest.mark.integration

TP = TopicPartition("flights", 0)
WAIT_SECONDS = 4.0
CONFIG = {
    "zookeeper.session.timeout.ms": "2000",
    "replica.lag.time.max.ms": "1000",
    "eligible.leader.replicas.wait.ms": str(int(WAIT_SECONDS * 1000)),
}


@pytest.mark.parametrize("is_controller", [False, True], ids=["another", "the-controller"])
async def test_an_eligible_replica_leads_when_the_last_member_never_returns(
    tmp_path: Path, is_controller: bool
) -> None:
    with real_cluster(tmp_path, CONFIG) as cluster:
        controller = await controller_id(cluster.bootstrap)
        leader = next(b for b in cluster.broker_ids if (b == controller) is is_controller)
        others = [b for b in cluster.broker_ids if b != leader]
        async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            await admin.create_topic(
                TP.topic, configs={"min.insync.replicas": "2"}, assignments={0: [leader, *others]}
            )
        acknowledged = {b"%d" % number for number in range(200)}
        await _produce(cluster.bootstrap, acknowledged, "all")
        for broker_id in others:
            cluster.signal(broker_id, signal.SIGSTOP)
        await _produce(cluster.bootstrap.split(",")[leader - 1], {b"alone"}, 1)
        async with zookeeper(cluster) as session, asyncio.timeout(60.0):
            while (await _state(session)).isr != (leader,):
                await asyncio.sleep(0.05)
            killed = time.monotonic()
            await asyncio.to_thread(cluster.kill, leader)
            for broker_id in others:
                cluster.signal(broker_id, signal.SIGCONT)
            while (await _state(session)).leader not in others:
                await asyncio.sleep(0.05)
        assert time.monotonic() - killed >= WAIT_SECONDS
        later = {b"later-%d" % number for number in range(20)}
        await _produce(cluster.bootstrap, later, "all")
        assert acknowledged | later <= await _consume(cluster.bootstrap)


async def _produce(bootstrap: str, values: set[bytes], acks: int | str) -> None:
    async with Producer(bootstrap_servers=bootstrap, acks=acks) as producer:
        for value in sorted(values):
            await producer.send(TP.topic, value, partition=TP.partition)
        await producer.flush()


async def _consume(bootstrap: str) -> set[bytes]:
    found: set[bytes] = set()
    async with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TP])
        end = (await consumer.end_offsets([TP]))[TP]
        while await consumer.position(TP) < end:
            found |= {record.value or b"" for record in await consumer.poll(timeout_ms=500)}
    return found


async def _state(session: Session) -> LeaderAndIsr:
    data, stat = await session.get(znodes.state_path(TP))
    return znodes.decode_state(TP, data, stat.version)
