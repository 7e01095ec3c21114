"""Reassignment at the controller: which broker receives what, in which order, and the znodes."""

from dataclasses import replace

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import (
    AlterPartitionItem,
    AlterPartitionRequest,
    LeaderAndIsrRequest,
    StopReplicaRequest,
)
from barnabas_common.messages.reassignments import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ReassignPartition,
)
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import NO_LEADER
from barnabas_controller.store.znodes import ReplicaAssignment

from tests.support.control_world import ControlWorld, run_world

FLIGHTS = TopicPartition("flights", 0)


async def assignment(world: ControlWorld) -> ReplicaAssignment:
    """Return the assignment in ZooKeeper."""
    topic = await world.store.topic("flights")
    assert topic is not None
    return topic.partitions[0]


async def reassign(world: ControlWorld, target: list[int] | None) -> ErrorCode:
    """Request a reassignment from the controller; returns the partition's error code."""
    controller = world.controller()
    assert controller is not None
    response = await controller.controller.handle(
        AlterPartitionReassignmentsRequest([ReassignPartition(*FLIGHTS, target or [], not target)])
    )
    assert response.error_code == ErrorCode.NONE
    return ErrorCode(response.partitions[0].error_code)


async def ask_isr(world: ControlWorld, isr: list[int]) -> None:
    """Send the AlterPartition that the leader sends once these replicas are in sync."""
    state = await world.state(FLIGHTS)
    assert state is not None
    controller = world.controller()
    assert controller is not None
    item = AlterPartitionItem(*FLIGHTS, state.leader_epoch, state.partition_epoch, isr)
    request = AlterPartitionRequest(state.leader, world.brokers[state.leader].epoch, [item])
    response = await controller.controller.handle(request)
    assert response.partitions[0].error_code == ErrorCode.NONE, response


async def until_home(world: ControlWorld, *replicas: int) -> None:
    async def arrived() -> bool | None:
        return await assignment(world) == ReplicaAssignment(replicas) or None

    await world.until_some(arrived)


def kinds(world: ControlWorld) -> list[EventKind]:
    """Return the kinds of reassignment events that the running controllers recorded."""
    found = [e for b in world.brokers.values() for e in b.events.since(0)]
    return [e.kind for e in found if "reassign" in e.kind or "removed" in e.kind]


def test_a_partition_moves_to_three_other_brokers() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(7, 1, 2, 3, 4, 5, 6)
        await world.create_topic("flights", {0: [1, 2, 3]})
        assert await reassign(world, [4, 5, 6]) is ErrorCode.NONE
        moving = ReplicaAssignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
        assert await assignment(world) == moving
        await world.until(lambda: world.brokers[6].role(FLIGHTS) is not None)
        await world.settle()  # it receives the request twice
        role, leader = world.brokers[6].role(FLIGHTS), world.brokers[1].role(FLIGHTS)
        assert role is not None and leader is not None
        assert (role.leader, role.leader_epoch, role.is_new) == (1, 1, True)
        orders = [r for r in world.brokers[6].told if isinstance(r, LeaderAndIsrRequest)]
        assert all(p.is_new for order in orders for p in order.partitions), "the first one too"
        assert (leader.replicas, leader.adding_replicas) == ([4, 5, 6, 1, 2, 3], [4, 5, 6])
        assert leader.leader_epoch == 1 and not leader.is_new

        await ask_isr(world, [1, 2, 3, 4, 5])
        await world.settle()
        assert await assignment(world) == moving, "6 is not in sync yet"
        await ask_isr(world, [1, 2, 3, 4, 5, 6])
        await until_home(world, 4, 5, 6)
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 4)
        assert state.isr == (4, 5, 6)
        await world.until(lambda: world.brokers[1].stops(delete=True) == [FLIGHTS])
        for broker_id in (1, 2, 3):
            told = world.brokers[broker_id].told
            stops = [r for r in told if isinstance(r, StopReplicaRequest)]
            assert [p.delete_partition for r in stops for p in r.partitions] == [False, True]
        for broker_id in (4, 5, 6):
            assert world.brokers[broker_id].stops(delete=True) == []
            told_role = world.brokers[broker_id].role(FLIGHTS)
            assert told_role is not None and told_role.replicas == [4, 5, 6]
        metadata = world.brokers[7].metadata(FLIGHTS)
        assert metadata is not None and metadata.replicas == [4, 5, 6]
        assert kinds(world) == [
            EventKind.REASSIGNMENT_STARTED,
            EventKind.REASSIGNMENT_CATCHING_UP,
            EventKind.REPLICAS_REMOVED,
            EventKind.REASSIGNMENT_COMPLETED,
        ]

    run_world(test)


