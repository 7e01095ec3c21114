"""The last replica standing loses power, on real processes whose disks lose data at kill -9.

The followers are paused by SIGSTOP, so their page caches stay. The leader is alone in the ISR and
is killed. `tests/simulation/test_last_replica_standing.py` has the same schedules on virtual time,
with both positions of each switch.
"""

import asyncio
import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest
from barnabas import Admin, Consumer, Producer
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.zookeeper.session import Session
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import controller_id, wait_until_in_sync
from tests.support.real_cluster import real_cluster
from tests.support.zookeeper_client import zookeeper

pytestmark = pytest.mark.integration

TP = TopicPartition("flights", 0)
KAFKA = {"last.replica.fsync.enable": "false", "eligible.leader.replicas.enable": "false"}
ONLY_FSYNC = {"eligible.leader.replicas.enable": "false"}
ONLY_ELIGIBLE = {"last.replica.fsync.enable": "false"}
COUNT = 200


@pytest.mark.parametrize(
    ("switches", "kept"),
    [({}, True), (ONLY_FSYNC, True), (ONLY_ELIGIBLE, True), (KAFKA, False)],
    ids=["default", "only-fsync", "only-eligible", "as-kafka"],
)
async def test_the_last_member_of_the_isr_loses_power(
    tmp_path: Path, switches: Mapping[str, str], kept: bool
) -> None:
    """Without eligible replicas, records are safe once a leader alone has answered `acks=1`.

    The controller may remove the paused followers before the leader does, and then the flush comes
    after the smaller ISR. With eligible replicas the moment of the power loss does not matter.
    """
    config = {
        "zookeeper.session.timeout.ms": "2000",
        "replica.lag.time.max.ms": "1000",
        "log.disk": "volatile",
    }
    with real_cluster(tmp_path, config | switches) as cluster:
        missing = await _story(cluster, until_flushed=switches == ONLY_FSYNC)
    if kept:
        assert not missing
    else:
        assert len(missing) == COUNT, "even what was acknowledged with acks=all"


async def _story(cluster: LocalCluster, until_flushed: bool) -> set[bytes]:
    leader = await controller_id(cluster.bootstrap)
    others = [broker for broker in cluster.broker_ids if broker != leader]
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        await admin.create_topic(
            TP.topic, configs={"min.insync.replicas": "2"}, assignments={0: [leader, *others]}
        )
    acknowledged = {b"%d" % number for number in range(COUNT)}
    await _produce(cluster.bootstrap, sorted(acknowledged), "all")
    for broker in others:
        cluster.signal(broker, signal.SIGSTOP)
    address = cluster.bootstrap.split(",")[leader - 1]
    await _produce(address, [b"alone"], 1)
    await _until(cluster, lambda state: state.isr == (leader,))
    if until_flushed:
        await _until_leader_knows_isr(address, leader, [leader])
        await _produce(address, [b"flushed"], 1)
    await asyncio.to_thread(cluster.kill, leader)
    for broker in others:
        cluster.signal(broker, signal.SIGCONT)
    await asyncio.to_thread(cluster.restart, leader)
    await wait_until_in_sync(cluster.bootstrap, TP.topic)
    return acknowledged - await _consume(cluster.bootstrap)


async def _produce(bootstrap: str, values: Iterable[bytes], acks: int | str) -> None:
    async with Producer(bootstrap_servers=bootstrap, acks=acks) as producer:
        for value in values:
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


async def _until_leader_knows_isr(address: str, leader: int, isr: list[int]) -> None:
    async with Admin(bootstrap_servers=address) as admin, asyncio.timeout(30.0):
        while True:
            answers = await admin.describe_replicas([TP.topic])
            own = next(answer for answer in answers if answer.broker_id == leader)
            if [replica.in_sync_replicas for replica in own.replicas] == [isr]:
                return
            await asyncio.sleep(0.05)


async def _until(cluster: LocalCluster, holds: Callable[[LeaderAndIsr], bool]) -> None:
    async with zookeeper(cluster) as session, asyncio.timeout(30.0):
        while not holds(await _state(session)):
            await asyncio.sleep(0.05)


async def _state(session: Session) -> LeaderAndIsr:
    data, stat = await session.get(znodes.state_path(TP))
    return znodes.decode_state(TP, data, stat.version)


async def test_after_kill_9_of_all_the_first_to_return_leads_at_once(tmp_path: Path) -> None:
    """The disks are intact: there is no wait for a better replica, because none can be better."""
    config = {"zookeeper.session.timeout.ms": "2000", "eligible.leader.replicas.wait.ms": "600000"}
    with real_cluster(tmp_path, config) as cluster:
        async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            await admin.create_topic(
                TP.topic, configs={"min.insync.replicas": "2"}, assignments={0: [1, 2, 3]}
            )
        acknowledged = {b"%d" % number for number in range(COUNT)}
        await _produce(cluster.bootstrap, sorted(acknowledged), "all")
        for broker in cluster.broker_ids:
            await asyncio.to_thread(cluster.kill, broker)
        await asyncio.to_thread(cluster.start_broker, 3)
        await _until(cluster, lambda state: state.leader == 3)
        for broker in (1, 2):
            await asyncio.to_thread(cluster.start_broker, broker)
        await wait_until_in_sync(cluster.bootstrap, TP.topic)
        assert await _consume(cluster.bootstrap) == acknowledged
