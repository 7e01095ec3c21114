"""A coordinator that finds its own log damaged: another replica takes over, if there is one."""

import asyncio
import struct

import pytest
from barnabas import Admin
from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.simulation.test_group_coordinator_moves import group
from tests.simulation.test_groups import ORDERS, in_cluster
from tests.support.raw_groups import SETTINGS, Coordinators, RawMember

MIB = 1 << 20
PARTITION = TopicPartition("__consumer_offsets", partition_of_key("g", 4))


def flip_a_byte(cluster: SimulatedCluster, broker_id: int, position: int) -> None:
    """Change one byte of a broker's copy of the partition that holds group `g`."""
    files = cluster.disks[broker_id].look_into(f"/data/{PARTITION.topic}-{PARTITION.partition}")
    files[f"{0:020}.log"].data[position] ^= 1


def kinds(cluster: SimulatedCluster) -> list[EventKind]:
    return [event.kind for event in cluster.events()]


def test_a_damaged_replica_hands_its_groups_to_a_sound_one() -> None:
    async def story(cluster: SimulatedCluster, coordinators: Coordinators) -> None:
        (member,) = await group(coordinators, session_timeout_ms=600_000)
        assert await member.commit(ORDERS, 5) is ErrorCode.NONE
        partition = cluster.broker(member.broker_id).replica_manager.partitions.hosted(PARTITION)
        heir = next(b for b in partition.replicas if b != member.broker_id)
        flip_a_byte(cluster, heir, 100)
        cluster.kill(member.broker_id)
        assert await coordinators.committed("g", ORDERS) == 5
        assert await coordinators.find("g") not in (heir, member.broker_id)
        assert EventKind.LOG_DAMAGED in kinds(cluster)

    in_cluster(story)


@pytest.mark.parametrize("is_readable", [False, True])
def test_the_only_replica_serves_what_it_can_read(is_readable: bool) -> None:
    """Also if the damaged batch still reads as one, with another offset in it."""

    async def scenario() -> None:
        config = {**SETTINGS, "offsets.topic.replication.factor": "1"}
        cluster = SimulatedCluster(5, brokers=1, config=config)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("orders", partitions=1, replication_factor=1)
        coordinators = Coordinators(cluster)
        assert await coordinators.find("g") == 1
        await coordinators.describe("g")
        member = RawMember(coordinators, 1, "g")
        for offset in (5, 6, 7):
            assert await member.commit(ORDERS, offset) is ErrorCode.NONE
        hosted = cluster.broker(1).replica_manager.partitions.hosted(PARTITION)
        assert hosted.log is not None
        data = hosted.log.read(0, MIB, hosted.log.log_end_offset)
        last_value = data.rindex(struct.pack(">q", 7)) + 7
        flip_a_byte(cluster, 1, last_value if is_readable else len(data) - 1)
        await cluster.stop_broker(1)
        cluster.start_broker(1)
        await cluster.serving()
        assert await coordinators.committed("g", ORDERS) == 6, "all but the damaged batch"
        assert kinds(cluster).count(EventKind.COORDINATOR_LOAD_FAILED) == 1
        assert await member.commit(ORDERS, 8) is ErrorCode.NONE
        assert await coordinators.committed("g", ORDERS) == 8
        await asyncio.sleep(1.0)
        await coordinators.close()

    run(scenario(), seed=5, max_time=300.0)
