"""While ZooKeeper is away, every broker knows the partitions of the coordinators' topics."""

import asyncio

from barnabas import Producer
from barnabas_simulator.cluster import SimulatedCluster

from tests.support.raw_transactions import PARTITIONS, TransactionCoordinators, in_cluster
from tests.support.transactional_data import read

ONE_PARTITION = {
    "offsets_topic_num_partitions": "1",
    "transaction_state_log_num_partitions": "1",
}


def producer_of(cluster: SimulatedCluster, name: str) -> Producer:
    runtime = cluster.client_runtime(name)
    return Producer(cluster.bootstrap, runtime=runtime, transactional_id=name)


async def copied(producer: Producer, partition: int) -> None:
    async with producer.transaction():
        await producer.send("orders", b"%d" % partition, partition=partition)


def test_transactions_begin_on_leaders_that_had_none_before() -> None:
    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        async with producer_of(cluster, "copy") as producer:
            await producer.init_transactions()
            await copied(producer, 0)
            cluster.zookeeper.stop()
            for partition in (1, 2):
                await copied(producer, partition)
        assert await read(cluster, PARTITIONS) == [b"0", b"1", b"2"]

    in_cluster(story, max_time=100.0, **ONE_PARTITION)


def test_coordinators_are_found_by_brokers_that_lead_no_partition_of_their_topics() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        await coordinators.find("g")
        await coordinators.find_transaction("copy")
        await asyncio.sleep(1.0)
        cluster.zookeeper.stop()
        await asyncio.sleep(1.0)
        for broker_id in cluster.broker_ids:
            broker = cluster.broker(broker_id)
            for topic in (broker.groups.topic, broker.transactions.topic):
                assert topic.partition_count == 1, (broker_id, topic.name)

    in_cluster(story, max_time=100.0, **ONE_PARTITION)
