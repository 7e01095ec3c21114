"""A broker that reaches ZooKeeper but no other broker has reason to suspect all of them.

Connections to it and from it are reset, as by a firewall.
"""

from dataclasses import replace

import pytest
from barnabas import Admin
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import ControlledShutdownRequest
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.simulation.test_controller_elections import PREFERRED, drifted, elect, note, rejoin
from tests.simulation.test_controller_reassignment import reassign
from tests.simulation.test_suspects import (
    FLIGHTS,
    SESSION_SECONDS,
    brokers_and_a_topic,
)
from tests.support.control_world import QUIET, ControlWorld, run_world
from tests.support.delivery import History, judge
from tests.support.whole_cluster import TP, produce, read_back


def cut_off(world: ControlWorld, broker_id: int) -> None:
    node = world.brokers[broker_id].node
    for other, broker in world.brokers.items():
        if other != broker_id:
            world.network.reject(node, broker.node)
            world.network.reject(broker.node, node)


@pytest.mark.parametrize("seed", range(12))
def test_who_deposed_a_controller_because_it_is_cut_off_itself_does_not_rule(seed: int) -> None:
    """It could notify no broker, and no broker would ever have had a stream to it."""

    async def test(world: ControlWorld) -> None:
        await brokers_and_a_topic(world)
        isolated = world.brokers[3]
        cut_off(world, 3)
        await world.until(
            lambda: any(e.kind is EventKind.CONTROLLER_DEPOSED for e in isolated.events.since(0))
        )
        await world.settle(2 * SESSION_SECONDS)
        controller = world.controller()
        assert controller is not None and controller.broker_id in (9, 1, 2)

    run_world(test, seed=seed)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("min_in_sync", [1, 2])
def test_a_controller_that_is_cut_off_takes_nothing_from_the_others(
    min_in_sync: int, seed: int
) -> None:
    """If it did, and then died, the partitions would wait for it forever."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        await world.create_topic("flights", {0: [1, 2, 9]})
        await world.settle()
        cut_off(world, 9)
        state = await world.until_state(FLIGHTS, lambda s: 9 not in s.isr)
        assert (state.leader, state.isr, state.controller_epoch) == (1, (1, 2), 2)
        await world.kill_and_expire(9)
        await world.settle()
        assert (await world.state(FLIGHTS)) == state

    run_world(test, replace(QUIET, min_insync_replicas=min_in_sync), seed)


def test_a_second_death_while_the_first_is_only_suspected_is_seen_as_fast() -> None:
    """An earlier death does not mean that the controller is cut off."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        await world.create_topic("flights", {0: [1, 2, 9]})
        await world.settle()
        for broker_id, others in ((1, (2, 9)), (2, (9,))):
            before = world.clock.monotonic()
            world.kill(broker_id)
            state = await world.until_state(FLIGHTS, lambda s, others=others: s.isr == others)
            assert state.leader == others[0]
            assert world.clock.monotonic() - before < 0.5

    run_world(test)


