"""What a leader flushes while the ISR is thin, and what counts meanwhile."""

import asyncio
from collections.abc import Callable

import pytest
from barnabas.error_code import ErrorCode
from barnabas_broker.log.log import Log
from barnabas_broker.replica.deadlines import Deadlines
from barnabas_broker.replica.last_replica import LastReplica, is_thin
from barnabas_broker.replica.purgatory import DelayedProduce, Waiting

from tests.support.log_world import LogWorld


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
        (1, 1, 1, False),  # one replica is all there ever was
    ],
)
def test_what_a_thin_isr_is(in_sync: int, minimum: int, replicas: int, thin: bool) -> None:
    assert is_thin(in_sync, minimum, replicas) is thin


class SlowFlush:
    """Flushes that begin when they are asked for and end when a test says so."""

    def __init__(self) -> None:
        self.under_way: list[Callable[[], None]] = []

    def __call__(self, log: Log, done: Callable[[], None]) -> None:
        plan = log.plan_flush()

        def end() -> None:
            log.epoch_file.write()
            plan.run()
            log.complete_flush(plan)
            done()

        self.under_way.append(end)

    def end_one(self) -> None:
        self.under_way.pop(0)()


async def test_one_flush_at_a_time_and_what_came_meanwhile_shares_the_next() -> None:
    world, flushes, ended = LogWorld(), SlowFlush(), []
    log = world.open()
    world.append(log, b"a", b"b")
    last = LastReplica(log, Waiting(), flushes, lambda: ended.append(log.recovery_point))
    assert not last.is_flushed and len(flushes.under_way) == 1
    for value in (b"c", b"d"):
        world.append(log, value)
        last.flush()
    assert len(flushes.under_way) == 1, "one at a time"
    flushes.end_one()
    assert last.is_flushed and last.durable_end == 2
    flushes.end_one()
    assert last.durable_end == 4 and not flushes.under_way
    assert ended == [2, 4]


async def test_a_flush_that_left_something_out_does_not_count() -> None:
    """Retention took a segment away while it was flushed: the rest of that flush was given up."""
    world, given_up, ended = LogWorld(), [], []
    log = world.open()
    world.append(log, b"a")
    last = LastReplica(
        log, Waiting(), lambda _, done: given_up.append(done), lambda: ended.append(1)
    )
    given_up.pop()()
    assert not last.is_flushed and len(given_up) == 1, "it is tried again"
    log.flush()
    given_up.pop()()
    assert last.is_flushed and not given_up


async def test_an_append_with_acks_1_waits_for_its_flush() -> None:
    world, flushes, waiting = LogWorld(), SlowFlush(), Waiting()
    log = world.open()
    last = LastReplica(log, waiting, flushes, lambda: None)
    world.append(log, b"a")
    last.flush()
    produce = DelayedProduce(Deadlines(asyncio.get_running_loop().time), 1e9)
    waiting.park_flush(1, produce)
    flushes.end_one()
    assert not produce.waiter.done(), "that flush began before the append"
    flushes.end_one()
    assert produce.waiter.done() and produce.errors == [ErrorCode.NONE]


async def test_after_its_end_a_flush_says_nothing_any_more() -> None:
    world, flushes, ended = LogWorld(), SlowFlush(), []
    last = LastReplica(world.open(), Waiting(), flushes, lambda: ended.append(1))
    last.end()
    flushes.end_one()
    assert not ended and not last.is_flushed


async def test_who_waits_for_a_flush_hears_when_the_leadership_ends() -> None:
    waiting = Waiting()
    produce = DelayedProduce(Deadlines(asyncio.get_running_loop().time), 1e9)
    waiting.park_flush(7, produce)
    waiting.leadership_ended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert produce.errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
