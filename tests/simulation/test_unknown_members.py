"""A member of an ISR that the next controller's broker was not told of."""

from dataclasses import replace

import pytest
from barnabas_common.messages.control import HeldRole
from barnabas_common.topic_partition import TopicPartition

from tests.support.control_world import QUIET, ControlWorld, RecordingBroker, run_world

FLIGHTS = TopicPartition("flights", 0)


async def serve_without_knowing(world: ControlWorld, successor: int = 2) -> RecordingBroker:
    """2 leads, with 3 and 4 in sync. The brokers learn of an ISR without 3, as before it joined.

    Broker 1 is controller, and the `successor` the next one. Returns the leader, which knows its
    ISR.
    """
    await world.start_brokers(1, successor, *(b for b in (2, 3, 4) if b != successor))
    await world.create_topic("flights", {0: [2, 3, 4]})
    await world.until(lambda: all(world.brokers[b].metadata(FLIGHTS) for b in (2, 3, 4)))
    for broker_id in (2, 3, 4):
        told = world.brokers[broker_id].metadata(FLIGHTS)
        assert told is not None and told.in_sync_replicas == [2, 3, 4]
        told.in_sync_replicas.remove(3)
        world.logs[broker_id] = HeldRole(*FLIGHTS, 0, leader=2)
    return world.brokers[2]


async def next_controller(world: ControlWorld) -> None:
    controller = world.kill(1)
    world.zookeeper.expire(controller.session)
    await world.until(lambda: world.controller() is not None)


@pytest.mark.parametrize("isr", [(2, 3, 4), (2, 4)])
def test_a_leader_that_has_not_restarted_knows_its_isr(isr: tuple[int, ...]) -> None:
    """The member that has joined stays: it may be the only one that has everything if the leader is
    lost. The one that has left it, by an older state that was written back, does not."""

    async def test(world: ControlWorld) -> None:
        await serve_without_knowing(world)
        world.logs[2].in_sync_replicas = list(isr)
        world.brokers[4].answers_roles.clear()  # the answer of the leader is enough
        await next_controller(world)
        await world.settle()
        state = await world.state(FLIGHTS)
        assert state is not None
        assert (state.leader, state.isr) == (2, isr)

    run_world(test)


@pytest.mark.parametrize("when", ["before", "while the leader is asked"])
def test_a_member_that_is_gone_by_the_answer_of_the_leader_leaves_the_isr(when: str) -> None:
    """Otherwise it is a member without having caught up when it is back, with lost records."""

    async def test(world: ControlWorld) -> None:
        leader = await serve_without_knowing(world)
        world.logs[2].in_sync_replicas = [2, 3, 4]
        leader.answers_roles.clear()
        controller = world.kill(1)
        if when == "before":
            await world.kill_and_expire(4)
        world.zookeeper.expire(controller.session)
        await world.until(lambda: (role := leader.role(FLIGHTS)) is not None and role.tell_only)
        if when != "before":
            await world.kill_and_expire(4)
            await world.settle()
        leader.answers_roles.set()
        state = await world.until_state(FLIGHTS, lambda state: 4 not in state.isr)
        assert (state.leader, state.isr, state.eligible) == (2, (2, 3), (4,))

    run_world(test, replace(QUIET, min_insync_replicas=3))


def test_after_a_restart_of_the_leader_the_member_is_removed() -> None:
    async def test(world: ControlWorld) -> None:
        told = (await serve_without_knowing(world)).told
        controller = world.kill(1)
        await world.kill_and_expire(2)
        (await world.start_broker(2)).told.extend(told)
        world.zookeeper.expire(controller.session)
        state = await world.until_state(FLIGHTS, lambda state: state.leader_epoch > 0)
        assert (state.leader, state.isr) == (2, (2, 4))

    run_world(test)


def test_the_member_leads_if_the_leader_dies_before_it_answers_and_no_other_is_left() -> None:
    """Otherwise the partition would have no leader any more if the leader's disk is lost."""

    async def test(world: ControlWorld) -> None:
        leader = await serve_without_knowing(world, 3)
        leader.answers_roles.clear()
        await next_controller(world)
        await world.until(lambda: (role := leader.role(FLIGHTS)) is not None and role.tell_only)
        await world.kill_and_expire(2, 4)
        state = await world.until_state(FLIGHTS, lambda state: state.leader not in (2, -1))
        assert (state.leader, state.isr) == (3, (3,))

    run_world(test)


@pytest.mark.parametrize("successor", [3, 2], ids=["", "with the next controller"])
def test_the_member_does_not_lead_if_the_leader_dies_before_it_answers(successor: int) -> None:
    """It is unknown whether it is one."""

    async def test(world: ControlWorld) -> None:
        leader = await serve_without_knowing(world, successor)
        leader.answers_roles.clear()
        await next_controller(world)
        await world.until(lambda: (role := leader.role(FLIGHTS)) is not None and role.tell_only)
        await world.kill_and_expire(2)
        state = await world.until_state(FLIGHTS, lambda state: state.leader not in (2, -1))
        assert (state.leader, state.isr) == (4, (4,))
        assert 3 not in state.eligible

    run_world(test, replace(QUIET, min_insync_replicas=3))
