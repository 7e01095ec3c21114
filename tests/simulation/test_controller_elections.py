"""Elections on request, by admins and by the znode of old tools; notifications about ISRs."""

import asyncio
from dataclasses import replace

import pytest
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.elections import PREFERRED, UNCLEAN, ElectLeadersRequest
from barnabas_common.messages.reassignments import PartitionName
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr

from tests.support.control_world import QUIET, ControlWorld, run_world

FLIGHTS = TopicPartition("flights", 0)
QUIET_BUT_QUICK = replace(QUIET, leader_imbalance_check_interval_seconds=5.0)
MALFORMED = EventKind.ZNODE_MALFORMED


async def elect(
    world: ControlWorld, kind: str, *partitions: TopicPartition
) -> dict[TopicPartition, str]:
    """Request elections, of all partitions if none is named; returns the codes by name."""
    controller = world.controller()
    assert controller is not None
    names = [PartitionName(*partition) for partition in partitions]
    request = ElectLeadersRequest(kind, not names, names)
    response = await controller.controller.handle(request)
    assert response.error_code == 0
    return {
        TopicPartition(r.topic, r.partition): ErrorCode(r.error_code).name
        for r in response.partitions
    }


async def drifted(world: ControlWorld) -> None:
    """Broker 2, the preferred leader, is back; broker 3 leads, broker 1 is controller."""
    await world.start_brokers(1, 2, 3)
    await world.create_topic("flights", {0: [2, 3]})
    await world.kill_and_expire(2)
    await world.until_state(FLIGHTS, lambda s: s.leader == 3)
    await world.start_broker(2)
    await world.until(lambda: world.brokers[2].role(FLIGHTS) is not None)


async def rejoin(world: ControlWorld, isr: tuple[int, ...]) -> None:
    """Write a state with this ISR, as an operator who repairs it, under a new leader epoch."""
    state = await world.state(FLIGHTS)
    assert state is not None
    data = znodes.encode_state(LeaderAndIsr(state.leader, state.leader_epoch + 1, isr, 1))
    await world.store.put(znodes.state_path(FLIGHTS), data)


def test_the_preferred_replica_leads_when_asked_for_and_in_sync() -> None:
    async def test(world: ControlWorld) -> None:
        await drifted(world)
        refused = {FLIGHTS: "PREFERRED_LEADER_NOT_AVAILABLE"}
        assert await elect(world, PREFERRED, FLIGHTS) == refused
        await rejoin(world, (3, 2))
        await world.store.session.create(f"{znodes.ISR_CHANGES}/isr_change_", note(FLIGHTS))
        await asyncio.sleep(1)
        assert await elect(world, PREFERRED, FLIGHTS) == {FLIGHTS: "NONE"}
        assert (await world.until_state(FLIGHTS, lambda s: s.leader == 2)).isr == (3, 2)
        assert await elect(world, PREFERRED, FLIGHTS) == {FLIGHTS: "ELECTION_NOT_NEEDED"}
        assert await elect(world, PREFERRED) == {}

    run_world(test)


def note(*partitions: TopicPartition) -> bytes:
    items = ",".join(f'{{"topic":"{p.topic}","partition":{p.partition}}}' for p in partitions)
    return f'{{"version":1,"partitions":[{items}]}}'.encode()


def test_what_is_not_there_or_on_its_way_out_has_no_election() -> None:
    async def test(world: ControlWorld) -> None:
        await drifted(world)
        await world.create_topic("doomed", {0: [3]})
        await world.kill_and_expire(3)  # so that the deletion has to wait
        await world.store.ensure(znodes.delete_topic_path("doomed"))
        await world.settle()
        missing, doomed = TopicPartition("flights", 7), TopicPartition("doomed", 0)
        for kind in (PREFERRED, UNCLEAN):
            assert await elect(world, kind, missing, doomed) == {
                missing: "UNKNOWN_TOPIC_OR_PARTITION",
                doomed: "INVALID_TOPIC_EXCEPTION",
            }

    run_world(test)


