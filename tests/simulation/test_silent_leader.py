"""A leader that stands still, and the positions of partitions that others lead."""

import asyncio
from typing import Any

from barnabas import Consumer
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.offsets import ListedOffset, ListOffsetsResponse
from barnabas_common.topic_partition import TopicPartition

from tests.support.group_stories import story
from tests.support.scripted_group import GroupBrokers

FIRST, SECOND = TopicPartition("flights", 0), TopicPartition("flights", 1)


def test_a_silent_leader_does_not_delay_the_position_of_a_partition_led_elsewhere() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        refused = False

        async def fault(broker_id: int, request: Any) -> Any:
            nonlocal refused
            brokers.offset_faults.append(fault)
            if broker_id == brokers.log(1).leader:
                await asyncio.Event().wait()  # stands still
            if not refused:
                refused = True
                return ListOffsetsResponse(
                    [
                        ListedOffset(p.topic, p.partition, ErrorCode.OFFSET_NOT_AVAILABLE)
                        for p in request.partitions
                    ]
                )
            return None

        async with Consumer(
            bootstrap_servers=brokers.bootstrap,
            runtime=brokers.runtime_of("c"),
            auto_offset_reset="earliest",
        ) as consumer:
            brokers.offset_faults = [fault]
            began = asyncio.get_running_loop().time()
            consumer.assign([FIRST, SECOND])
            assert await consumer.position(FIRST) == 0
            assert asyncio.get_running_loop().time() - began < 5

    story(scenario)
