"""The controller's queue and state: one event at a time, and no state of an earlier term."""

import asyncio
from collections.abc import Awaitable, Callable

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import (
    ControlledShutdownRequest,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    PartitionError,
)
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.active_controller import ActiveController
from barnabas_controller.state.states import PartitionState
from barnabas_controller.store import znodes
from barnabas_controller.store.znodes import ReplicaAssignment, TopicZnode
from barnabas_controller.zookeeper.session import EventType, WatchEvent

from tests.support.control_world import ControlWorld, run_world

FLIGHTS = TopicPartition("flights", 0)


def active_of(world: ControlWorld) -> ActiveController:
    controller = world.controller()
    assert controller is not None
    active = controller.controller._active
    assert active is not None
    return active


def noting(into: list[str], name: str) -> Callable[[], Awaitable[None]]:
    """Return a handler that takes a second and notes its start and end."""

    async def handle() -> None:
        into.append(f"{name} begins")
        await asyncio.sleep(1.0)
        into.append(f"{name} ends")

    return handle


def test_an_event_is_handled_completely_before_the_next() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1)
        term, seen = active_of(world).term, list[str]()
        term.enqueue("first", noting(seen, "first"))
        term.enqueue("second", noting(seen, "second"))
        await world.settle(3.0)
        assert seen == ["first begins", "first ends", "second begins", "second ends"]

    run_world(test)


def test_a_watch_only_enqueues() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1)
        term, seen = active_of(world).term, list[str]()
        watch = term.watch("what the watch enqueues", noting(seen, "watch"))
        term.enqueue("first", noting(seen, "first"))
        watch(WatchEvent(EventType.CHANGED, "/brokers/ids"))
        assert seen == [], "nothing happens in the watch itself"
        await world.settle(3.0)
        assert seen == ["first begins", "first ends", "watch begins", "watch ends"]

    run_world(test)


def test_a_partition_that_goes_offline_or_away_is_written_and_sent_nowhere() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        await world.settle()
        before = await world.state(FLIGHTS)
        for broker in world.brokers.values():
            broker.told.clear()
        for state in (PartitionState.OFFLINE, PartitionState.NON_EXISTENT):
            active_of(world).partitions.change([FLIGHTS], state)
        await world.settle()
        assert [broker.told for broker in world.brokers.values()] == [[], []]
        assert await world.state(FLIGHTS) == before

    run_world(test)


def test_a_first_leader_is_announced_to_its_isr_as_new_and_to_no_other_replica() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        stopping = ControlledShutdownRequest(3, world.brokers[3].epoch)
        await world.brokers[1].controller.handle(stopping)
        await world.create_topic("flights", {0: [1, 2, 3]})
        await world.settle()
        state = await world.state(FLIGHTS)
        assert state is not None and state.isr == (1, 2)
        role = world.brokers[2].role(FLIGHTS)
        assert role is not None and role.is_new
        assert world.brokers[3].role(FLIGHTS) is None
        assert world.brokers[3].metadata(FLIGHTS) is not None

    run_world(test)


def test_an_answer_about_an_earlier_topic_or_by_an_earlier_incarnation_is_ignored() -> None:
    """The earlier replica failed on one disk; that of the topic with the name now is on another."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.create_topic("flights", {0: [2, 1]})
        await world.settle()
        brokers, epoch = active_of(world).brokers, active_of(world).term.context.brokers[2].epoch
        for topic_id, broker_epoch, leader in (
            ("id-of-another", epoch, 2),
            ("id-of-flights", epoch - 1, 2),
            ("id-of-flights", epoch, 1),
        ):
            role = LeaderAndIsrPartition(*FLIGHTS, topic_id, 1, 2, 0, 0, [2, 1], [2, 1])
            failed = PartitionError(*FLIGHTS, ErrorCode.KAFKA_STORAGE_ERROR)
            brokers.on_leader_and_isr_response(
                2,
                LeaderAndIsrRequest(1, 1, broker_epoch, [role]),
                LeaderAndIsrResponse(0, [failed]),
            )
            await world.settle()
            state = await world.state(FLIGHTS)
            assert state is not None and state.leader == leader

    run_world(test)


def test_a_term_knows_nothing_of_the_one_before_it() -> None:
    """Between two terms of the same session, a topic is written by hand."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1)
        await world.create_topic("flights", {0: [1, 2]})
        await world.store.remove(znodes.CONTROLLER)
        await world.until(lambda: world.controller() is None)
        changed = TopicZnode("id-of-flights", {0: ReplicaAssignment((2, 1))})
        await world.store.put(znodes.topic_path("flights"), znodes.encode_topic(changed))
        await world.until(lambda: world.controller() is not None)
        await world.settle()
        assert world.brokers[1].controller.epoch == 2
        metadata = world.brokers[1].metadata(FLIGHTS)
        assert metadata is not None and metadata.replicas == [2, 1]

    run_world(test)


def test_a_partition_that_is_without_a_leader_again_is_reported_again() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        await world.create_topic("flights", {0: [1]})
        await world.settle()
        for number in (1, 2):
            await world.kill_and_expire(1)
            await world.kill_and_expire(2)  # makes the controller look again, to the same effect
            await world.settle()
            kinds = [event.kind for event in world.brokers[9].events.since(0)]
            assert kinds.count(EventKind.ELECTION_REFUSED) == number
            await world.start_brokers(1, 2)
            await world.until_state(FLIGHTS, lambda s: s.leader == 1)

    run_world(test)
