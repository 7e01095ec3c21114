"""Which partition holds a group does not depend on what a broker happens to know of the others."""

import asyncio

import pytest
from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.topic_name import GROUP_METADATA_TOPIC
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_simulator.cluster import SimulatedCluster

from tests.simulation.test_groups import ORDERS, in_cluster
from tests.simulation.test_groups_in_zookeeper import store_of
from tests.support.moving_groups import group, until
from tests.support.raw_groups import Coordinators


@pytest.mark.parametrize("damaged", [0, 2])
def test_a_damaged_partition_moves_no_group_to_another_partition(damaged: int) -> None:
    """Brokers that have restarted know of no leader of a partition with a malformed state."""

    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators)
        assert await member.commit(ORDERS, 5) is ErrorCode.NONE
        assert partition_of_key("g", 4) != damaged
        path = znodes.state_path(TopicPartition(GROUP_METADATA_TOPIC, damaged))
        found = await store_of(cluster).get(path)
        await store_of(cluster).put(path, b"nonsense")
        for broker_id in cluster.broker_ids:
            cluster.kill(broker_id)
        for broker_id in cluster.broker_ids:
            cluster.start_broker(broker_id)
        await cluster.serving()
        assert await coordinators.committed("g", ORDERS) == 5
        cache = cluster.broker(1).metadata_cache

        def has_leader(partition: int) -> bool:
            state = cache.partition(GROUP_METADATA_TOPIC, partition)
            return state is not None and state.leader >= 0

        assert not has_leader(damaged), "the test tests something"
        assert found is not None
        await store_of(cluster).put(path, found[0])
        await until(lambda: all(map(has_leader, range(4))))
        assert await coordinators.committed("g", ORDERS) == 5

    in_cluster(story)


def test_a_coordinator_without_zookeeper_waits_for_it() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        await coordinators.find("g")
        await until(lambda: cluster.broker(2).metadata_cache.contains(GROUP_METADATA_TOPIC))
        cluster.broker(2).groups.topic._shape = None
        cluster.part_from_zookeeper(2)
        found = await coordinators.find_at(2, "g")
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        cluster.reunite_with_zookeeper(2)
        while (await coordinators.find_at(2, "g")).error_code:
            await asyncio.sleep(0.1)

    in_cluster(story)
