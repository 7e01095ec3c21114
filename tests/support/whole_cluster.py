"""A scenario of a whole cluster in memory: elect, produce, kill the leader, read back.

    python -m tests.support.whole_cluster SEED

prints the digest of everything that was logged, so that runs of different processes, with different
hash seeds, can be compared.
"""

import hashlib
import sys
from collections.abc import Iterable

from barnabas import Admin, Consumer, Producer
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster, Trace
from barnabas_simulator.loop import run

from tests.support.delivery import History, judge
from tests.support.replicas import until_replicas

TP = TopicPartition("flights", 0)
MAX_SECONDS = 600.0


async def produce(cluster: SimulatedCluster, history: History, numbers: range) -> None:
    """Send the numbers as records and wait for each acknowledgement."""
    async with Producer(cluster.bootstrap, runtime=cluster.client_runtime("producer")) as producer:
        for number in numbers:
            value = b"%d" % number
            history.sent.append(value)
            metadata = await producer.send_and_wait(TP.topic, value, partition=0)
            history.acked[value] = metadata.offset


async def read_back(cluster: SimulatedCluster) -> list[tuple[int, bytes]]:
    """Return offsets and values from the beginning to the end."""
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
        return (await admin.describe_topic(TP.topic)).partitions[0].leader_id


async def led_by(cluster: SimulatedCluster, key: TopicPartition, broker_id: int) -> None:
    """Wait until a broker reports that it leads."""
    await until_replicas(
        cluster.bootstrap,
        key,
        lambda found: broker_id in found and found[broker_id].is_leader,
        within=60.0,
        runtime=cluster.client_runtime("looker"),
    )


async def send(
    cluster: SimulatedCluster, key: TopicPartition, values: Iterable[bytes], acks: int | str = "all"
) -> None:
    """Send values one after the other, each after the previous one is acknowledged."""
    runtime = cluster.client_runtime("producer")
    async with Producer(cluster.bootstrap, runtime=runtime, acks=acks) as producer:
        for value in values:
            await producer.send_and_wait(key.topic, value, partition=key.partition)


async def story(seed: int, power_loss: bool = False) -> tuple[int, int]:
    """Kill the leader and restart it; returns the first and the second leader.

    With `power_loss` its disk loses what was not flushed.
    """
    cluster = SimulatedCluster(seed)
    await cluster.start()
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(
            TP.topic, partitions=1, replication_factor=3, configs={"min.insync.replicas": "2"}
        )
    history = History()
    await produce(cluster, history, range(50))
    first = await leader_of(cluster)
    cluster.kill(first, keep_unflushed=not power_loss)
    await produce(cluster, history, range(50, 100))
    second = await leader_of(cluster)
    cluster.start_broker(first)
    await cluster.serving()
    await produce(cluster, history, range(100, 150))
    judge({TP: history}, {TP: await read_back(cluster)}).assert_good()
    assert len(history.acked) == 150
    return first, second


def traced(seed: int) -> list[str]:
    """Return every line that the scenario logs, with virtual time and node.

    Lines that the cluster's tasks log when they are cancelled at the end are left out.
    """

    async def watched() -> list[str]:
        with Trace() as trace:
            await story(seed)
        return trace.lines

    return run(watched(), seed=seed, max_time=MAX_SECONDS)


def digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


if __name__ == "__main__":
    print(digest(traced(int(sys.argv[1]))))
