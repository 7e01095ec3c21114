"""A leader's own write of its ISR, and what fences it."""

import pytest
from barnabas_broker.server.isr_writer import LeaderFacts, ZooKeeperIsrWriter
from barnabas_common.events import EventKind, EventLog
from barnabas_common.messages.control import (
    AlterPartitionItem,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.store import Store
from barnabas_controller.store.znodes import Broker, Endpoint

from tests.support.control_world import ControlWorld, run_world
from tests.support.meddling import Meddling

FLIGHTS = TopicPartition("flights", 0)
STATE = znodes.state_path(FLIGHTS)
SHRINK = AlterPartitionItem("flights", 0, leader_epoch=0, partition_epoch=0, new_isr=[1, 2])


async def no_role(_: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
    raise AssertionError("no later role was to be read")


def writer_of(session: object, events: EventLog) -> ZooKeeperIsrWriter:
    facts = LeaderFacts(
        broker_id=1,
        broker_epoch=lambda: 1,
        hears_a_broker=lambda: True,
        topic_id=lambda _: "id-of-flights",
        min_insync=lambda: 1,
        eligible_leader_replicas=False,
        take_role=no_role,
    )
    store = Store(session)  # type: ignore[arg-type]
    return ZooKeeperIsrWriter(lambda: store, facts, events)


async def register(world: ControlWorld, broker_id: int) -> None:
    broker = Broker(broker_id, (Endpoint("PLAINTEXT", f"host{broker_id}", 1),))
    path, data = znodes.broker_path(broker_id), znodes.encode_broker(broker, 0)
    await world.store.session.create(path, data, ephemeral=True)


async def prepare(world: ControlWorld) -> None:
    for broker_id in (1, 2, 3):
        await register(world, broker_id)
    await world.store.ensure(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(1))
    topic = b'{"version":3,"topic_id":"id-of-flights","partitions":{"0":[1,2,3]}}'
    await world.store.ensure(znodes.topic_path("flights"), topic)
    await world.store.ensure(STATE, FIRST)


FIRST = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2,3]}'
CHANGED = FIRST.replace(b'"isr":[1,2,3]', b'"isr":[1,3]')


def test_it_is_written_at_the_versions_that_were_read() -> None:
    async def test(world: ControlWorld) -> None:
        await prepare(world)
        await world.store.put(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(7))
        writer = writer_of(world.store.session, EventLog(1))
        (result,) = await writer.write([SHRINK], "no controller answers")
        assert (result.answer.error_code, result.answer.partition_epoch) == (0, 1)
        state = await world.state(FLIGHTS)
        assert state is not None and (state.isr, state.controller_epoch) == ((1, 2), 7)

    run_world(test)


@pytest.mark.parametrize(
    ("path", "data"), [(znodes.CONTROLLER_EPOCH, b"2"), (STATE, CHANGED)], ids=["epoch", "state"]
)
def test_an_election_or_a_change_since_the_reading_stops_it(path: str, data: bytes) -> None:
    async def test(world: ControlWorld) -> None:
        await prepare(world)
        events = EventLog(1)
        session = Meddling(world.store.session, STATE, lambda: world.store.put(path, data))
        writer = writer_of(session, events)
        assert await writer.write([SHRINK], "no controller answers") == []
        state = await world.state(FLIGHTS)
        assert session.has_meddled and state is not None and state.isr != (1, 2)
        (refused,) = [e for e in events.since(0) if e.kind is EventKind.ISR_CHANGE_REFUSED]
        assert "BadVersion" in refused.cause
        (_,) = await writer.write([SHRINK], "no controller answers")
        assert not writer._conflicts, "what is settled need not be remembered"

    run_world(test)


def test_a_change_that_the_leader_cannot_write_waits_for_the_controller() -> None:
    """The controller may have received it, and accept it later: the leader must not forget it."""

    async def test(world: ControlWorld) -> None:
        await prepare(world)
        writer = writer_of(world.store.session, EventLog(1))
        await world.store.put(znodes.broker_path(2), b"nonsense")
        assert await writer.write([SHRINK], "no controller answers") == []
        await world.store.session.delete(znodes.broker_path(2))
        assert await writer.write([SHRINK], "no controller answers") == []
        await register(world, 2)
        (result,) = await writer.write([SHRINK], "no controller answers")
        assert result.answer.error_code == 0

    run_world(test)
