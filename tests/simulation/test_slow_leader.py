"""A leader that takes seconds to answer, longer than a round of requests about positions."""

import asyncio
from typing import Any

from barnabas import Consumer

from tests.support.group_stories import story
from tests.support.scripted_group import GroupBrokers


def test_a_slow_leader_still_gives_a_position() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async def slow(_broker_id: int, _request: Any) -> None:
            brokers.offset_faults.append(slow)
            await asyncio.sleep(3.5)

        async with Consumer(
            bootstrap_servers=brokers.bootstrap,
            runtime=brokers.runtime_of("c"),
            auto_offset_reset="earliest",
        ) as consumer:
            brokers.offset_faults = [slow]
            consumer.assign([("flights", 0)])
            async with asyncio.timeout(10):
                assert await consumer.position(("flights", 0)) == 0

    story(scenario)
