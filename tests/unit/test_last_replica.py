"""What a leader flushes while the ISR requires flushing, and which records count meanwhile."""

import asyncio
from collections.abc import Callable

import pytest
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.deadlines import Deadlines
from barnabas_broker.replica.leader.alter_partition_manager import (
    AlterPartitionContext,
    AlterPartitionManager,
)
from barnabas_broker.replica.leader.environment import FlushSoon, LeaderEnvironment
from barnabas_broker.replica.leader.in_sync import InSyncReplicas
from barnabas_broker.replica.leader.last_replica import (
    LastReplicaStanding,
    Phase,
    isr_requires_flush,
)
from barnabas_broker.replica.leader.leadership import ACKS_LEADER, Leadership
from barnabas_broker.replica.purgatory import DelayedOperations, DelayedProduce
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import LeaderAndIsrPartition

from tests.support.idempotent import sent
from tests.support.log_world import LogWorld
from tests.support.raw import batch

ALONE = InSyncReplicas((1,))


@pytest.mark.parametrize(
    ("in_sync", "minimum", "replicas", "thin"),
    [
        (3, 2, 3, False),
        (2, 2, 3, False),
        (1, 2, 3, True),  # below the minimum, and alone
        (1, 1, 3, True),  # alone, though the minimum allows it
        (2, 1, 3, False),
        (2, 3, 3, True),  # below the minimum, though not alone
        (3, 3, 3, False),
        (1, 1, 2, True),
        (2, 2, 2, False),
        (1, 1, 1, False),  # the partition has only one replica
    ],
)
def test_what_a_thin_isr_is(in_sync: int, minimum: int, replicas: int, thin: bool) -> None:
    assert isr_requires_flush(in_sync, minimum, replicas) is thin


class SlowFlush:
    """Flushes that start when they are requested and end when the test lets them."""

    def __init__(self) -> None:
        self.under_way: list[Callable[[], None]] = []

    def __call__(self, log: UnifiedLog, done: Callable[[], None]) -> None:
        plan = log.plan_flush()

        def end() -> None:
            log.epoch_file.write()
            plan.run()
            log.complete_flush(plan)
            done()

        self.under_way.append(end)

    def end_one(self) -> None:
        self.under_way.pop(0)()


def environment(flush_soon: FlushSoon) -> LeaderEnvironment:
    """Return the environment of broker 1, which knows no controller."""
    context = AlterPartitionContext(None, 1, lambda: 1, lambda: None, 1.0)  # type: ignore[arg-type]
    manager = AlterPartitionManager(context)
    return LeaderEnvironment(1, lambda: 0.0, 10.0, lambda _: True, manager, flush_soon)


def standing(
    log: UnifiedLog, flush_soon: FlushSoon, on_flushed: Callable[[], None] = lambda: None
) -> LastReplicaStanding:
    """Return the object of broker 1, which has two other replicas, once the ISR is (1,)."""
    last = LastReplicaStanding(log, 3, environment(flush_soon), flush_soon, on_flushed)
    assert (last.phase, last.end_offset) == (Phase.NOT_REQUIRED, log.log_end_offset)
    assert not last.review(ALONE)
    return last


async def test_one_flush_at_a_time_and_what_came_meanwhile_shares_the_next() -> None:
    world, flushes, ended = LogWorld(), SlowFlush(), []
    log = world.open()
    world.append(log, b"a", b"b")
    last = standing(log, flushes, lambda: ended.append(last.end_offset))
    assert last.phase is Phase.FLUSHING and len(flushes.under_way) == 1
    for value in (b"c", b"d"):
        world.append(log, value)
        last.appended()
    assert len(flushes.under_way) == 1, "one at a time"
    flushes.end_one()
    assert (last.phase, last.end_offset) == (Phase.FLUSHED, 2)
    flushes.end_one()
    assert last.end_offset == 4 and not flushes.under_way
    assert ended == [2, 4]


async def test_a_flush_that_left_something_out_does_not_count() -> None:
    """Retention deleted a segment during its flush, and the rest of that flush was given up."""
    world, given_up = LogWorld(), []
    log = world.open()
    world.append(log, b"a")
    last = standing(log, lambda _, done: given_up.append(done))
    given_up.pop()()
    assert last.phase is Phase.FLUSHING and len(given_up) == 1, "it is tried again"
    log.flush()
    given_up.pop()()
    assert last.phase is Phase.FLUSHED and not given_up


