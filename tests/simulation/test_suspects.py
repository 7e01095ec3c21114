"""Suspicions at the controller: of brokers that are dead, and of others.

The brokers here only record their requests. `test_suspects_in_clusters.py` has whole clusters, in
which a suspected broker must register again.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import (
    AlterPartitionItem,
    AlterPartitionRequest,
    SuspectedBroker,
    UpdateMetadataRequest,
)
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.controller_election import current_controller, depose
from barnabas_controller.store import znodes
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.session import Operation, OperationResult, Session

from tests.support.control_world import ControlWorld, run_world

FLIGHTS = TopicPartition("flights", 0)
# Sessions last 6 s, so everything earlier was caused by a suspicion.
SESSION_SECONDS = 6.0


async def brokers_and_a_topic(
    world: ControlWorld, partitions: dict[int, list[int]] | None = None
) -> None:
    """Broker 9 is controller, so that 1 to 3 can come and go."""
    await world.start_brokers(9, 1, 2, 3)
    await world.create_topic("flights", partitions or {0: [1, 2, 3]})
    await world.settle()


def suspected(world: ControlWorld) -> list[int]:
    """Return the brokers that the active controller suspects."""
    controller = world.controller()
    assert controller is not None
    active = controller.controller._active
    return active.term.context.suspects if active is not None else []  # type: ignore[return-value]


async def falsely_suspect(world: ControlWorld, broker_id: int, by: int = 9) -> None:
    """Reset the connections between two brokers for a moment, as a firewall; neither dies."""
    client, server = world.brokers[by].node, world.brokers[broker_id].node
    world.network.reject(client, server)
    await world.until(lambda: broker_id in suspected(world))
    world.network.admit(client, server)


# ---- the controller's part


def test_a_dead_leader_is_replaced_long_before_its_session_ends() -> None:
    async def test(world: ControlWorld) -> None:
        await brokers_and_a_topic(world)
        before = world.clock.monotonic()
        world.kill(1)
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert world.clock.monotonic() - before < 0.5
        assert (state.isr, state.leader_epoch) == ((2, 3), 1)
        metadata = world.brokers[3].metadata(FLIGHTS)
        assert metadata is not None and metadata.offline_replicas == [1]
        told = world.brokers[9].events.since(0)
        (suspicion,) = [e for e in told if e.kind is EventKind.BROKER_SUSPECTED]
        assert "a new connection was refused" in suspicion.cause
        election = [e for e in told if e.kind is EventKind.LEADER_ELECTED][-1]
        assert election.cause.startswith("broker 1 is suspected to be dead: ")
        assert election.details["passed_over"] == ["broker 1 is suspected to be dead"]

    run_world(test)


def test_a_dead_follower_leaves_the_isr_long_before_its_session_ends() -> None:
    async def test(world: ControlWorld) -> None:
        await brokers_and_a_topic(world)
        before = world.clock.monotonic()
        world.kill(3)
        state = await world.until_state(FLIGHTS, lambda s: s.isr == (1, 2))
        assert world.clock.monotonic() - before < 0.5
        assert (state.leader, state.leader_epoch) == (1, 1)

    run_world(test)


def test_brokers_that_are_gone_are_no_sign_that_the_controller_is_cut_off() -> None:
    """Only streams that ended together with the leader's would be."""

    async def test(world: ControlWorld) -> None:
        await brokers_and_a_topic(world, {0: [1, 9]})
        for broker_id in (2, 3):  # so their machines had lost power: no connection was reset
            world.network.cut(world.brokers[broker_id].node, world.brokers[9].node)
        await world.kill_and_expire(2, 3)
        await world.settle()
        before = world.clock.monotonic()
        world.kill(1)
        await world.until_state(FLIGHTS, lambda s: s.leader == 9)
        assert world.clock.monotonic() - before < 0.5

    run_world(test)


