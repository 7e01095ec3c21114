"""Deadlines of parked requests on the real event loop, whose clock ticks in milliseconds."""

import asyncio
import time

import uvloop
from barnabas_broker.replica.deadlines import Deadlines, wake


def test_time_runs_out_in_the_order_of_the_deadlines() -> None:
    async def story() -> list[str]:
        deadlines, ended = Deadlines(time.monotonic), []
        now = time.monotonic()

        async def wait(name: str, seconds: float) -> None:
            assert not await deadlines.park(now + seconds)
            ended.append(name)

        await asyncio.gather(wait("last", 0.05), wait("first", 0.01), wait("second", 0.03))
        return ended

    assert uvloop.run(story()) == ["first", "second", "last"]


def test_deadlines_nearer_than_the_clocks_tick() -> None:
    async def story() -> None:
        deadlines = Deadlines(time.monotonic)
        for _ in range(50):
            now = time.monotonic()
            waiters = [deadlines.park(now + tick / 10_000) for tick in (4, 3, 2, 1, 0, -1)]
            async with asyncio.timeout(5):
                assert await asyncio.gather(*waiters) == [False] * len(waiters)
        assert len(deadlines) == 0

    uvloop.run(story())


def test_who_is_woken_in_time_is_told_so() -> None:
    async def story() -> None:
        deadlines = Deadlines(time.monotonic)
        waiter = deadlines.park(time.monotonic() + 60)
        wake(waiter)
        assert await waiter
        deadlines.close()

    uvloop.run(story())
