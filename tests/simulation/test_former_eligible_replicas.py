"""A replica had every committed record when it left the ISR, and the topic's settings change since.

Only a change of the minimum ISR ends its eligibility. Even then it is asked for its log before a
member that lost records leads.
"""

from dataclasses import replace

import pytest
from barnabas_common.messages.control import HeldRole
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.config_store import BROKER_DEFAULT, change_overrides, topic_entity

from tests.support.config_world import write_overrides
from tests.support.control_world import QUIET, ControlWorld, run_world

FLIGHTS = TopicPartition("flights", 0)
OF_FLIGHTS = topic_entity("flights")
ENTITIES = pytest.mark.parametrize("entity", [OF_FLIGHTS, BROKER_DEFAULT], ids=["topic", "all"])
MIN_2 = replace(QUIET, min_insync_replicas=2)


async def leave_the_last_member_alone(world: ControlWorld) -> None:
    """Broker 3 leaves the ISR with every committed record. Then broker 2 loses power."""
    await world.start_brokers(1, 2, 3)
    await world.create_topic("flights", {0: [2, 3]})
    await world.kill_and_expire(3)
    await world.until_state(FLIGHTS, lambda state: state.isr == (2,) and state.eligible == (3,))
    world.zookeeper.expire(world.kill(2, keep_unflushed=False).session)
    await world.until_state(FLIGHTS, lambda state: state.leader == -1)
    await world.start_broker(3)


async def elected(world: ControlWorld, logs: dict[int, int]) -> int:
    """The leader once broker 2 is back; `logs` are the log end offsets, by broker id."""
    for broker_id, log_end_offset in logs.items():
        held = HeldRole(*FLIGHTS, -1, log_epoch=0, log_end_offset=log_end_offset)
        world.logs[broker_id] = held
    await world.start_broker(2)
    return (await world.until_state(FLIGHTS, lambda state: state.leader != -1)).leader


@ENTITIES
def test_other_settings_do_not_end_eligibility(entity: str) -> None:
    """So broker 3 leads, although its log is shorter: what is behind it was never committed."""

    async def test(world: ControlWorld) -> None:
        await change_overrides(world.store, entity, lambda _: {"retention.bytes": "1000"})
        await leave_the_last_member_alone(world)
        for size in ("2000", "3000"):
            await change_overrides(world.store, entity, lambda _: {"segment.bytes": size})  # noqa: B023
        assert await elected(world, {2: 9, 3: 7}) == 3

    run_world(test, MIN_2)


def test_nor_do_the_first_settings_of_a_topic() -> None:
    async def test(world: ControlWorld) -> None:
        await leave_the_last_member_alone(world)
        await change_overrides(world.store, OF_FLIGHTS, lambda _: {"segment.bytes": "2000"})
        assert await elected(world, {2: 9, 3: 7}) == 3

    run_world(test, MIN_2)


@ENTITIES
@pytest.mark.parametrize("back", [{"min.insync.replicas": "2"}, {}], ids=["raised", "removed"])
def test_a_changed_minimum_ends_it_for_good(entity: str, back: dict[str, str]) -> None:
    """Broker 2 may have committed records alone while the minimum was 1."""

    async def test(world: ControlWorld) -> None:
        await leave_the_last_member_alone(world)
        for settings in ({"min.insync.replicas": "1"}, back, {**back, "segment.bytes": "1000"}):
            await change_overrides(world.store, entity, lambda _: settings)  # noqa: B023
        assert await elected(world, {2: 9, 3: 7}) == 2

    run_world(test, MIN_2)


@pytest.mark.parametrize("minimum", ["1", "2"])
def test_a_replica_that_is_eligible_no_longer_leads_if_its_log_is_newer(minimum: str) -> None:
    """The member lost records that the other one has."""

    async def test(world: ControlWorld) -> None:
        await leave_the_last_member_alone(world)
        await write_overrides(world.store, OF_FLIGHTS, {"min.insync.replicas": minimum})
        assert await elected(world, {2: 7, 3: 9}) == 3

    run_world(test, MIN_2)


def test_it_does_not_lead_if_both_logs_are_equal() -> None:
    async def test(world: ControlWorld) -> None:
        await leave_the_last_member_alone(world)
        await write_overrides(world.store, OF_FLIGHTS, {"min.insync.replicas": "1"})
        assert await elected(world, {2: 9, 3: 9}) == 2

    run_world(test, MIN_2)