def test_an_unclean_election_takes_the_one_that_lives_and_only_where_no_one_leads() -> None:
    async def test(world: ControlWorld) -> None:
        await drifted(world)
        assert await elect(world, UNCLEAN, FLIGHTS) == {FLIGHTS: "ELECTION_NOT_NEEDED"}
        await world.kill_and_expire(3)
        await world.until_state(FLIGHTS, lambda s: s.leader == NO_LEADER)
        assert await elect(world, UNCLEAN, FLIGHTS) == {FLIGHTS: "NONE"}
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert (state.isr, state.recovery_state) == ((2,), 1)
        await world.kill_and_expire(2)
        await world.until_state(FLIGHTS, lambda s: s.leader == NO_LEADER)
        assert await elect(world, UNCLEAN) == {FLIGHTS: "ELIGIBLE_LEADERS_NOT_AVAILABLE"}

    run_world(test)


def test_a_refused_election_is_told_once_for_as_long_as_nothing_about_it_changes() -> None:
    """Brokers without a replica of the partition start and stop: the event is not repeated."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3, 4)
        await world.create_topic("flights", {0: [2, 3]})
        await world.kill_and_expire(3)
        await world.until_state(FLIGHTS, lambda s: s.isr == (2,))
        await world.kill_and_expire(2)
        await world.until_state(FLIGHTS, lambda s: s.leader == NO_LEADER)

        def refusals() -> list[str]:
            events = world.brokers[1].events.since(0)
            return [e.cause for e in events if e.kind is EventKind.ELECTION_REFUSED]

        await world.until(lambda: len(refusals()) > 0)
        told = len(refusals())
        for _ in range(3):
            await world.kill_and_expire(4)
            await asyncio.sleep(1)
            await world.start_broker(4)
            await asyncio.sleep(1)
        assert len(refusals()) == told
        await world.start_broker(3)
        await world.until(lambda: len(refusals()) > told)
        assert "[3] are not in it" in refusals()[-1]
        assert await elect(world, UNCLEAN, FLIGHTS) == {FLIGHTS: "NONE"}
        await world.kill_and_expire(3)
        await world.until(lambda: len(refusals()) > told + 1)
        reason = refusals()[-1]
        await world.start_broker(3)
        await world.until_state(FLIGHTS, lambda s: s.leader == 3)
        told = len(refusals())
        await world.kill_and_expire(3)
        await world.until(lambda: len(refusals()) > told)
        assert refusals()[-1] == reason, "the same is told again, because it has led in between"

    run_world(test)


def test_another_type_and_another_broker_are_refused() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2)
        controller, other = world.brokers[1].controller, world.brokers[2].controller
        response = await controller.handle(ElectLeadersRequest("random", True))
        assert response.error_code == ErrorCode.INVALID_REQUEST
        response = await other.handle(ElectLeadersRequest(PREFERRED, True))
        assert response.error_code == ErrorCode.NOT_CONTROLLER

    run_world(test)


def test_the_legacy_znode_is_acted_on_and_taken_away() -> None:
    async def test(world: ControlWorld) -> None:
        await drifted(world)
        await world.create_topic("other", {0: [3, 2]})
        await rejoin(world, (3, 2))
        await world.store.session.create(f"{znodes.ISR_CHANGES}/isr_change_", note(FLIGHTS))
        await asyncio.sleep(1)
        unknown = TopicPartition("unknown", 0)
        await world.store.ensure(znodes.PREFERRED_REPLICA_ELECTION, note(unknown, FLIGHTS))
        await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        await gone(world)
        # The watch is armed again: a second znode works as well, and so does a malformed one.
        await world.store.ensure(znodes.PREFERRED_REPLICA_ELECTION, b"nonsense")
        await gone(world)
        await world.store.ensure(znodes.PREFERRED_REPLICA_ELECTION, b"")
        await gone(world)
        await world.store.ensure(znodes.PREFERRED_REPLICA_ELECTION, note(FLIGHTS))
        await gone(world)
        assert world.controller() is world.brokers[1]
        assert world.brokers[1].controller.epoch == 1

    run_world(test)


async def gone(world: ControlWorld) -> None:
    async def is_gone() -> bool | None:
        return await world.store.exists(znodes.PREFERRED_REPLICA_ELECTION) is None or None

    await world.until_some(is_gone)


def test_a_znode_left_without_a_controller_is_found_by_the_next_one() -> None:
    async def test(world: ControlWorld) -> None:
        await drifted(world)
        await world.create_topic("witness", {0: [2]})
        world.kill(1)
        await rejoin(world, (3, 2))
        await world.store.ensure(znodes.PREFERRED_REPLICA_ELECTION, note(FLIGHTS))
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert state.controller_epoch == 2
        await gone(world)

    run_world(test)


@pytest.mark.parametrize(
    "data", [b"", b"nonsense", b"[]", b'{"version":1}', b'{"version":1,"partitions":[{}]}']
)
def test_nonsense_among_the_isr_notes_is_reported_and_taken_away(data: bytes) -> None:
    async def test(world: ControlWorld) -> None:
        await drifted(world)
        await rejoin(world, (3, 2))
        path = await world.store.session.create(
            f"{znodes.ISR_CHANGES}/isr_change_", data, sequential=True
        )
        await world.store.session.create(
            f"{znodes.ISR_CHANGES}/isr_change_", note(FLIGHTS), sequential=True
        )

        async def told() -> bool | None:
            metadata = world.brokers[1].metadata(FLIGHTS)
            assert metadata is not None
            return metadata.in_sync_replicas == [3, 2] or None

        await world.until_some(told)
        await world.settle()
        assert await world.store.children(znodes.ISR_CHANGES) == []
        malformed = [e for e in world.brokers[1].events.since(0) if e.kind is MALFORMED]
        assert [event.details["path"] for event in malformed] == [path]

    run_world(test)


def test_the_rebalance_can_be_switched_on_while_a_controller_rules() -> None:
    async def test(world: ControlWorld) -> None:
        await drifted(world)
        await rejoin(world, (3, 2))
        await world.store.session.create(f"{znodes.ISR_CHANGES}/isr_change_", note(FLIGHTS))
        await world.settle(20)
        state = await world.state(FLIGHTS)
        assert state is not None and state.leader == 3
        enabled = replace(QUIET_BUT_QUICK, auto_leader_rebalance_enable=True)
        world.brokers[1].controller.reconfigure(enabled)
        await world.until_state(FLIGHTS, lambda s: s.leader == 2)

    run_world(test, QUIET_BUT_QUICK)


@pytest.mark.parametrize("later", [30.0, 6.0], ids=["after the first wait", "during it"])
def test_every_wait_for_a_better_leader_is_a_whole_one(later: float) -> None:
    """A topic is deleted while its partition waits; a new one of its name waits the whole time."""
    config = replace(QUIET, eligible_leader_replicas_wait=20.0, min_insync_replicas=2)

    async def test(world: ControlWorld) -> None:
        async def leader_comes_back_without_its_records() -> None:
            await world.create_topic("flights", {0: [1, 2]})
            await world.kill_and_expire(2)
            await world.until_state(FLIGHTS, lambda s: s.isr == (1,))
            world.zookeeper.expire(world.kill(1, keep_unflushed=False).session)
            await world.until_state(FLIGHTS, lambda s: s.leader == -1)
            await world.start_broker(1)
            await world.settle()

        await world.start_brokers(9, 1, 2)
        await leader_comes_back_without_its_records()
        await world.store.ensure(znodes.delete_topic_path("flights"))
        await world.start_broker(2)

        async def is_gone() -> bool | None:
            return await world.store.topic("flights") is None or None

        await world.until_some(is_gone)
        await world.settle(later)
        await leader_comes_back_without_its_records()
        await world.settle(15.0)
        state = await world.state(FLIGHTS)
        assert state is not None and (state.leader, state.eligible) == (-1, (2,))
        await world.until_state(FLIGHTS, lambda s: s.leader == 1)

    run_world(test, config)