def test_two_deaths_at_once_wait_for_a_session() -> None:
    """With no other broker left the controller cannot distinguish this from its own isolation."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        await world.create_topic("flights", {0: [1, 2, 9]})
        await world.settle()
        before = world.clock.monotonic()
        world.kill(1)
        world.kill(2)
        await world.until_state(FLIGHTS, lambda s: s.leader == 9)
        assert world.clock.monotonic() - before > SESSION_SECONDS / 2

    run_world(test)


@pytest.mark.parametrize("seed", range(4))
def test_writes_go_on_without_a_controller_that_is_cut_off(seed: int) -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(TP.topic, replication_factor=3, partitions=1)
        history = History()
        await produce(cluster, history, range(20))
        (ruler,) = [b for b in (1, 2, 3) if is_controller(cluster, b)]
        for other in {1, 2, 3} - {ruler}:
            cluster.network.reject(cluster.host(ruler), cluster.host(other))
            cluster.network.reject(cluster.host(other), cluster.host(ruler))
        await produce(cluster, history, range(20, 40))
        for other in {1, 2, 3} - {ruler}:
            cluster.network.admit(cluster.host(ruler), cluster.host(other))
            cluster.network.admit(cluster.host(other), cluster.host(ruler))
        await produce(cluster, history, range(40, 60))
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()
        assert len(history.acked) == 60

    run(story(), seed=seed, max_time=300.0)


def is_controller(cluster: SimulatedCluster, broker_id: int) -> bool:
    controller = cluster.broker(broker_id).membership.controller
    return controller is not None and controller.is_active


def part(world: ControlWorld, one: int, other: int) -> None:
    """Break the connections between two brokers; new ones get no answer, so none is suspected."""
    here, there = world.brokers[one].node, world.brokers[other].node
    world.network.cut(here, there)
    world.network.cut(there, here)
    world.network.reset(here, there)


def reunite(world: ControlWorld, one: int, other: int) -> None:
    here, there = world.brokers[one].node, world.brokers[other].node
    world.network.heal(here, there)
    world.network.heal(there, here)


def test_no_one_hands_over_to_a_broker_that_cannot_be_told() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        await world.create_topic("flights", {0: [1, 2], 1: [1, 2, 9]})
        await world.settle()
        part(world, 9, 2)
        await world.settle()
        assert sorted(world.brokers[9].live_brokers()) == [1, 2, 9]  # no broker is suspected
        controller = world.brokers[9].controller
        answer = await controller.handle(ControlledShutdownRequest(1, world.brokers[1].epoch))
        assert [(p.topic, p.partition) for p in answer.remaining] == [FLIGHTS]
        state = await world.state(TopicPartition("flights", 1))
        assert state is not None and (state.leader, state.isr) == (9, (2, 9))

    run_world(test)


def test_who_could_not_be_told_of_a_handover_is_told_when_it_is_back() -> None:
    """Otherwise it would follow no leader, and no later event would make it follow the new one."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        await world.create_topic("flights", {0: [1, 2, 9]})
        await world.settle()
        part(world, 9, 2)
        await world.settle()
        await world.brokers[9].controller.handle(
            ControlledShutdownRequest(1, world.brokers[1].epoch)
        )
        reunite(world, 9, 2)
        await world.kill_and_expire(1)
        await world.settle()
        role = world.brokers[2].role(FLIGHTS)
        assert role is not None and role.leader == 9

    run_world(test)


def test_a_reassignment_hands_over_to_a_broker_that_can_be_told() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2, 3)
        await world.create_topic("flights", {0: [1, 2, 3]})
        await world.settle()
        part(world, 9, 2)
        await world.settle()
        assert await reassign(world, [2, 3]) is ErrorCode.NONE
        state = await world.state(FLIGHTS)
        assert state is not None and (state.leader, state.isr) == (3, (2, 3))
        reunite(world, 9, 2)
        await world.settle()
        role = world.brokers[2].role(FLIGHTS)
        assert role is not None and role.leader == 3

    run_world(test)


def test_a_preferred_leader_that_cannot_be_told_is_not_elected() -> None:
    async def test(world: ControlWorld) -> None:
        await drifted(world)  # broker 1 is controller, 3 leads, 2 is preferred
        await rejoin(world, (3, 2))
        await world.store.session.create(f"{znodes.ISR_CHANGES}/isr_change_", note(FLIGHTS))
        await world.settle()
        part(world, 1, 2)
        await world.settle()
        assert await elect(world, PREFERRED, FLIGHTS) == {FLIGHTS: "PREFERRED_LEADER_NOT_AVAILABLE"}
        reunite(world, 1, 2)
        await world.settle()
        assert await elect(world, PREFERRED, FLIGHTS) == {FLIGHTS: "NONE"}

    run_world(test)
