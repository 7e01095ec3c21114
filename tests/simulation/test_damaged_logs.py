"""Bits of a log change on one broker's disk, in a whole cluster; all is read all the same."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest
from barnabas import Admin, Consumer
from barnabas_common.errors import CorruptMessageError
from barnabas_common.events import Event, EventKind
from barnabas_common.record.batch import batches
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.whole_cluster import led_by, send

KEY = TopicPartition("rotten", 0)
BATCHES = 8
EXPECTED = [b"%d" % number for number in range(BATCHES)]
CONFIG = {"auto.leader.rebalance.enable": "false"}

# Where a header is changed: the byte, counted from the start of the batch, and its bits.
FIELDS = {
    "offset, low": (7, 1),
    "offset, high": (1, 1),
    "length, low": (11, 1),
    "length, high": (9, 1),
    "magic": (16, 1),
    "last offset delta": (24, 1),
}


def segment(cluster: SimulatedCluster, broker_id: int, key: TopicPartition = KEY) -> bytearray:
    files = cluster.disks[broker_id].look_into(f"/data/{key.topic}-{key.partition}")
    return files[f"{0:020}.log"].data


def flip(cluster: SimulatedCluster, broker_id: int, number: int, field: str) -> None:
    """Change a bit of one batch's header."""
    data, (byte, bits) = segment(cluster, broker_id), FIELDS[field]
    data[[position for position, _ in batches(bytes(data))][number] + byte] ^= bits


def told(cluster: SimulatedCluster, kind: EventKind) -> list[Event]:
    return [event for event in cluster.events() if event.kind is kind]


async def read(cluster: SimulatedCluster, count: int) -> list[bytes]:
    """Poll again after a damaged batch, as the error says."""
    values: list[bytes] = []
    async with Consumer(
        bootstrap_servers=cluster.bootstrap, runtime=cluster.client_runtime("consumer")
    ) as consumer:
        consumer.assign([KEY])
        consumer.seek(KEY, 0)
        while len(values) < count:
            with suppress(CorruptMessageError):
                values += [record.value or b"" for record in await consumer.poll(timeout_ms=500)]
    return values


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.1)


def in_sync(cluster: SimulatedCluster, *brokers: int) -> bool:
    return any(
        partition.leadership is not None and set(partition.leadership.isr.committed) == set(brokers)
        for broker_id in brokers
        if (partition := cluster.broker(broker_id).replica_manager.partitions.get(KEY)) is not None
    )


async def written(cluster: SimulatedCluster) -> None:
    await cluster.start()
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(KEY.topic, assignments={0: [1, 2, 3]})
    for value in EXPECTED:
        await send(cluster, KEY, [value])


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("number", [3, BATCHES - 1])
def test_a_consumer_gets_all_although_a_header_is_damaged_at_the_leader(
    field: str, number: int
) -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=6, config=CONFIG)
        await written(cluster)
        flip(cluster, 1, number, field)
        assert await read(cluster, BATCHES) == EXPECTED
        event = told(cluster, EventKind.LOG_DAMAGED)[-1]
        assert event.details["offset"] == number
        await until(lambda: in_sync(cluster, 1, 2, 3))
        assert segment(cluster, 1) == segment(cluster, 2) == segment(cluster, 3)

    run(story(), seed=6, max_time=120.0)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("number", [3, BATCHES - 1])
def test_a_follower_that_was_away_gets_all_although_a_header_is_damaged_at_the_leader(
    field: str, number: int
) -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=6, config=CONFIG)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(KEY.topic, assignments={0: [1, 2, 3]})
        cluster.kill(3)
        for value in EXPECTED:
            await send(cluster, KEY, [value])
        flip(cluster, 1, number, field)
        cluster.start_broker(3)
        await led_by(cluster, KEY, 2)
        await until(lambda: in_sync(cluster, 1, 2, 3))
        event = told(cluster, EventKind.LOG_DAMAGED)[-1]
        assert event.details["offset"] == number
        assert segment(cluster, 1) == segment(cluster, 2) == segment(cluster, 3)
        assert await read(cluster, BATCHES) == EXPECTED

    run(story(), seed=6, max_time=120.0)