async def test_only_flushed_records_count_from_the_request_for_a_small_isr_on() -> None:
    world, flushes = LogWorld(), SlowFlush()
    log = world.open()
    last = standing(log, flushes)
    flushes.end_one()
    last.review(InSyncReplicas((1, 2), proposed=(1,)))
    world.append(log, b"a")
    last.appended()
    assert last.end_offset == 0, "the controller may have written the ISR already"
    flushes.end_one()
    assert last.end_offset == 1
    last.review(InSyncReplicas((1, 2)))
    assert last.phase is Phase.NOT_REQUIRED


async def test_a_smaller_isr_waits_for_the_flush_that_it_requires() -> None:
    world, flushes = LogWorld(), SlowFlush()
    log = world.open()
    world.append(log, b"a")
    last = standing(log, flushes)
    last.review(InSyncReplicas((1, 2, 3)))
    assert last.phase is Phase.NOT_REQUIRED and last.end_offset == 1, "all of the log counts again"
    assert last.prepare_to_shrink_to(2)
    assert not last.prepare_to_shrink_to(1) and last.end_offset == 0
    flushes.end_one()
    assert last.prepare_to_shrink_to(1)


async def test_the_controller_is_asked_once_to_confirm_the_isr_of_a_flushed_log() -> None:
    world, flushes = LogWorld(), SlowFlush()
    last = standing(world.open(), flushes)
    assert not last.review(ALONE), "nothing is flushed yet"
    flushes.end_one()
    assert not last.review(ALONE.shrinking([])), "a change is in flight"
    assert "up to offset 0" in last.review(ALONE)
    last.confirming()
    assert last.phase is Phase.REPORTED and not last.review(ALONE)


async def test_the_controller_is_asked_again_when_the_leader_is_alone_another_time() -> None:
    """In between another replica was a member, and may have records that this one does not."""
    flushes = SlowFlush()
    last = standing(LogWorld().open(min_insync_replicas=3), flushes)
    flushes.end_one()
    assert last.review(ALONE)
    last.confirming()
    assert not last.review(InSyncReplicas((1, 2)))
    assert "up to offset 0" in last.review(ALONE)


async def test_after_the_epoch_a_flush_changes_nothing() -> None:
    world, flushes, ended = LogWorld(), SlowFlush(), []
    last = standing(world.open(), flushes, lambda: ended.append(1))
    last.end()
    flushes.end_one()
    assert not ended and last.phase is Phase.NOT_REQUIRED


async def test_an_append_with_acks_1_waits_for_its_flush() -> None:
    world, flushes, delayed_operations = LogWorld(), SlowFlush(), DelayedOperations()
    log = world.open()
    state = LeaderAndIsrPartition("t", 0, "", 1, 1, 5, 1, [1], [1, 2, 3])
    leader = Leadership(log, state, delayed_operations, environment(flushes), None)
    leader.start()
    leader.append(batch(b"a"), ACKS_LEADER, 0)
    assert leader.outcome_of_append(ACKS_LEADER, 1) is None
    produce = DelayedProduce(Deadlines(asyncio.get_running_loop().time), 1e9)
    delayed_operations.park_flush(1, produce)
    flushes.end_one()
    assert not produce.waiter.done(), "that flush began before the append"
    flushes.end_one()
    assert produce.waiter.done() and produce.errors == [ErrorCode.NONE]


async def test_a_retry_with_acks_1_of_what_is_flushed_does_not_wait() -> None:
    world, flushes = LogWorld(), SlowFlush()
    state = LeaderAndIsrPartition("t", 0, "", 1, 1, 5, 1, [1], [1, 2, 3])
    leader = Leadership(world.open(), state, DelayedOperations(), environment(flushes), None)
    leader.start()
    for _ in range(2):
        end = leader.append(sent(b"a"), ACKS_LEADER, 0).last_offset + 1
        assert end == 1 and leader.outcome_of_append(ACKS_LEADER, end) is None
    while flushes.under_way:
        flushes.end_one()
    end = leader.append(sent(b"a"), ACKS_LEADER, 0).last_offset + 1
    assert leader.outcome_of_append(ACKS_LEADER, end) is ErrorCode.NONE


async def test_who_waits_for_a_flush_hears_when_the_leadership_ends() -> None:
    delayed_operations = DelayedOperations()
    produce = DelayedProduce(Deadlines(asyncio.get_running_loop().time), 1e9)
    delayed_operations.park_flush(7, produce)
    delayed_operations.leadership_ended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert produce.errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
