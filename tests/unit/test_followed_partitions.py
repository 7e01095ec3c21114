"""Which answers of a leader a follower applies."""

from barnabas_broker.replica.follower.fetch_session_handler import FetchLimits, FetchSessionHandler
from barnabas_broker.replica.follower.fetcher_context import FetcherContext
from barnabas_broker.replica.follower.followed_partitions import FollowedPartitions
from barnabas_broker.replica.leader.alter_partition_manager import (
    AlterPartitionContext,
    AlterPartitionManager,
)
from barnabas_broker.replica.leader.environment import LeaderEnvironment
from barnabas_broker.replica.partition.partition import Partition
from barnabas_common.messages.control import LeaderAndIsrPartition
from barnabas_common.messages.fetch import FetchedPartition
from barnabas_simulator.network import MemoryNetwork

from tests.support.log_world import PARTITION, LogWorld, read_all

LEADER, SELF = 1, 2
LIMITS = FetchLimits(500, 1, 1 << 20, 1 << 20)


def role(leader_epoch: int) -> LeaderAndIsrPartition:
    return LeaderAndIsrPartition(
        *PARTITION,
        topic_id="",
        controller_epoch=1,
        leader=LEADER,
        leader_epoch=leader_epoch,
        partition_epoch=leader_epoch,
        in_sync_replicas=[LEADER, SELF],
        replicas=[LEADER, SELF],
    )


def answer() -> FetchedPartition:
    """Return an answer with a leader's records from offset 0 on."""
    world = LogWorld()
    log = world.open()
    world.append(log, b"a")
    return FetchedPartition(*PARTITION, records=read_all(log), high_watermark=1)


async def test_an_answer_to_a_request_of_an_earlier_role_is_ignored() -> None:
    network = MemoryNetwork(0).node("broker-2")
    manager = AlterPartitionManager(
        AlterPartitionContext(network, SELF, lambda: 1, lambda: None, timeout=1.0)
    )
    partition = Partition(
        PARTITION, LeaderEnvironment(SELF, lambda: 0.0, 30.0, lambda _: True, manager)
    )
    followed = FollowedPartitions(
        LEADER,
        FetcherContext(network, lambda: 0.0, SELF, lambda: 1, LIMITS, backoff=1.0, timeout=1.0),
        FetchSessionHandler(LIMITS, SELF, lambda: 1),
    )
    log = LogWorld().open()
    partition.become_follower(role(0), log)
    followed.add(partition)
    followed.next_request()
    partition.become_follower(role(1), log)
    followed.add(partition)
    followed.take(answer())
    assert log.log_end_offset == 0
    followed.next_request()
    followed.take(answer())
    assert log.log_end_offset == 1
