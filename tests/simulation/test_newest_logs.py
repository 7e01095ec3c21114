"""All replicas lost power: they are asked for their logs, and the newest one leads."""

import asyncio
from dataclasses import replace

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import HeldRole, LeaderAndIsrRequest
from barnabas_common.messages.elections import UNCLEAN, ElectLeadersRequest
from barnabas_common.messages.reassignments import PartitionName
from barnabas_common.topic_partition import TopicPartition

from tests.support.control_world import QUIET, ControlWorld, RecordingBroker, run_world

FLIGHTS = TopicPartition("flights", 0)
WAIT = QUIET.eligible_leader_replicas_wait


def has_log(world: ControlWorld, broker_id: int, log_end_offset: int, log_epoch: int = 0) -> None:
    """This is what the broker tells of its log whenever it is asked."""
    held = HeldRole(*FLIGHTS, -1, log_epoch=log_epoch, log_end_offset=log_end_offset)
    world.logs[broker_id] = held


async def lose_power(world: ControlWorld, *others: int, partitions: int = 1) -> None:
    """All brokers have lost power, also the controller; 2, 3 and the others were in sync."""
    await world.start_brokers(1, 2, 3, *others)
    assignment = {number: [2, 3, *others] for number in range(partitions)}
    await world.create_topic("flights", assignment)
    brokers = [world.kill(broker, keep_unflushed=False) for broker in (1, 2, 3, *others)]
    for broker in brokers:
        world.zookeeper.expire(broker.session)


async def start_silent(world: ControlWorld, broker_id: int) -> RecordingBroker:
    """Start a broker that answers the first LeaderAndIsr, which is no question, and no other."""
    broker = await world.start_broker(broker_id)
    await world.until(lambda: broker.role(FLIGHTS) is not None)
    broker.answers_roles.clear()
    return broker


async def until_asked(world: ControlWorld, broker: RecordingBroker) -> None:
    def is_asked() -> bool:
        role = broker.role(FLIGHTS)
        return role is not None and role.tell_only

    await world.until(is_asked)


async def ask_while_one_is_silent(
    world: ControlWorld,
) -> tuple[RecordingBroker, RecordingBroker]:
    """Both are asked. Broker 2 has the newest log and answers; broker 3 is silent."""
    await lose_power(world)
    has_log(world, 2, 9)
    has_log(world, 3, 7)
    silent = await start_silent(world, 3)
    first = await world.start_broker(2)
    await until_asked(world, first)
    return first, silent


async def is_led_by(world: ControlWorld, broker_id: int) -> None:
    """It leads alone: the other one lost records, and catches up. No role was refused."""
    state = await world.until_state(FLIGHTS, lambda state: state.isr == (state.leader,))
    assert state.leader == broker_id
    leader = world.brokers[broker_id]
    await world.until(lambda: (role := leader.role(FLIGHTS)) is not None and not role.tell_only)
    controller = world.controller()
    assert controller is not None
    assert EventKind.EPOCH_RAISED not in [event.kind for event in controller.events.since(0)]


def test_the_first_replica_does_not_lead_if_another_has_a_newer_log() -> None:
    async def test(world: ControlWorld) -> None:
        await lose_power(world)
        has_log(world, 2, 9)
        has_log(world, 3, 7, log_epoch=1)
        await world.start_broker(2)
        await world.start_broker(3)
        await is_led_by(world, 3)

    run_world(test)


def test_nor_if_it_is_the_only_member_and_an_eligible_replica_has_a_newer_log() -> None:
    """All lost power. The controller, which starts first, keeps one member of the ISR."""

    async def test(world: ControlWorld) -> None:
        await lose_power(world)
        await world.start_broker(1)
        alone = await world.until_state(FLIGHTS, lambda state: len(state.isr) == 1)
        assert len(alone.eligible) == 1
        has_log(world, *alone.isr, 7)
        has_log(world, *alone.eligible, 9)
        await world.start_broker(*alone.eligible)
        await world.settle()
        await world.start_broker(*alone.isr)
        await is_led_by(world, *alone.eligible)

    run_world(test, replace(QUIET, min_insync_replicas=2))