def test_the_isr_loses_the_old_replicas_in_the_write_that_takes_the_lead_from_them() -> None:
    """With two writes a controller could die in between, and an old replica could be elected.

    It would lack records for which the new leader did not wait for it.
    """

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [1, 2]})
        await reassign(world, [3])
        await ask_isr(world, [1, 2, 3])
        await until_home(world, 3)
        for broker in world.brokers.values():
            for request in broker.told:
                if isinstance(request, LeaderAndIsrRequest):
                    for role in request.partitions:
                        assert set(role.in_sync_replicas) <= set(role.replicas)

    run_world(test)


def test_a_leader_that_stays_keeps_the_lead() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [1, 2, 3]})
        assert await reassign(world, [2, 1]) is ErrorCode.NONE
        await until_home(world, 2, 1)
        state = await world.until_state(FLIGHTS, lambda s: len(s.isr) == 2)
        assert (state.leader, state.isr) == (1, (1, 2))

    run_world(test)


def test_another_order_is_taken_over_at_once_and_no_one_is_disturbed() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [1, 2, 3]})
        before = await world.state(FLIGHTS)
        assert await reassign(world, [3, 2, 1]) is ErrorCode.NONE
        assert await assignment(world) == ReplicaAssignment((3, 2, 1))
        assert await world.state(FLIGHTS) == before
        assert kinds(world)[-1] is EventKind.REASSIGNMENT_COMPLETED
        await world.until(lambda: world.brokers[2].metadata(FLIGHTS).replicas == [3, 2, 1])  # type: ignore[union-attr]

    run_world(test)


def test_a_partition_without_any_live_replica_gets_its_first_leader_from_the_target() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.create_topic_unseen("flights", {0: [7]})
        await world.settle()
        assert await reassign(world, [2]) is ErrorCode.NONE
        await world.until_state(FLIGHTS, lambda s: (s.leader, s.isr) == (2, (2,)))
        await until_home(world, 2)

    run_world(test)


