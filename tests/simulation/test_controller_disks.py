"""A broker loses one of its disks and continues: its replicas there go offline, others stay."""

import asyncio
from dataclasses import replace

import pytest
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes

from tests.support.control_world import QUIET, ControlWorld, run_world

LOST, KEPT = TopicPartition("lost", 0), TopicPartition("kept", 0)


async def two_topics(world: ControlWorld) -> None:
    """Broker 1 leads both; broker 9 is controller."""
    await world.start_brokers(9, 1, 2, 3)
    for partition in (LOST, KEPT):
        await world.create_topic(partition.topic, {0: [1, 2, 3]})
        await world.until(lambda p=partition: world.brokers[1].role(p) is not None)  # type: ignore[misc]


def test_a_note_of_a_lost_disk_moves_the_leadership_of_what_was_on_it() -> None:
    async def test(world: ControlWorld) -> None:
        await two_topics(world)
        world.brokers[1].failing[LOST] = ErrorCode.KAFKA_STORAGE_ERROR
        await world.store.propagate_log_dir_event(1)
        state = await world.until_state(LOST, lambda s: s.isr == (2, 3))
        assert state.leader == 2
        kept = await world.state(KEPT)
        assert kept is not None and (kept.leader, kept.isr) == (1, (1, 2, 3))
        await world.until(lambda: world.brokers[9].metadata(LOST).offline_replicas == [1])  # type: ignore[union-attr]

    run_world(test)


