"""A call of `unsubscribe` that is cancelled, as by `asyncio.wait_for`."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from barnabas import Consumer
from barnabas_common.messages.groups import LeaveGroupRequest, OffsetCommitRequest

from tests.support.group_stories import member, settle, story, write
from tests.support.scripted_group import GroupBrokers


async def no_mixture(consumer: Consumer) -> None:
    """Out of the group and without partitions, or still subscribed."""
    assert bool(consumer.assignment()) == bool(consumer.subscription())


async def subscribed_again(consumer: Consumer) -> None:
    consumer.subscribe("flights")
    await settle(consumer)


async def nothing(_consumer: Consumer) -> None:
    pass


@pytest.mark.parametrize("then", [no_mixture, subscribed_again, nothing])
def test_an_unsubscribe_that_is_cancelled_leaves_nothing_half_done(
    then: Callable[[Consumer], Awaitable[None]],
) -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 10)
        consumer = member(brokers)
        async with consumer:
            await settle(consumer)
            await consumer.poll(timeout_ms=100)
            held = brokers.hold(OffsetCommitRequest, lambda request: True)
            cancelled = asyncio.ensure_future(consumer.unsubscribe())
            await held.reached.wait()
            cancelled.cancel()
            await asyncio.wait([cancelled])
            held.release.set()
            await asyncio.sleep(1)
            assert brokers.requests(LeaveGroupRequest), "the member is still in the group"
            await then(consumer)

    story(scenario)