def test_a_cancel_puts_the_original_back_and_deletes_the_newcomers() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3, 4)
        await world.create_topic("flights", {0: [1, 2]})
        assert await reassign(world, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        await reassign(world, [3, 4])
        await ask_isr(world, [1, 2, 3])
        assert await reassign(world, None) is ErrorCode.NONE
        assert await assignment(world) == ReplicaAssignment((1, 2))
        state = await world.state(FLIGHTS)
        assert state is not None and (state.leader, state.isr) == (1, (1, 2))
        for newcomer in (3, 4):
            await world.until(lambda n=newcomer: world.brokers[n].stops(delete=True) == [FLIGHTS])
        assert kinds(world)[-1] is EventKind.REASSIGNMENT_CANCELLED
        assert await reassign(world, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS

    run_world(test)


def test_a_cancel_that_cannot_be_written_leaves_the_reassignment_as_it_was() -> None:
    """Somebody has spoilt the topic's znode, and mends it later."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3, 4)
        await world.create_topic("flights", {0: [1, 2]})
        await reassign(world, [3, 4])
        await ask_isr(world, [1, 2, 3])
        path = znodes.topic_path("flights")
        found = await world.store.get(path)
        assert found is not None
        await world.store.put(path, b"nonsense")
        assert await reassign(world, None) is ErrorCode.UNKNOWN_SERVER_ERROR
        await world.store.put(path, found[0])
        for newcomer in (3, 4):
            await world.until(lambda n=newcomer: world.brokers[n].role(FLIGHTS) is not None)
        await ask_isr(world, [1, 2, 3, 4])
        await until_home(world, 3, 4)

    run_world(test)


def test_a_cancel_that_would_delete_the_last_in_sync_replica_is_refused() -> None:
    """Only the added replica has every record; Kafka would delete it."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2, 3)
        await world.create_topic("flights", {0: [1, 2]})
        await reassign(world, [3, 2])
        await ask_isr(world, [1, 3])
        await world.kill_and_expire(1)
        await world.until_state(FLIGHTS, lambda s: (s.leader, s.isr) == (3, (3,)))
        assert await reassign(world, None) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert await assignment(world) == ReplicaAssignment((3, 2, 1), (3,), (1,))
        assert world.brokers[3].stops(delete=True) == []
        await ask_isr(world, [3, 2])
        await until_home(world, 3, 2)

    run_world(test)


def test_while_its_state_is_in_doubt_nothing_of_a_partition_is_deleted() -> None:
    """A new controller cannot read that broker 3 alone has every record."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2, 3, 4)
        await world.create_topic("flights", {0: [1, 2]})
        await reassign(world, [3, 4])
        await ask_isr(world, [1, 2, 3])
        await world.kill_and_expire(1, 2)
        state = await world.until_state(FLIGHTS, lambda s: (s.leader, s.isr) == (3, (3,)))
        await world.store.put(znodes.state_path(FLIGHTS), b"nonsense")
        await world.kill_and_expire(9)
        await world.until(lambda: world.controller() is not None)
        await world.settle()
        assert await reassign(world, None) is ErrorCode.LEADER_NOT_AVAILABLE
        assert await reassign(world, [4]) is ErrorCode.LEADER_NOT_AVAILABLE
        assert world.brokers[3].stops(delete=True) == []
        assert await assignment(world) == ReplicaAssignment((3, 4, 1, 2), (3, 4), (1, 2))

        in_sync = replace(state, isr=(3, 4))
        await world.store.put(znodes.state_path(FLIGHTS), znodes.encode_state(in_sync))
        await until_home(world, 3, 4)

    run_world(test)


def test_a_newcomer_that_is_in_sync_already_is_new_no_more() -> None:
    """A replica that is new may begin with an empty log, but this one is in the ISR."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2, 3, 4)
        await world.create_topic("flights", {0: [1, 2]})
        await reassign(world, [3, 4])
        await ask_isr(world, [1, 2, 3])
        await world.kill_and_expire(9)
        await world.until_state(FLIGHTS, lambda s: s.controller_epoch == 2)
        await world.settle()
        said = {b: world.brokers[b].role(FLIGHTS) for b in (3, 4)}
        assert {b: role.is_new for b, role in said.items() if role} == {3: False, 4: True}

    run_world(test)


def test_another_target_on_the_way_drops_those_only_the_first_one_had() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3, 4)
        await world.create_topic("flights", {0: [1]})
        await reassign(world, [2, 3])
        await ask_isr(world, [1, 2])
        assert await reassign(world, [3, 4]) is ErrorCode.NONE
        assert await assignment(world) == ReplicaAssignment((3, 4, 1), (3, 4), (1,))
        await world.until(lambda: world.brokers[2].stops(delete=True) == [FLIGHTS])
        await ask_isr(world, [1, 3, 4])
        await until_home(world, 3, 4)

    run_world(test)


def test_a_target_that_dies_is_waited_for() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [1, 2]})
        await reassign(world, [3, 2])
        await world.kill_and_expire(3)
        await world.until(lambda: world.brokers[1].live_brokers() == {1, 2})
        assert await reassign(world, [3, 1]) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        await world.start_broker(3)
        await world.until(lambda: world.brokers[3].role(FLIGHTS) is not None)
        await ask_isr(world, [1, 2, 3])
        await until_home(world, 3, 2)

    run_world(test)


def test_what_is_under_way_is_listed_and_then_no_more() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [1, 2]})
        await reassign(world, [3, 2])
        controller = world.brokers[1].controller
        request = ListPartitionReassignmentsRequest(all=True)
        listed = await controller.handle(request)
        (found,) = listed.partitions
        assert (found.replicas, found.adding_replicas) == ([3, 2, 1], [3])
        assert found.removing_replicas == [1]
        assert (await controller.handle(ListPartitionReassignmentsRequest())).partitions == []
        await ask_isr(world, [1, 2, 3])
        await until_home(world, 3, 2)
        assert (await controller.handle(request)).partitions == []
        other = await world.brokers[2].controller.handle(request)
        assert other.error_code == ErrorCode.NOT_CONTROLLER

    run_world(test)