def test_a_silent_broker_is_not_suspected() -> None:
    """It is cut off both ways for longer than connections last; its session stays."""

    async def test(world: ControlWorld) -> None:
        await brokers_and_a_topic(world)
        one, other = world.brokers[9].node, world.brokers[1].node
        world.network.cut(one, other)
        world.network.cut(other, one)
        await world.settle(60.0)
        state = await world.state(FLIGHTS)
        assert state is not None and (state.leader, state.leader_epoch) == (1, 0)
        assert not suspected(world)

    run_world(test)


def test_a_replica_without_others_keeps_its_leader_when_it_is_suspected() -> None:
    async def test(world: ControlWorld) -> None:
        await brokers_and_a_topic(world, {0: [1]})
        await falsely_suspect(world, 1)
        await world.settle(20.0)
        state = await world.state(FLIGHTS)
        assert state is not None and (state.leader, state.leader_epoch, state.isr) == (1, 0, (1,))
        assert world.brokers[1].stops(delete=False) == []

    run_world(test)


def test_evidence_is_never_enough_for_an_unclean_election() -> None:
    """Neither immediately nor when another broker's end makes the controller look again."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2, 3, 4)
        await world.store.ensure(
            znodes.topic_config_path("flights"),
            znodes.encode_config({"unclean.leader.election.enable": "true"}),
        )
        await world.create_topic("flights", {0: [1, 2, 3]})
        for broker_id in (2, 3):
            await world.kill_and_expire(broker_id)
        await world.until_state(FLIGHTS, lambda s: s.isr == (1,))
        await world.start_broker(2)
        await world.settle()
        before = await world.state(FLIGHTS)
        await falsely_suspect(world, 1)
        await world.kill_and_expire(4)
        await world.settle(2.0)
        assert await world.state(FLIGHTS) == before
        world.zookeeper.expire(world.brokers[1].session)
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert state.isr == (2,), "its session's end is another matter"

    run_world(test)


def test_a_suspect_is_let_into_no_isr() -> None:
    async def test(world: ControlWorld) -> None:
        await brokers_and_a_topic(world)
        await falsely_suspect(world, 3)
        state = await world.until_state(FLIGHTS, lambda s: s.isr == (1, 2))
        item = AlterPartitionItem(*FLIGHTS, state.leader_epoch, state.partition_epoch, [1, 2, 3])
        request = AlterPartitionRequest(1, world.brokers[1].epoch, [item])
        response = await world.brokers[9].controller.handle(request)
        assert response.partitions[0].error_code == ErrorCode.INELIGIBLE_REPLICA
        assert await world.state(FLIGHTS) == state

    run_world(test)


def test_no_partition_is_first_led_by_a_suspect() -> None:
    async def test(world: ControlWorld) -> None:
        await brokers_and_a_topic(world)
        await falsely_suspect(world, 1)
        await world.create_topic("others", {0: [1, 2]})
        state = await world.state(TopicPartition("others", 0))
        assert state is not None and (state.leader, state.isr) == (2, (2,))

    run_world(test)


def test_a_suspect_is_told_as_soon_as_it_can_be() -> None:
    async def test(world: ControlWorld) -> None:
        await brokers_and_a_topic(world)
        await falsely_suspect(world, 3)

        def told() -> bool:
            suspect = SuspectedBroker(3, world.brokers[3].epoch)
            said = [r for r in world.brokers[3].told if isinstance(r, UpdateMetadataRequest)]
            return any(request.suspected_brokers == [suspect] for request in said)

        await world.until(told)

    run_world(test)


def test_a_new_controller_takes_the_suspicion_over() -> None:
    async def test(world: ControlWorld) -> None:
        await brokers_and_a_topic(world)
        await falsely_suspect(world, 3)
        await world.until(lambda: 3 in world.brokers[2].suspects())
        itself = world.zookeeper.client(world.brokers[3].node)
        itself.disconnect()  # it would not suspect itself
        await world.kill_and_expire(9)
        await world.until(lambda: world.controller() is not None)
        itself.reconnect()
        await world.settle()
        assert 3 in suspected(world)
        state = await world.state(FLIGHTS)
        assert state is not None and state.isr == (1, 2)

    run_world(test)


def test_a_topic_is_not_deleted_while_a_replica_of_it_is_suspected() -> None:
    async def test(world: ControlWorld) -> None:
        await brokers_and_a_topic(world)
        await falsely_suspect(world, 3)
        await world.store.ensure(znodes.delete_topic_path("flights"))
        await world.settle(3.0)
        assert await world.store.topic("flights") is not None
        assert FLIGHTS not in world.brokers[3].stops(delete=True)

    run_world(test)


def test_a_suspicion_is_of_one_life_only() -> None:
    async def test(world: ControlWorld) -> None:
        await brokers_and_a_topic(world)
        await world.kill_and_expire(3)
        await world.until_state(FLIGHTS, lambda s: s.isr == (1, 2))
        await world.start_broker(3)
        await world.settle()
        assert 3 not in suspected(world)
        metadata = world.brokers[1].metadata(FLIGHTS)
        assert metadata is not None and metadata.offline_replicas == []

    run_world(test)


# ---- the controller's own death


def test_a_dead_controller_is_replaced_and_its_partitions_move_at_once() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [1, 2, 3]})
        await world.settle()
        before = world.clock.monotonic()
        dead = world.kill(1)
        await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert world.clock.monotonic() - before < 1.0
        registered = await world.store.broker(1)
        assert registered is not None and registered.epoch == dead.epoch, "nobody deletes that"

    run_world(test)


def test_a_controller_that_is_only_silent_stays() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.settle()
        for other in (2, 3):
            world.network.cut(world.brokers[1].node, world.brokers[other].node)
            world.network.cut(world.brokers[other].node, world.brokers[1].node)
        await world.settle(60.0)
        assert world.brokers[1].controller.epoch == 1

    run_world(test)


def test_deposing_hits_no_successor() -> None:
    """A suspicion of a controller that has been replaced meanwhile deposes no broker."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        first = await current_controller(world.store)
        assert first is not None
        await world.kill_and_expire(1)
        await world.until(lambda: world.brokers[2].controller.epoch == 2)
        assert not await depose(world.store, first)
        second = await current_controller(world.store)
        assert second is not None and second.broker_id == 2
        assert await depose(world.store, second)

    run_world(test)


