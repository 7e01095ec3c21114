"""Markers for partitions that the coordinator's metadata lacks: gone, or only not believed."""

import asyncio

import pytest
from barnabas import Admin
from barnabas_common.errors.error_code import ErrorCode
from barnabas_controller.store import znodes
from barnabas_simulator.cluster import SimulatedCluster

from tests.support.raw_transactions import (
    PARTITIONS,
    MarkerLeaders,
    RawTransaction,
    TransactionCoordinators,
    in_cluster,
    same_everywhere,
)

E = ErrorCode


def test_a_deleted_topic_needs_no_markers(
    leaders: MarkerLeaders,
) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = RawTransaction(coordinators)
        await one.init()
        await one.add(*PARTITIONS)
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.delete_topics(["orders"])
        assert await one.end(True) is E.NONE
        found = await coordinators.settled("copy")
        assert (found.transaction_state, leaders.markers) == ("CompleteCommit", {})

    in_cluster(story)


@pytest.mark.parametrize("what", ["its deletion waits", "a smaller one has its name"])
def test_a_deleted_topic_needs_no_markers_either_while(what: str, leaders: MarkerLeaders) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = RawTransaction(coordinators)
        await one.init()
        await one.add(*PARTITIONS)
        at = await coordinators.find_transaction("copy")
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            if what == "its deletion waits":
                victim = next(broker for broker in cluster.broker_ids if broker != at)
                cluster.kill(victim)
                while cluster.zookeeper.tree.find(znodes.broker_path(victim)) is not None:
                    await asyncio.sleep(0.1)
            await admin.delete_topics(["orders"])
            if what != "its deletion waits":
                await admin.create_topic("orders", partitions=1, replication_factor=3)
        assert await one.end(True) is E.NONE
        found = await coordinators.settled("copy")
        assert found.transaction_state == "CompleteCommit"
        assert leaders.markers.keys() <= {PARTITIONS[0]}

    in_cluster(story)


def test_a_partition_whose_state_no_controller_can_believe_is_not_taken_for_deleted(
    leaders: MarkerLeaders,
) -> None:
    """Brokers that start meanwhile do not know it. Its records are part of the transaction."""

    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = RawTransaction(coordinators)
        producer = await one.init()
        await one.add(*PARTITIONS)
        leaders.refuse = lambda _: E.NOT_LEADER_OR_FOLLOWER
        assert await one.end(True) is E.NONE
        path = znodes.state_path(PARTITIONS[0])
        node = cluster.zookeeper.tree.find(path)
        assert node is not None
        good = node.data
        for broker_id in cluster.broker_ids:
            cluster.kill(broker_id)
        cluster.zookeeper.put(path, b"nonsense")
        for broker_id in cluster.broker_ids:
            cluster.start_broker(broker_id)
        await cluster.serving()
        leaders.refuse = lambda _: E.NONE
        await asyncio.sleep(30.0)  # three times as long as an unknown partition is waited for
        found = await coordinators.describe_transaction("copy")
        missing = [(item.topic, item.partition) for item in found.partitions]
        assert (found.transaction_state, missing) == ("PrepareCommit", [PARTITIONS[0]])
        cluster.zookeeper.put(path, good)
        found = await coordinators.settled("copy")
        assert found.transaction_state == "CompleteCommit"
        assert same_everywhere(leaders, PARTITIONS) == {(*producer, True)}

    in_cluster(story)
