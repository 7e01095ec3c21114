"""A broker whose ZooKeeper session is over and whose next is not open yet."""

from barnabas.error_code import ErrorCode
from barnabas.messages.control import LeaderAndIsrPartition, LeaderAndIsrRequest
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run


def test_a_topic_whose_settings_cannot_be_read_is_not_served_with_the_defaults() -> None:
    """`min.insync.replicas` would be 1, and acks=all promise less than it says."""

    async def story() -> None:
        cluster = SimulatedCluster()
        await cluster.start()
        broker = cluster.broker(1)
        cluster.part_from_zookeeper(1)
        cluster.expire_session(1)
        cluster.reunite_with_zookeeper(1)
        order = LeaderAndIsrRequest(
            1, 9, broker.membership.broker_epoch,
            [LeaderAndIsrPartition("flights", 0, "", 9, 1, 0, 0, [1], [1], is_new=True)],
        )  # fmt: skip
        answer = await broker.replica_manager.become_leader_or_follower(order)
        assert answer.partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert broker.replica_manager.describe_replicas([]) == []

    run(story())