class Late:
    """A session whose transactions reach ZooKeeper only after something else has happened."""

    def __init__(self, session: Session, first: Callable[[], Awaitable[None]]) -> None:
        self._session = session
        self._first = first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def multi(self, operations: Sequence[Operation]) -> Sequence[OperationResult]:
        await self._first()
        return await self._session.multi(operations)


def test_deposing_hits_no_successor_elected_at_that_moment() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        first = await current_controller(world.store)
        assert first is not None

        async def succession() -> None:
            await world.kill_and_expire(1)
            await world.until(lambda: world.brokers[2].controller.epoch == 2)

        assert not await depose(Store(Late(world.store.session, succession)), first)
        second = await current_controller(world.store)
        assert second is not None and second.broker_id == 2

    run_world(test)


def test_a_living_controller_that_is_deposed_resigns_and_stays_a_broker() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [2, 1, 3]})
        await world.settle()
        world.network.reject(world.brokers[3].node, world.brokers[1].node)
        await world.until(lambda: sum(b.controller.epoch for b in world.brokers.values()) >= 2)
        world.network.admit(world.brokers[3].node, world.brokers[1].node)
        await world.settle(2.0)
        assert sum(b.controller.is_active for b in world.brokers.values()) == 1
        state = await world.state(FLIGHTS)
        assert state is not None and state.leader in (1, 2, 3)
        assert sorted(await world.store.brokers()) == [1, 2, 3]

    run_world(test)


def test_a_registration_of_another_session_does_not_make_a_controller_watched() -> None:
    """A rogue `/controller` names a broker that does not own it: this deposes no broker."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        session = await world.zookeeper.client("rogue").connect(60_000, 1000)
        await world.store.remove(znodes.CONTROLLER)
        await session.create(znodes.CONTROLLER, znodes.encode_controller(3, 0), ephemeral=True)
        await world.settle()
        world.kill(3)
        await world.settle(20.0)
        found = await world.store.get(znodes.CONTROLLER)
        assert found is not None and found[1].ephemeral_owner == session.session_id

    run_world(test)