@pytest.mark.parametrize(
    ("error", "eligible"),
    [(ErrorCode.KAFKA_STORAGE_ERROR, (1,)), (ErrorCode.CORRUPT_MESSAGE, ())],
    ids=["its disk failed", "its log is damaged"],
)
def test_who_leaves_the_isr_with_a_damaged_log_is_not_eligible(
    error: ErrorCode, eligible: tuple[int, ...]
) -> None:
    """It is truncated before it fetches again."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2, 3)
        await world.create_topic(LOST.topic, {0: [1, 2, 3]})
        await world.until(lambda: world.brokers[1].role(LOST) is not None)
        world.brokers[1].failing[LOST] = error
        await world.store.propagate_log_dir_event(1)
        state = await world.until_state(LOST, lambda s: s.isr == (2, 3))
        assert (state.leader, state.eligible) == (2, eligible)

    run_world(test, replace(QUIET, min_insync_replicas=3))


async def with_an_eligible_replica(world: ControlWorld) -> None:
    """Broker 2 leads, with 3 in sync; 1 is online again and eligible. 9 is controller."""
    await world.start_brokers(9, 1, 2, 3)
    await world.create_topic(LOST.topic, {0: [1, 2, 3]})
    await world.until(lambda: world.brokers[1].role(LOST) is not None)
    world.brokers[1].failing[LOST] = ErrorCode.KAFKA_STORAGE_ERROR
    await world.store.propagate_log_dir_event(1)
    await world.until_state(LOST, lambda s: (s.isr, s.eligible) == ((2, 3), (1,)))
    del world.brokers[1].failing[LOST]
    await world.store.propagate_log_dir_event(1)
    await world.until(lambda: not world.brokers[9].metadata(LOST).offline_replicas)  # type: ignore[union-attr]


def test_an_eligible_replica_whose_log_is_damaged_is_no_longer_eligible() -> None:
    """It waits for that: its log is truncated then."""

    async def test(world: ControlWorld) -> None:
        await with_an_eligible_replica(world)
        assert world.brokers[9].metadata(LOST).eligible_leader_replicas == [1]  # type: ignore[union-attr]
        world.brokers[1].failing[LOST] = ErrorCode.CORRUPT_MESSAGE
        await world.store.propagate_log_dir_event(1)
        state = await world.until_state(LOST, lambda s: s.eligible == ())
        assert (state.leader, state.isr) == (2, (2, 3))
        await world.until(lambda: not world.brokers[1].metadata(LOST).eligible_leader_replicas)  # type: ignore[union-attr]

    run_world(test, replace(QUIET, min_insync_replicas=3))


def test_without_a_leader_it_stays_eligible() -> None:
    """Nothing is truncated then, and an operator may put a valid copy in the place of its log."""

    async def test(world: ControlWorld) -> None:
        await with_an_eligible_replica(world)
        world.brokers[1].failing[LOST] = ErrorCode.CORRUPT_MESSAGE
        await world.kill_and_expire(3, 2)
        await world.until_state(LOST, lambda s: s.leader == -1)
        await world.store.propagate_log_dir_event(1)
        await world.until(lambda: 1 in world.brokers[9].metadata(LOST).offline_replicas)  # type: ignore[union-attr]
        await world.settle()
        state = await world.state(LOST)
        assert state is not None and 1 in state.eligible

    run_world(test, replace(QUIET, min_insync_replicas=3))


def test_notes_are_taken_away_and_nonsense_among_them_does_no_harm() -> None:
    async def test(world: ControlWorld) -> None:
        await two_topics(world)
        await world.store.ensure(f"{znodes.LOG_DIR_EVENTS}/log_dir_event_x", b"nonsense")
        await world.store.propagate_log_dir_event(7)
        await world.store.propagate_log_dir_event(2)

        async def none_left() -> bool | None:
            return (await world.store.children(znodes.LOG_DIR_EVENTS)) == [] or None

        await world.until_some(none_left)
        state = await world.state(LOST)
        assert state is not None and state.isr == (1, 2, 3)

    run_world(test)


def test_a_note_left_while_there_was_no_controller_is_made_up_for() -> None:
    async def test(world: ControlWorld) -> None:
        await two_topics(world)
        world.kill(9)
        world.brokers[1].failing[LOST] = ErrorCode.KAFKA_STORAGE_ERROR
        await world.store.propagate_log_dir_event(1)
        state = await world.until_state(LOST, lambda s: s.isr == (2, 3))
        assert state.leader == 2
        assert await world.store.children(znodes.LOG_DIR_EVENTS) == []

    run_world(test)


def test_a_failure_under_an_earlier_leader_epoch_stops_no_replica() -> None:
    """The broker could not open the log, then could: it may, once a leader is elected."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2, 3)
        await world.create_topic(LOST.topic, {0: [2, 3, 1]})
        broker = world.brokers[1]
        await world.until(lambda: broker.role(LOST) is not None)
        broker.failing[LOST] = ErrorCode.KAFKA_STORAGE_ERROR
        broker.answers_roles.clear()
        before = len(broker.told)
        await world.store.propagate_log_dir_event(1)
        await world.until(lambda: "LeaderAndIsr" in broker.kinds()[before:])
        await world.kill_and_expire(2)
        await world.until_state(LOST, lambda state: state.leader == 3)
        broker.failing.clear()
        broker.answers_roles.set()
        await world.until(lambda: broker.role(LOST).leader == 3)  # type: ignore[union-attr]
        await asyncio.sleep(5.0)
        state = await world.state(LOST)
        assert state is not None and state.isr == (3, 1)
        assert "StopReplica" not in broker.kinds()

    run_world(test)


@pytest.mark.parametrize("is_lost", [False, True], ids=["", "its first answer is lost"])
def test_a_replica_that_can_be_opened_again_is_online_again(is_lost: bool) -> None:
    """It has the role already when it answers the repeated request."""

    async def test(world: ControlWorld) -> None:
        await two_topics(world)
        world.brokers[1].failing[LOST] = ErrorCode.KAFKA_STORAGE_ERROR
        await world.store.propagate_log_dir_event(1)
        await world.until_state(LOST, lambda s: s.isr == (2, 3))
        world.brokers[1].failing.clear()
        if is_lost:
            world.brokers[1].failing[LOST] = ErrorCode.STALE_CONTROLLER_EPOCH
        await world.store.propagate_log_dir_event(1)

        def nobody_is_offline() -> bool:
            metadata = world.brokers[9].metadata(LOST)
            return metadata is not None and not metadata.offline_replicas

        await world.until(nobody_is_offline)

    run_world(test)
