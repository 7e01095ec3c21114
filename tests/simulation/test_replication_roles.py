"""What a broker does at a controller's request, and which requests it refuses."""

from dataclasses import replace

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import (
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    StopReplicaPartition,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from barnabas_common.messages.replicas import DescribeReplicasRequest, ReplicaDescription
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run

from tests.support.replication_world import CONTROLLER, TP, ReplicationWorld


async def two() -> ReplicationWorld:
    world = ReplicationWorld()
    world.controller_epoch = 5
    await world.start(1, 2)
    await world.create(1, 2)
    await world.produce(b"a")
    await world.until_equal(1, 2)
    return world


async def order(
    world: ReplicationWorld, request: LeaderAndIsrRequest, broker_id: int = 2
) -> tuple[int, list[int]]:
    response = await world.on(
        broker_id, world.incarnations[broker_id].manager.become_leader_or_follower(request)
    )
    return response.error_code, [item.error_code for item in response.partitions]


def newer(world: ReplicationWorld) -> LeaderAndIsrRequest:
    """Return a valid request for broker 2 to lead the next epoch."""
    state = world.states[TP]
    state.leader, state.leader_epoch, state.partition_epoch = 2, 1, 1
    return world.leader_and_isr()


def changed(request: LeaderAndIsrRequest, **fields: object) -> LeaderAndIsrRequest:
    """Return the same request with its one partition changed."""
    (partition,) = request.partitions
    return replace(request, partitions=[replace(partition, **fields)])  # type: ignore[arg-type]


def test_an_old_controller_and_an_order_to_an_earlier_incarnation_are_ignored() -> None:
    async def scenario() -> None:
        world = await two()
        request = newer(world)
        old = replace(request, controller_epoch=4)
        assert await order(world, old) == (ErrorCode.STALE_CONTROLLER_EPOCH, [])
        # The broker epoch of the second broker here is 2.
        assert await order(world, replace(request, broker_epoch=1)) == (
            ErrorCode.STALE_BROKER_EPOCH,
            [],
        )
        assert world.partition(2).leader_epoch == 0
        assert await order(world, replace(request, broker_epoch=9)) == (ErrorCode.NONE, [0])
        assert world.partition(2).leader_epoch == 1
        metadata = UpdateMetadataRequest(CONTROLLER, 4, -1)
        response = world.incarnations[2].manager.update_metadata(metadata)
        assert response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert world.incarnations[2].cache.contains("flights")
        stop = StopReplicaRequest(CONTROLLER, 4, -1, [StopReplicaPartition(*TP, -2, True)])
        stopped = await world.on(2, world.incarnations[2].manager.roles.stop_replicas(stop))
        assert stopped.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert world.values(2) == [b"a"]

    run(scenario())


def test_each_partition_of_an_order_is_checked_by_itself() -> None:
    async def scenario() -> None:
        world = await two()
        request = newer(world)
        (good,) = request.partitions
        elsewhere = replace(good, topic="elsewhere", replicas=[1, 3])
        assert await order(world, replace(request, partitions=[elsewhere, good])) == (
            ErrorCode.NONE,
            [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE],
        )
        assert world.partition(2).leadership is not None

    run(scenario())


def test_an_epoch_that_is_not_new_changes_nothing() -> None:
    async def scenario() -> None:
        world = await two()
        request = newer(world)
        same = changed(request, leader_epoch=0)
        assert await order(world, same) == (ErrorCode.NONE, [ErrorCode.STALE_CONTROLLER_EPOCH])
        assert world.partition(2).leadership is None
        assert await order(world, request) == (ErrorCode.NONE, [ErrorCode.NONE])
        assert await order(world, request) == (ErrorCode.NONE, [ErrorCode.STALE_CONTROLLER_EPOCH])
        world.partition(2).give_up_role()  # the same leader epoch counts again
        older = changed(request, leader_epoch=1, partition_epoch=0)
        assert await order(world, older) == (ErrorCode.NONE, [ErrorCode.STALE_CONTROLLER_EPOCH])
        assert world.partition(2).leadership is None
        assert await order(world, request) == (ErrorCode.NONE, [ErrorCode.NONE])

    run(scenario())


def test_under_a_new_leader_epoch_a_state_znode_may_have_been_created_again() -> None:
    """Its version, the partition epoch, counts from 0 then."""

    async def scenario() -> None:
        world = await two()
        request = newer(world)
        assert await order(world, request) == (ErrorCode.NONE, [ErrorCode.NONE])
        again = changed(request, leader_epoch=2, partition_epoch=0)
        assert await order(world, again) == (ErrorCode.NONE, [ErrorCode.NONE])
        assert world.partition(2).partition_epoch == 0

    run(scenario())


def test_a_leader_notes_its_epoch_before_anything_is_written() -> None:
    async def scenario() -> None:
        world = await two()
        assert await order(world, newer(world)) == (ErrorCode.NONE, [ErrorCode.NONE])
        assert world.log(2).leader_epochs.entries[-1] == (1, 1)

    run(scenario())


def test_another_topic_of_the_same_name_is_not_taken_for_this_one() -> None:
    async def scenario() -> None:
        world = await two()
        impostor = changed(newer(world), topic_id="another".ljust(22, "x"))
        outcome = (ErrorCode.NONE, [ErrorCode.INCONSISTENT_TOPIC_ID])
        assert await order(world, impostor) == outcome
        (refused,) = [e for e in world.incarnations[2].events.since(0) if e.kind == "role-refused"]
        assert refused.topic_partition == TP and "INCONSISTENT_TOPIC_ID" in refused.cause
        world.kill(2)
        await world.start(2)
        # The topic of now is later than a log that was found. In its ISR nothing may be set aside.
        outcome = (ErrorCode.NONE, [ErrorCode.CORRUPT_MESSAGE])
        assert await order(world, impostor) == outcome
        assert world.incarnations[2].logs.get(TP) is not None

    run(scenario())


def test_a_topic_whose_settings_cannot_be_read_is_not_served() -> None:
    async def scenario() -> None:
        world = await two()
        fresh = LeaderAndIsrPartition("fresh", 0, "f" * 22, 5, 1, 0, 0, [1], [1], is_new=True)
        request = LeaderAndIsrRequest(CONTROLLER, 5, -1, [fresh])
        world.topic_config_error = RuntimeError("no session")
        outcome = await order(world, request, broker_id=1)
        assert outcome == (ErrorCode.NONE, [ErrorCode.UNKNOWN_SERVER_ERROR])
        key = TopicPartition("fresh", 0)
        world.topic_config_error = None
        assert await order(world, request, broker_id=1) == (ErrorCode.NONE, [ErrorCode.NONE])
        assert world.partition(1, key).leadership is not None

    run(scenario())


def test_a_stopped_replica_follows_no_more_and_a_deleted_one_leaves_nothing() -> None:
    async def scenario() -> None:
        world = await two()
        assert await world.stop_replica(2, delete=False) == ErrorCode.NONE
        await world.produce(b"b", acks=1)
        assert world.values(2) == [b"a"]
        assert await world.stop_replica(2, delete=True) == ErrorCode.NONE
        assert world.incarnations[2].manager.partitions.get(TP) is None
        assert world.incarnations[2].logs.get(TP) is None
        assert await world.stop_replica(2, delete=True) == ErrorCode.NONE
        assert await world.stop_replica(1, delete=True) == ErrorCode.NONE
        refused = await world.produce(b"c", to=1)
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        world.states[TP].leader = -2
        await world.update_metadata()
        refused = await world.produce(b"c", to=1)
        assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        world.states.clear()
        await world.create(2, 1)
        assert (await world.produce(b"anew")).error_code == ErrorCode.NONE
        await world.until_equal(1, 2)
        assert world.values(1) == [b"anew"]

    run(scenario())


def test_a_stopped_replica_follows_again_if_it_gets_the_same_role_again() -> None:
    """Its broker could not open the log, and can now. Both roles and the StopReplica between them
    have the same leader epoch."""

    async def scenario() -> None:
        world = await two()
        assert await world.stop_replica(2, delete=False) == ErrorCode.NONE
        await world.produce(b"b", acks=1)
        again = world.leader_and_isr()
        assert await order(world, again) == (ErrorCode.NONE, [ErrorCode.NONE])
        await world.until_equal(1, 2)
        assert world.values(2) == [b"a", b"b"]
        repeated = (ErrorCode.NONE, [ErrorCode.STALE_CONTROLLER_EPOCH])
        assert await order(world, again) == repeated

    run(scenario())


def test_a_stopped_leader_does_not_begin_its_epoch_again() -> None:
    async def scenario() -> None:
        world = await two()
        assert await world.stop_replica(1, delete=False) == ErrorCode.NONE
        repeated = (ErrorCode.NONE, [ErrorCode.STALE_CONTROLLER_EPOCH])
        assert await order(world, world.leader_and_isr(), broker_id=1) == repeated

    run(scenario())


def test_an_order_to_stop_from_an_older_leader_epoch_is_fenced() -> None:
    async def scenario() -> None:
        world = await two()
        await world.elect(1)
        manager = world.incarnations[2].manager

        async def stop(leader_epoch: int) -> int:
            items = [StopReplicaPartition(*TP, leader_epoch, False)]
            response = await manager.roles.stop_replicas(
                StopReplicaRequest(CONTROLLER, 5, -1, items)
            )
            return response.partitions[0].error_code

        assert await world.on(2, stop(0)) == ErrorCode.FENCED_LEADER_EPOCH
        assert await world.on(2, stop(1)) == ErrorCode.NONE
        assert await world.on(2, stop(-1)) == ErrorCode.NONE
        old = StopReplicaRequest(CONTROLLER, 4, -1, [])
        response = await world.on(2, manager.roles.stop_replicas(old))
        assert response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH

    run(scenario())


async def described(
    world: ReplicationWorld, broker_id: int, *topics: str
) -> list[ReplicaDescription]:
    manager = world.incarnations[broker_id].manager
    return (await manager.describe_replicas(DescribeReplicasRequest(list(topics)))).replicas


def test_replicas_are_described_as_they_are_here() -> None:
    async def scenario() -> None:
        world = await two()
        await world.produce(b"b")
        (leader,) = await described(world, 1)
        assert (leader.is_leader, leader.leader_epoch, leader.in_sync_replicas) == (True, 0, [1, 2])
        assert (leader.log_end_offset, leader.high_watermark) == (2, 2)
        (remote,) = leader.followers
        assert (remote.broker_id, remote.log_end_offset, remote.caught_up_ms_ago) == (2, 2, 0)
        (follower,) = await described(world, 2, "flights")
        assert (follower.is_leader, follower.leader_id) == (False, 1)
        assert (follower.in_sync_replicas, follower.followers) == ([], [])
        assert await described(world, 2, "unknown") == []

    run(scenario())