def test_a_topic_being_deleted_waits_for_its_reassignment_and_takes_no_other() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [1, 2]})
        await reassign(world, [3, 2])
        await world.store.ensure(znodes.delete_topic_path("flights"))
        await world.settle()
        assert await world.store.topic("flights") is not None
        assert await reassign(world, [2, 3]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await ask_isr(world, [1, 2, 3])

        async def gone() -> bool | None:
            return await world.store.topic("flights") is None or None

        await world.until_some(gone)
        for broker_id in (1, 2, 3):
            assert FLIGHTS in world.brokers[broker_id].stops(delete=True)

    run_world(test)


def test_a_new_controller_goes_on_where_the_previous_one_was() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2, 3, 8)
        await world.create_topic("flights", {0: [1, 2]})
        await reassign(world, [8, 2])
        state = await world.state(FLIGHTS)
        assert state is not None
        await world.kill_and_expire(9)
        await world.until(lambda: world.controller() is not None)
        told = await world.until_state(FLIGHTS, lambda s: s.leader_epoch > state.leader_epoch)

        def told_again() -> bool:
            role = world.brokers[8].role(FLIGHTS)
            return role is not None and role.leader_epoch == told.leader_epoch

        await world.until(told_again)
        # The ISR grows, and the controller dies again before it acts on that.
        grown = replace(told, isr=(*told.isr, 8))
        await world.store.put(znodes.state_path(FLIGHTS), znodes.encode_state(grown))
        await world.store.remove(znodes.CONTROLLER)
        await until_home(world, 8, 2)

    run_world(test)


def test_a_target_that_is_in_sync_and_dead_is_waited_for() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 3)
        await world.create_topic("flights", {0: [3, 1]})
        await ask_isr(world, [3])
        await world.kill_and_expire(3)
        await world.until_state(FLIGHTS, lambda s: s.leader == NO_LEADER)
        assert await reassign(world, [3]) is ErrorCode.NONE
        await world.settle()
        assert await assignment(world) == ReplicaAssignment((3, 1), (), (1,))
        assert kinds(world)[-1] is EventKind.REASSIGNMENT_WAITS
        await world.start_broker(3)
        await until_home(world, 3)
        assert kinds(world)[-1] is EventKind.REASSIGNMENT_COMPLETED
        await world.until_state(FLIGHTS, lambda s: (s.leader, s.isr) == (3, (3,)))

    run_world(test)


def test_a_topic_to_be_deleted_is_led_until_its_reassignment_is_over() -> None:
    """Without an election of its leader, its reassignment and its deletion would wait forever."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 3)
        await world.create_topic("flights", {0: [3, 1]})
        await ask_isr(world, [3])
        assert await reassign(world, [1]) is ErrorCode.NONE
        await world.store.ensure(znodes.delete_topic_path("flights"))
        await world.settle()
        await world.kill_and_expire(3)
        await world.until_state(FLIGHTS, lambda s: s.leader == NO_LEADER)
        await world.start_broker(3)
        await world.until_state(FLIGHTS, lambda s: s.leader == 3)
        await ask_isr(world, [3, 1])

        async def deleted() -> bool | None:
            return await world.store.exists(znodes.topic_path("flights")) is None or None

        await world.until_some(deleted)

    run_world(test)


def test_a_new_controller_deletes_no_topic_that_is_on_its_way() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2, 3)
        await world.create_topic("flights", {0: [1, 2]})
        await reassign(world, [3, 2])
        await world.store.ensure(znodes.delete_topic_path("flights"))
        await world.kill_and_expire(9)
        await world.until_state(FLIGHTS, lambda s: s.controller_epoch == 2)
        await world.settle()
        assert all(b.stops(delete=True) == [] for b in world.brokers.values())
        await ask_isr(world, [1, 2, 3])

        async def deleted() -> bool | None:
            return await world.store.exists(znodes.topic_path("flights")) is None or None

        await world.until_some(deleted)

    run_world(test)
