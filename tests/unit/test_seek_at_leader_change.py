"""A seek just before the consumer checks its position against a new leader (KIP-320)."""

import asyncio
from typing import Any

import pytest
from barnabas_common.topic_partition import TopicPartition

from tests.support.scripted_brokers import ScriptedBrokers
from tests.unit.test_consumer_reading import TP, consumer_of, read, write


@pytest.mark.parametrize("policy", ["earliest", "latest", "none"])
async def test_a_seek_between_a_leader_change_and_its_check_stays(policy: Any) -> None:
    other = TopicPartition("flights", 1)  # led by broker 2, and idle: its fetch is parked there
    async with ScriptedBrokers(partitions=2) as brokers:
        write(brokers, 0, 100)
        async with consumer_of(brokers, auto_offset_reset=policy) as consumer:
            consumer.assign([TP, other])
            consumer.seek(TP, 0)
            consumer.seek(other, 0)
            assert len(await read(consumer, 100)) == 100
            brokers.elect(0, 2)
            consumer._cluster.request_refresh()
            async with asyncio.timeout(5.0):
                while not consumer._offset_fetcher._asked:  # the check is about to begin
                    await asyncio.sleep(0)
            consumer.seek(TP, 30)
            records = await read(consumer, 1)
            assert records[0].offset == 30
