"""A request about a deleted topic arrives when another topic has its name; a replica vanishes.

The connection was half open: its frames wait until the link is back, and the controller has used
another connection meanwhile. Only the topic id distinguishes the two topics, not an epoch.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from barnabas import Admin
from barnabas_broker.replica import controller_fence
from barnabas_broker.replica.vanished import VanishedReplicas
from barnabas_common.errors import TopicAlreadyExistsError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    StopReplicaPartition,
    StopReplicaRequest,
    StopReplicaResponse,
)
from barnabas_common.messages.sentinels import EPOCH_DURING_DELETE
from barnabas_common.runtime import Address, Message, Service
from barnabas_controller.channels.controller_channel_manager import _RequestSender
from barnabas_simulator.campaign import state
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import FaultBudget, Invariants, InvariantViolation
from barnabas_simulator.loop import run

from tests.support.delivery import History, judge
from tests.support.whole_cluster import TP, produce, read_back

LAG = 10.0
CONFIG = {"controller.socket.timeout.ms": "5000", "replica.lag.time.max.ms": "10000"}


def in_a_cluster(
    test: Callable[[SimulatedCluster, Admin], Awaitable[None]], vanishes: bool = False
) -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=1, config=CONFIG)
        Invariants(cluster, FaultBudget(vanished_replica=vanishes)).install()
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await create(admin)
            await test(cluster, admin)

    run(story(), seed=1, max_time=600)


async def create(admin: Admin, partitions: int = 1) -> None:
    await admin.create_topic(TP.topic, partitions, 3, configs={"min.insync.replicas": "2"})


async def create_again(admin: Admin) -> None:
    """Create the topic again; the broker that is asked may still know the old one."""
    while True:
        with contextlib.suppress(TopicAlreadyExistsError):
            return await create(admin)
        await asyncio.sleep(0.05)


def isr(cluster: SimulatedCluster) -> tuple[int, ...]:
    return state.partition_states(cluster)[TP].state.isr


def leader(cluster: SimulatedCluster) -> int:
    return state.partition_states(cluster)[TP].state.leader


async def until(condition: Callable[[], bool], within: float) -> float:
    """Wait for a condition; returns the seconds it took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.02)
    return loop.time() - began


def kinds(cluster: SimulatedCluster, broker_id: int, kind: EventKind) -> list[str]:
    return [e.cause for e in cluster.broker(broker_id).events.since(0) if e.kind is kind]


@contextlib.asynccontextmanager
async def late_stop_replica(
    cluster: SimulatedCluster, victim: int, delete: bool
) -> AsyncIterator[asyncio.Event]:
    """Cut a broker's link while the next such StopReplica to it is in flight."""
    boss, real, sent = state.controller(cluster), _RequestSender._until_answered, asyncio.Event()
    assert boss is not None

    async def until_answered(self: Any, request: Any) -> Message:
        if (
            self._broker_id == victim
            and isinstance(request, StopReplicaRequest)
            and not sent.is_set()
            and any(item.delete_partition == delete for item in request.partitions)
        ):
            cluster.network.cut(cluster.host(boss), cluster.host(victim))
            sent.set()
        return await real(self, request)

    with mock.patch.object(_RequestSender, "_until_answered", until_answered):
        yield sent


def heal_with_late_frames(cluster: SimulatedCluster, victim: int, seconds: float) -> None:
    """Heal the link, deliver its frames `seconds` later, and break the controller's connections."""
    boss, network = state.controller(cluster), cluster.network
    assert boss is not None
    conditions = network.links.conditions
    network.links.conditions = replace(conditions, min_latency=seconds, max_latency=seconds)
    network.heal(cluster.host(boss), cluster.host(victim))
    network.links.conditions = conditions
    for connection in list(network._connections):
        if connection.nodes == (cluster.incarnation(boss), cluster.incarnation(victim)):
            connection.client_end.break_off("keepalive timeout")


async def call(cluster: SimulatedCluster, broker_id: int, request: Message) -> Any:
    """Send a request of the control service to a broker, as a late frame."""
    (address,) = [
        address
        for address, listener in cluster.network.listeners.items()
        if listener.node == cluster.incarnation(broker_id)
        and Service.CONTROL in listener.acceptor.services
    ]
    channel = cluster.network.node("late").connect(Address(*address), Service.CONTROL)
    try:
        return await channel.call(request, 5.0)
    finally:
        await channel.close()


def topic_id(cluster: SimulatedCluster, broker_id: int) -> str:
    partition = cluster.broker(broker_id).replica_manager.partitions.get(TP)
    assert partition is not None and partition.topic_id
    return partition.topic_id


async def only_alive(cluster: SimulatedCluster, broker_id: int) -> None:
    """Kill the other brokers, and restart them when this one has had time to lead."""
    others = [other for other in cluster.broker_ids if other != broker_id]
    for other in others:
        cluster.kill(other)
    await asyncio.sleep(15)
    for other in others:
        cluster.start_broker(other)
    await cluster.serving()
    await until(lambda: len(isr(cluster)) == 3, within=60)