def test_a_replica_that_does_not_answer_is_awaited_for_a_limited_time() -> None:
    async def test(world: ControlWorld) -> None:
        await lose_power(world)
        has_log(world, 3, 7)
        silent = await start_silent(world, 2)
        await world.start_broker(3)
        await until_asked(world, silent)
        began = asyncio.get_running_loop().time()
        await is_led_by(world, 3)
        assert WAIT - 1 < asyncio.get_running_loop().time() - began < WAIT + 1

    run_world(test)


def test_what_an_earlier_incarnation_has_told_does_not_count() -> None:
    """It loses power again before the other one has answered, and comes back with less."""

    async def test(world: ControlWorld) -> None:
        first, silent = await ask_while_one_is_silent(world)
        world.kill(2, keep_unflushed=False)
        world.zookeeper.expire(first.session)
        has_log(world, 2, 5)
        await until_asked(world, await world.start_broker(2))
        silent.answers_roles.set()
        await is_led_by(world, 3)

    run_world(test)


def test_a_replica_that_is_gone_again_is_not_elected() -> None:
    """It had the newest log. The other one leads when the wait for it is over."""

    async def test(world: ControlWorld) -> None:
        _, silent = await ask_while_one_is_silent(world)
        await world.kill_and_expire(2)
        silent.answers_roles.set()
        await is_led_by(world, 3)

    run_world(test)


def test_a_replica_that_is_asked_late_has_its_own_time_to_answer() -> None:
    """It has the newest log. The wait for the answer of another one is over before it answers."""

    async def test(world: ControlWorld) -> None:
        await lose_power(world, 4)
        has_log(world, 2, 7)
        has_log(world, 4, 9)
        await world.start_broker(2)
        (await world.start_broker(3)).answers_roles.clear()
        await world.settle(WAIT - 2)
        late = await world.start_broker(4)
        late.answers_roles.clear()
        await world.settle(WAIT - 2)
        state = await world.state(FLIGHTS)
        assert state is not None and state.leader == -1
        late.answers_roles.set()
        await is_led_by(world, 4)

    run_world(test)


def test_a_requested_election_finds_the_newest_log_without_delay() -> None:
    """Broker 4 may have more, and is awaited. An administrator does not wait for it."""

    async def test(world: ControlWorld) -> None:
        await lose_power(world, 4)
        has_log(world, 2, 7)
        has_log(world, 3, 9)
        await world.start_broker(2)
        await world.start_broker(3)
        await world.settle()
        controller = world.controller()
        assert controller is not None
        request = ElectLeadersRequest(UNCLEAN, partitions=[PartitionName(*FLIGHTS)])
        response = await controller.controller.handle(request)
        assert [result.error_code for result in response.partitions] == [ErrorCode.NONE]
        await is_led_by(world, 3)

    run_world(test)


def test_a_replica_that_cannot_use_its_log_is_not_awaited() -> None:
    async def test(world: ControlWorld) -> None:
        await lose_power(world)
        has_log(world, 2, 7)
        silent = await start_silent(world, 3)
        silent.failing[FLIGHTS] = ErrorCode.KAFKA_STORAGE_ERROR
        await world.start_broker(2)
        await until_asked(world, silent)
        began = asyncio.get_running_loop().time()
        silent.answers_roles.set()
        await is_led_by(world, 2)
        assert asyncio.get_running_loop().time() - began < 1

    run_world(test)


def test_a_broker_is_asked_for_all_its_logs_at_once() -> None:
    async def test(world: ControlWorld) -> None:
        await lose_power(world, partitions=20)
        has_log(world, 2, 7)
        has_log(world, 3, 9)
        await world.start_broker(2)
        await world.start_broker(3)
        for number in range(20):
            led = await world.until_state(
                TopicPartition("flights", number), lambda s: s.isr == (s.leader,)
            )
            assert led.leader == 3
        for broker_id in (2, 3):
            told = world.brokers[broker_id].told
            requests = [r.partitions for r in told if isinstance(r, LeaderAndIsrRequest)]
            assert [len(asked) for asked in requests if asked[0].tell_only] == [20]

    run_world(test)
