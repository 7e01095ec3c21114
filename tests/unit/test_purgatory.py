"""Parked requests are woken once, timed by one heap, and completed by offset."""

import asyncio

from barnabas_broker.replica.deadlines import Deadlines, wake
from barnabas_broker.replica.purgatory import DelayedOperations, DelayedProduce
from barnabas_common.errors.error_code import ErrorCode
from barnabas_simulator import loop as virtual


def deadlines() -> Deadlines:
    return Deadlines(asyncio.get_running_loop().time)


def test_a_parked_request_is_false_when_its_time_is_over_whatever_the_order_of_parking() -> None:
    async def scenario() -> list[tuple[float, bool]]:
        heap, loop = deadlines(), asyncio.get_running_loop()

        async def wait(deadline: float) -> tuple[float, bool]:
            woken = await heap.park(deadline)
            return loop.time(), woken

        return await asyncio.gather(wait(5.0), wait(1.0), wait(3.0), wait(0.0))

    assert virtual.run(scenario()) == [(5.0, False), (1.0, False), (3.0, False), (0.0, False)]


def test_waking_wins_over_the_deadline_and_happens_once() -> None:
    async def scenario() -> tuple[float, bool]:
        heap, loop = deadlines(), asyncio.get_running_loop()
        waiter = heap.park(5.0)
        loop.call_later(1.0, wake, waiter)
        loop.call_later(2.0, wake, waiter)
        woken = await waiter
        await asyncio.sleep(10.0)
        return loop.time(), woken

    assert virtual.run(scenario()) == (11.0, True)


def test_requests_woken_in_time_do_not_pile_up() -> None:
    async def scenario() -> int:
        heap = deadlines()
        for _ in range(20_000):
            wake(heap.park(30.0))
        return len(heap)

    assert virtual.run(scenario()) <= 2048


def test_closing_lets_everybodys_time_run_out_in_order() -> None:
    async def scenario() -> list[int]:
        heap, order = deadlines(), list[int]()
        for number, deadline in enumerate((3.0, 1.0, 2.0)):
            waiter = heap.park(deadline)
            waiter.add_done_callback(lambda _, number=number: order.append(number))
        heap.close()
        await asyncio.sleep(0)
        return order

    assert virtual.run(scenario()) == [1, 2, 0]


def test_a_produce_is_done_when_its_last_partition_is_committed() -> None:
    async def scenario() -> None:
        one, other = DelayedOperations(), DelayedOperations()
        produce = DelayedProduce(deadlines(), 30.0)
        one.park_produce(10, produce)
        other.park_produce(20, produce)
        one.high_watermark_moved(10, ErrorCode.NONE)
        other.high_watermark_moved(19, ErrorCode.NONE)
        assert not produce.waiter.done()
        other.high_watermark_moved(25, ErrorCode.NONE)
        assert await produce.waiter
        assert produce.errors == [ErrorCode.NONE, ErrorCode.NONE]

    virtual.run(scenario())


def test_only_those_up_to_the_high_watermark_are_done() -> None:
    async def scenario() -> None:
        delayed_operations, heap = DelayedOperations(), deadlines()
        produces = [DelayedProduce(heap, 30.0) for _ in range(4)]
        for number, produce in enumerate(produces):
            delayed_operations.park_produce(10 * (number + 1), produce)
        delayed_operations.high_watermark_moved(25, ErrorCode.NONE)
        assert [produce.waiter.done() for produce in produces] == [True, True, False, False]

    virtual.run(scenario())


def test_what_is_not_committed_in_time_is_timed_out_and_later_news_changes_nothing() -> None:
    async def scenario() -> None:
        done, late = DelayedOperations(), DelayedOperations()
        produce = DelayedProduce(deadlines(), 30.0)
        done.park_produce(1, produce)
        late.park_produce(1, produce)
        done.high_watermark_moved(1, ErrorCode.NONE)
        assert not await produce.waiter
        late.high_watermark_moved(1, ErrorCode.NONE)
        assert produce.errors == [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]

    virtual.run(scenario())


def test_the_end_of_leadership_fails_produces_and_wakes_consumers() -> None:
    async def scenario() -> None:
        delayed_operations, heap = DelayedOperations(), deadlines()
        produce, consumer = DelayedProduce(heap, 30.0), heap.park(30.0)
        delayed_operations.park_produce(1, produce)
        delayed_operations.park_consumer(consumer)
        delayed_operations.leadership_ended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert await produce.waiter
        assert await consumer
        assert produce.errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER]

    virtual.run(scenario())


def test_a_produce_that_failed_in_one_partition_still_waits_for_the_flush_of_another() -> None:
    async def scenario() -> None:
        lost, led, heap = DelayedOperations(), DelayedOperations(), deadlines()
        produce = DelayedProduce(heap, 30.0)
        for delayed_operations in (lost, led):
            delayed_operations.park_flush(1, produce)
        lost.leadership_ended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        lost.flushed(1)
        assert not produce.waiter.done()
        led.flushed(1)
        assert await produce.waiter
        assert produce.errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE]

    virtual.run(scenario())


def test_a_consumer_that_left_is_not_woken() -> None:
    async def scenario() -> None:
        delayed_operations, heap = DelayedOperations(), deadlines()
        staying, leaving = heap.park(30.0), heap.park(30.0)
        delayed_operations.park_consumer(staying)
        delayed_operations.park_consumer(leaving)
        delayed_operations.leave_consumer(leaving)
        delayed_operations.high_watermark_moved(5, ErrorCode.NONE)
        assert staying.done()
        assert not leaving.done()

    virtual.run(scenario())


def test_a_retry_that_waits_for_an_earlier_append_is_not_kept_by_later_ones() -> None:
    async def scenario() -> list[bool]:
        heap, operations = deadlines(), DelayedOperations()
        produces = [DelayedProduce(heap, 5.0) for _ in range(3)]
        for offset, produce in zip((10, 12, 5), produces, strict=True):
            operations.park_produce(offset, produce)
        operations.high_watermark_moved(10, ErrorCode.NONE)
        return [produce.waiter.done() for produce in produces]

    assert virtual.run(scenario()) == [True, False, True]
