"""Malformed data in a partition's state znode: an event names it, and nothing is elected from it.

The other partitions continue, and this one has a leader again once the znode is repaired.
"""

import pytest
from barnabas_common.events import EventKind
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_simulator.loop import run

from tests.support.bad_znodes import (
    FLIGHTS,
    NONSENSE,
    OTHER,
    other_goes_on,
    raw,
    reported,
    start_cluster,
    still_the_first,
)
from tests.support.control_world import ControlWorld, run_world
from tests.support.last_replica import TP, Stage, numbers

STATE = znodes.state_path(FLIGHTS)


def spoilt(**fields: object) -> bytes:
    """Return a well-formed state that cannot be true."""
    said = {"leader": 1, "leader_epoch": 0, "isr": [1, 2, 3], "controller_epoch": 1, "version": 1}
    return str({**said, **fields}).replace("'", '"').encode()


IMPOSSIBLE = [
    spoilt(isr=[]),
    spoilt(isr=[1, 2, 7]),
    spoilt(isr=[7], leader=7),
    spoilt(leader=7),
    spoilt(isr=[2, 3]),
    spoilt(isr=[1, 1]),
    spoilt(leader_epoch=-5),
    spoilt(controller_epoch=99),
    spoilt(leader=2**40),
    spoilt(isr=["1"]),
    spoilt(leader_epoch=1.5),
]


@pytest.mark.parametrize("data", NONSENSE + IMPOSSIBLE)
def test_by_a_state_that_cannot_be_true_no_one_is_elected(data: bytes) -> None:
    """The controller finds it when it writes the next state."""

    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        good = await raw(world, STATE)
        await world.store.put(STATE, data)
        told = len(world.brokers[2].told)
        await other_goes_on(world)
        await reported(world, STATE)
        await world.settle()
        assert await raw(world, STATE) == data
        assert leaders_told(world, 2, told) <= {-1, 1}, "never a wrong leader"
        await world.store.put(STATE, good)
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert state.isr == (2, 3)
        await world.until(lambda: led(world, 2, FLIGHTS) == 2)
        still_the_first(world)

    run_world(test)


@pytest.mark.parametrize("data", NONSENSE + IMPOSSIBLE)
def test_a_new_controller_leaves_out_what_it_cannot_believe(data: bytes) -> None:
    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        good = await raw(world, STATE)
        await world.store.put(STATE, data)
        told = len(world.brokers[2].told)
        await world.kill_and_expire(9, 1)
        await world.until_state(OTHER, lambda s: s.leader == 2)
        controller = world.controller()
        assert controller is not None and controller.controller.epoch == 2
        await reported(world, STATE, controller.broker_id)
        await world.settle()
        assert await raw(world, STATE) == data
        assert leaders_told(world, 2, told) <= {-1, 1}
        await world.store.put(STATE, good)
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert (state.isr, state.controller_epoch) == ((2, 3), 2)
        await world.until(lambda: led(world, 2, FLIGHTS) == 2)
        assert controller.controller.epoch == 2

    run_world(test)


def leaders_told(world: ControlWorld, broker_id: int, since: int) -> set[int]:
    """Return the leaders of FLIGHTS in the requests to a broker, from number `since` on."""
    return {
        p.leader
        for request in world.brokers[broker_id].told[since:]
        for p in getattr(request, "partitions", [])
        if (p.topic, p.partition) == FLIGHTS and hasattr(p, "leader")
    }


def led(world: ControlWorld, broker_id: int, partition: TopicPartition) -> int | None:
    role = world.brokers[broker_id].role(partition)
    return role.leader if role is not None else None


def test_a_believable_state_of_others_is_taken_over_as_before() -> None:
    """An old leader, or an operator, may shrink an ISR."""

    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        data = znodes.encode_state(LeaderAndIsr(1, 0, (1, 3), 1))
        await world.store.put(STATE, data)
        await world.kill_and_expire(1)
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 3)
        assert state.isr == (3,)

    run_world(test)


def test_a_state_in_doubt_does_not_keep_its_topic_from_being_deleted() -> None:
    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        await world.store.put(STATE, b"nonsense")
        await world.kill_and_expire(9)
        await world.until(lambda: world.controller() is not None)
        await world.store.ensure(znodes.delete_topic_path("flights"))

        async def gone() -> bool | None:
            return await world.store.exists(znodes.topic_path("flights")) is None or None

        await world.until_some(gone)

    run_world(test)


def test_a_leader_that_asked_in_the_meantime_is_told_of_the_repair() -> None:
    """Otherwise it would wait for a LeaderAndIsr, and its ISR would stay as it is."""

    async def a_follower_returns() -> None:
        stage = Stage(1, {}, min_isr=1)
        await stage.open()
        await stage.produce(numbers("all-"))
        late = stage.others[1]
        stage.kill(late)
        await stage.until_isr(stage.leader, stage.others[0])
        path = znodes.state_path(TP)
        good = stage.cluster.zookeeper.tree.node(path).data
        operator = await stage.cluster.zookeeper.client("operator").connect(6000, 1000)
        await operator.set(path, b"nonsense")
        stage.cluster.start_broker(late)
        await stage.until(
            lambda: any(e.kind is EventKind.ISR_CHANGE_REFUSED for e in stage.cluster.events())
        )
        await operator.set(path, good)
        await stage.until_whole()

    run(a_follower_returns(), seed=1, max_time=300)
