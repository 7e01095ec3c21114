"""The old way to ask for reassignments: the znode `/admin/reassign_partitions`."""

import json

from barnabas_common.events import EventKind
from barnabas_controller.store.znodes import REASSIGN_PARTITIONS, ReplicaAssignment

from tests.simulation.test_controller_reassignment import (
    FLIGHTS,
    ask_isr,
    assignment,
    kinds,
    reassign,
    until_home,
)
from tests.support.control_world import ControlWorld, run_world


async def request_reassignment(world: ControlWorld, *wishes: tuple[str, int, list[int]]) -> None:
    content = {
        "version": 1,
        "partitions": [{"topic": t, "partition": p, "replicas": r} for t, p, r in wishes],
    }
    await world.store.ensure(REASSIGN_PARTITIONS, json.dumps(content).encode())


async def until_forgotten(world: ControlWorld) -> None:
    async def gone() -> bool | None:
        return await world.store.exists(REASSIGN_PARTITIONS) is None or None

    await world.until_some(gone)


def test_the_old_znode_asks_too_and_goes_when_all_of_it_is_done() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [1, 2]})
        for target in ([3, 2], [1, 3]):  # twice: the watch is armed again
            await request_reassignment(
                world, ("flights", 0, target), ("unknown", 0, [1]), ("flights", 7, [9])
            )

            async def begun() -> bool | None:
                return (await assignment(world)).adding != () or None

            await world.until_some(begun)
            await world.settle()
            assert await world.store.exists(REASSIGN_PARTITIONS) is not None
            state = await world.state(FLIGHTS)
            assert state is not None
            await ask_isr(world, [*state.isr, (await assignment(world)).adding[0]])
            await until_home(world, *target)
            await until_forgotten(world)
        assert kinds(world).count(EventKind.REASSIGNMENT_REFUSED) == 4

    run_world(test)


def test_nonsense_in_the_old_znode_is_thrown_away_loudly() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        for data in (b"{", b'{"version":1,"partitions":[]}', b'{"partitions":[{"topic":1}]}'):
            await world.store.ensure(REASSIGN_PARTITIONS, data)
            await until_forgotten(world)
        assert await assignment(world) == ReplicaAssignment((1, 2))
        assert world.brokers[1].controller.epoch == 1, "the controller is still the first"
        events = world.brokers[1].events.since(0)
        malformed = [event for event in events if event.kind is EventKind.ZNODE_MALFORMED]
        assert [event.details["path"] for event in malformed] == [REASSIGN_PARTITIONS] * 2

    run_world(test)


def test_an_unknown_broker_in_the_old_znode_is_refused_and_moves_nothing() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        await world.create_topic("flights", {0: [1, 2]})
        await request_reassignment(world, ("flights", 0, [1, 99]))
        await until_forgotten(world)
        assert await assignment(world) == ReplicaAssignment((1, 2))
        (event,) = [
            e for e in world.brokers[1].events.since(0) if e.kind is EventKind.REASSIGNMENT_REFUSED
        ]
        assert "99" in event.cause and "INVALID_REPLICA_ASSIGNMENT" in event.cause

    run_world(test)


def test_a_request_overrules_the_old_znode() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3, 4)
        await world.create_topic("flights", {0: [1]})
        await request_reassignment(world, ("flights", 0, [2]))

        async def begun() -> bool | None:
            return (await assignment(world)).adding == (2,) or None

        await world.until_some(begun)
        await reassign(world, [3])
        await until_forgotten(world)
        await ask_isr(world, [1, 3])
        await until_home(world, 3)

    run_world(test)
