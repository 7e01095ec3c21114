"""A consumer that wants much at once is not held up at the end of every segment."""

import asyncio

from barnabas import Admin, Consumer
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.delivery import History
from tests.support.whole_cluster import MAX_SECONDS, TP, produce

RECORDS = 40
WAIT_SECONDS = 5.0


async def seconds_to_read_all() -> float:
    cluster = SimulatedCluster(1)
    await cluster.start()
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(TP.topic, 1, 3, configs={"segment.bytes": "300"})
    await produce(cluster, History(), range(RECORDS))
    loop, read = asyncio.get_running_loop(), 0
    async with Consumer(
        bootstrap_servers=cluster.bootstrap,
        runtime=cluster.client_runtime("consumer"),
        auto_offset_reset="earliest",
        fetch_min_bytes=1_000_000,
        fetch_max_wait_ms=int(WAIT_SECONDS * 1000),
    ) as consumer:
        consumer.assign([TP])
        began = loop.time()
        while read < RECORDS:
            read += len(await consumer.poll())
        return loop.time() - began


def test_a_fetch_from_an_older_segment_does_not_wait_for_more() -> None:
    assert WAIT_SECONDS <= run(seconds_to_read_all(), seed=1, max_time=MAX_SECONDS) < 6.0
