"""Three brokers, the controller and a client in one process on virtual time.

The same code as in production; elect, produce, kill the leader, read back; twice with one seed, and
the two runs must be the same to the last log line.
"""

import pytest
from barnabas import Admin, Consumer, Producer
from barnabas.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster, Trace
from barnabas_simulator.loop import run

from tests.support.delivery import History, judge

TP = TopicPartition("flights", 0)


async def produce(cluster: SimulatedCluster, history: History, numbers: range) -> None:
    async with Producer(cluster.bootstrap, runtime=cluster.client_runtime("producer")) as producer:
        for number in numbers:
            value = b"%d" % number
            history.sent.append(value)
            metadata = await producer.send_and_wait(TP.topic, value, partition=0)
            history.acked[value] = metadata.offset


async def read_back(cluster: SimulatedCluster) -> list[tuple[int, bytes]]:
    records: list[tuple[int, bytes]] = []
    async with Consumer(
        bootstrap_servers=cluster.bootstrap,
        runtime=cluster.client_runtime("consumer"),
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.assign([TP])
        end = (await consumer.end_offsets([TP]))[TP]
        while await consumer.position(TP) < end:
            records += [(r.offset, r.value) for r in await consumer.poll(timeout_ms=500)]
    return records


async def leader_of(cluster: SimulatedCluster) -> int:
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        topic = (await admin.describe_topics([TP.topic]))[0]
    return topic.partitions[0].leader_id


async def story(seed: int) -> tuple[int, int]:
    """Elect, produce, kill the leader, produce, restart it, read back."""
    cluster = SimulatedCluster(seed)
    await cluster.start()
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(
            TP.topic, partitions=1, replication_factor=3, configs={"min.insync.replicas": "2"}
        )
    history = History()
    await produce(cluster, history, range(50))
    first = await leader_of(cluster)
    cluster.kill(first)
    await produce(cluster, history, range(50, 100))
    second = await leader_of(cluster)
    cluster.start_broker(first)
    await cluster.serving()
    await produce(cluster, history, range(100, 150))
    judge({TP: history}, {TP: await read_back(cluster)}).assert_good()
    assert len(history.acked) == 150
    return first, second


@pytest.mark.parametrize("seed", range(5))
def test_a_killed_leader_is_replaced_and_nothing_acknowledged_is_lost(seed: int) -> None:
    first, second = run(story(seed), seed=seed, max_time=600.0)
    assert first != second and second > 0


def test_one_seed_is_one_exact_run() -> None:
    traces = []
    for _ in range(2):
        with Trace() as trace:
            run(story(3), seed=3, max_time=600.0)
        traces.append(trace.lines)
    assert traces[0] == traces[1]
    assert len(traces[0]) > 50


def test_another_seed_is_another_run() -> None:
    traces = []
    for seed in (3, 4):
        with Trace() as trace:
            run(story(seed), seed=seed, max_time=600.0)
        traces.append(trace.lines)
    assert traces[0] != traces[1]
