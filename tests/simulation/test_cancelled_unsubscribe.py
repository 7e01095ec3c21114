"""A call of `unsubscribe` that is cancelled, as by `asyncio.wait_for`."""

import asyncio

from barnabas_common.messages.groups import LeaveGroupRequest, OffsetCommitRequest

from tests.support.group_stories import member, settle, story, write
from tests.support.scripted_group import GroupBrokers


def test_an_unsubscribe_that_is_cancelled_leaves_nothing_half_done() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 10)
        async with member(brokers) as consumer:
            await settle(consumer)
            await consumer.poll(timeout_ms=100)
            held = brokers.hold(OffsetCommitRequest, lambda request: True)
            cancelled = asyncio.ensure_future(consumer.unsubscribe())
            await held.reached.wait()
            cancelled.cancel()
            await asyncio.wait([cancelled])
            held.release.set()
            assert brokers.requests(LeaveGroupRequest), "the member is still in the group"
            assert not consumer.assignment() and not consumer.subscription()
            consumer.subscribe("flights")
            await settle(consumer)
        assert len(brokers.requests(LeaveGroupRequest)) == 2

    story(scenario)
