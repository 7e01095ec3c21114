"""`segment.bytes` gets smaller while a request with many batches is unanswered: each is stored
once. The leader then refuses them together. It may have stored all of them, some or none.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from barnabas import Admin, ConfigResource, Producer
from barnabas.producer import DeliveryHandle
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.config_world import log_of, until, until_everywhere
from tests.support.delivery import History, judge
from tests.support.whole_cluster import TP, leader_of, read_back

CLIENT = "producer"
BATCHES = 30
SLOW_FOLLOWERS = {"replica.fetch.max.bytes": "250", "replica.fetch.response.max.bytes": "250"}

Fault = Callable[[SimulatedCluster, int], Awaitable[None]]


async def request_is_lost(cluster: SimulatedCluster, leader: int) -> None:
    cluster.network.links.lose_next((CLIENT, f"broker-{leader}"))


async def answer_is_lost(cluster: SimulatedCluster, leader: int) -> None:
    cluster.network.cut(f"broker-{leader}", CLIENT)
    await until(lambda: log_of(cluster, leader, TP).high_watermark == 2 + BATCHES)


async def leader_dies(cluster: SimulatedCluster, leader: int) -> None:
    """The followers have the first batches: more than they would recognize one by one."""
    cluster.network.cut(f"broker-{leader}", CLIENT)
    others = [broker_id for broker_id in cluster.running_brokers if broker_id != leader]
    while min(log_of(cluster, follower, TP).log_end_offset for follower in others) < 12:
        await asyncio.sleep(0.0001)
    assert max(log_of(cluster, follower, TP).log_end_offset for follower in others) < 2 + BATCHES
    cluster.kill(leader)


async def played(seed: int, fault: Fault, segment_bytes: str) -> tuple[Producer, History]:
    cluster = SimulatedCluster(seed, config=SLOW_FOLLOWERS)
    await cluster.start()
    async with administered(cluster) as admin:
        await admin.create_topic(TP.topic, 1, replication_factor=3)
    async with Producer(
        cluster.bootstrap, runtime=cluster.client_runtime(CLIENT), batch_size=64,
        request_timeout_ms=4_000,
    ) as producer:  # fmt: skip
        handles = await sent(cluster, producer, fault)
        async with administered(cluster) as admin:
            await admin.incremental_alter_configs(
                ConfigResource.topic(TP.topic), {"segment.bytes": segment_bytes}
            )
        await until_everywhere(cluster, TP, lambda c: c.segment_bytes == int(segment_bytes))
        await until(lambda: has_failed(producer))
        for broker_id in cluster.broker_ids:
            cluster.network.heal(CLIENT, f"broker-{broker_id}")
            cluster.network.heal(f"broker-{broker_id}", CLIENT)
        history = History(sent=list(handles))
        for value, handle in handles.items():
            history.acked[value] = (await handle).offset
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()
    return producer, history


def administered(cluster: SimulatedCluster) -> Admin:
    """An admin client with connections of its own."""
    return Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin"))


async def sent(
    cluster: SimulatedCluster, producer: Producer, fault: Fault
) -> dict[bytes, DeliveryHandle]:
    """One request with many batches, which meets the fault; no other reaches a leader yet."""
    handles = {b"first": await producer.send(TP.topic, b"first", partition=0)}
    await handles[b"first"]
    leader = await leader_of(cluster)
    for value in [b"before", *(b"%03d" % number for number in range(BATCHES))]:
        handles[value] = await producer.send(TP.topic, value, partition=0)
    await until_sent(producer, 2)
    if fault is request_is_lost:
        await fault(cluster, leader)
    await until_sent(producer, 3)
    if fault is not request_is_lost:
        await fault(cluster, leader)
    assert producer.metrics().batches_sent == 2 + BATCHES
    for other in cluster.broker_ids:
        cluster.network.cut(CLIENT, f"broker-{other}")
    return handles


async def until_sent(producer: Producer, requests: int) -> None:
    while producer.metrics().requests_sent < requests:
        await asyncio.sleep(0.0001)


def has_failed(producer: Producer) -> bool:
    """Whether the request with many batches has failed."""
    return all(batch.last_failure is not None for batch in producer._accumulator.incomplete)


@pytest.mark.parametrize("segment_bytes", ["100", "700"])
@pytest.mark.parametrize("fault", [request_is_lost, answer_is_lost, leader_dies])
@pytest.mark.parametrize("seed", range(3))
def test_each_batch_is_stored_once_and_in_order(
    seed: int, fault: Fault, segment_bytes: str
) -> None:
    producer, history = run(played(seed, fault, segment_bytes), seed=seed, max_time=300)
    assert list(history.acked.values()) == list(range(2 + BATCHES))
    assert producer.metrics().epochs_started == 0
    alone = BATCHES if fault is request_is_lost else 0
    assert producer.metrics().batches_retried >= BATCHES + alone