@pytest.mark.parametrize("delete", [True, False], ids=["delete", "stop"])
@pytest.mark.parametrize("is_numbered", [True, False], ids=["by its number", "by its topic id"])
def test_a_late_stop_replica_leaves_the_topic_that_has_the_name_now(
    delete: bool, is_numbered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number shows that it is late; a broker that has restarted since knows no number."""
    if not is_numbered:
        monkeypatch.setattr(controller_fence, "is_late", lambda _number, _newest: False)

    async def test(cluster: SimulatedCluster, admin: Admin) -> None:
        await produce(cluster, History(), range(5))
        boss = state.controller(cluster)
        victim = next(b for b in cluster.broker_ids if b not in (boss, leader(cluster)))
        async with late_stop_replica(cluster, victim, delete) as sent:
            deletion = asyncio.create_task(admin.delete_topics([TP.topic], timeout_ms=20_000))
            await sent.wait()
            await asyncio.sleep(1.0)
            heal_with_late_frames(cluster, victim, 3.0)
            await deletion
            await until(lambda: TP not in state.partition_states(cluster), within=10)
        await create_again(admin)
        history = History()
        await produce(cluster, history, range(5, 10))
        await asyncio.sleep(10)
        assert isr(cluster) and len(isr(cluster)) == 3
        partition = cluster.broker(victim).replica_manager.partitions.get(TP)
        assert partition is not None and partition.log is not None
        assert partition.log.log_end_offset == 5
        (fenced,) = kinds(cluster, victim, EventKind.REQUEST_FENCED)
        assert ("came after one" if is_numbered else "a StopReplica for topic id") in fenced
        await produce(cluster, history, range(10, 15))
        await only_alive(cluster, victim)
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()

    in_a_cluster(test)


def test_a_late_alter_partition_leaves_the_isr_of_the_topic_that_has_the_name_now() -> None:
    async def test(cluster: SimulatedCluster, admin: Admin) -> None:
        before = leader(cluster)
        item = AlterPartitionItem(
            *TP, leader_epoch=0, partition_epoch=0, new_isr=[before], topic_id=topic_id(cluster, 1)
        )
        await admin.delete_topics([TP.topic], timeout_ms=20_000)
        await until(lambda: TP not in state.partition_states(cluster), within=10)
        await create_again(admin)
        await until(lambda: TP in state.partition_states(cluster), within=10)
        boss = state.controller(cluster)
        assert boss is not None
        epoch = cluster.zookeeper.tree.node(f"/brokers/ids/{before}").czxid
        answer = await call(cluster, boss, AlterPartitionRequest(before, epoch, [item]))
        assert isinstance(answer, AlterPartitionResponse)
        assert [p.error_code for p in answer.partitions] == [ErrorCode.UNKNOWN_TOPIC_ID]
        assert len(isr(cluster)) == 3

    in_a_cluster(test)


async def remove_replica(cluster: SimulatedCluster, victim: int) -> None:
    """Remove a replica without the controller, by a StopReplica that no check can refuse."""
    epoch = cluster.zookeeper.tree.node(f"/brokers/ids/{victim}").czxid
    boss = state.controller(cluster)
    assert boss is not None
    item = StopReplicaPartition(*TP, EPOCH_DURING_DELETE, True, "", topic_id(cluster, victim))
    answer = await call(cluster, victim, StopReplicaRequest(boss, 1, epoch, [item]))
    assert isinstance(answer, StopReplicaResponse) and not answer.error_code
    assert [p.error_code for p in answer.partitions] == [ErrorCode.NONE]


def test_a_replica_that_vanishes_trips_i24() -> None:
    async def test(cluster: SimulatedCluster, _: Admin) -> None:
        await produce(cluster, History(), range(5))
        await remove_replica(cluster, next(b for b in cluster.broker_ids if b != leader(cluster)))
        await asyncio.sleep(1.0)

    with pytest.raises(InvariantViolation, match="I24 MemberHosts"):
        in_a_cluster(test)


@pytest.mark.parametrize("others", [0, 3], ids=["its only partition", "one of four"])
def test_a_member_that_hosts_nothing_leaves_the_isr_and_comes_back(others: int) -> None:
    """Its broker does not notice the loss, but its fetch session shows it to the leader."""

    async def test(cluster: SimulatedCluster, admin: Admin) -> None:
        if others:
            await admin.create_topic("other", others, 3)
        history = History()
        await produce(cluster, history, range(5))
        victim = next(b for b in cluster.broker_ids if b != leader(cluster))
        await asyncio.sleep(1.0)
        assert len(isr(cluster)) == 3
        with mock.patch.object(VanishedReplicas, "removed", lambda *_: False):
            await remove_replica(cluster, victim)
        said = f"the fetch session of broker {victim} does not name the partition"

        def has_left() -> bool:
            """It may be back before anybody sees the smaller ISR."""
            changes = kinds(cluster, leader(cluster), EventKind.ISR_CHANGED)
            return any(said in why for why in changes)

        took = await until(has_left, within=2 * LAG)
        assert took <= LAG + 0.5
        await until(lambda: victim in isr(cluster), within=10)
        await produce(cluster, history, range(5, 10))
        await only_alive(cluster, victim)
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()

    in_a_cluster(test, vanishes=True)


def test_a_vanished_replica_does_not_lead_with_an_empty_log() -> None:
    """All other members are killed before its absence is noticed."""

    async def test(cluster: SimulatedCluster, admin: Admin) -> None:
        history = History()
        await produce(cluster, history, range(5))
        victim = next(b for b in cluster.broker_ids if b != leader(cluster))
        await remove_replica(cluster, victim)
        await only_alive(cluster, victim)
        (why,) = kinds(cluster, victim, EventKind.REGISTERED_ANEW)
        assert why == f"{TP} was deleted here while this replica was in the ISR"
        await produce(cluster, history, range(5, 10))
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()

    in_a_cluster(test, vanishes=True)
