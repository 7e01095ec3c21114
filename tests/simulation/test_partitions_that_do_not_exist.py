"""A partition that does not exist, at an offset that the application names."""

import pytest
from barnabas import Consumer
from barnabas_common.errors import UnknownTopicOrPartitionError
from barnabas_common.topic_partition import TopicPartition

from tests.support.group_stories import story
from tests.support.scripted_group import GroupBrokers


@pytest.mark.parametrize("partition", [("other", 0), ("flights", 9)])
@pytest.mark.parametrize("seek", [False, True])
def test_a_poll_of_a_partition_that_does_not_exist_says_so(
    partition: tuple[str, int], seek: bool
) -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with Consumer(
            bootstrap_servers=brokers.bootstrap, runtime=brokers.runtime_of("c")
        ) as consumer:
            consumer.assign([TopicPartition(*partition)])
            if seek:
                consumer.seek(partition, 3)
            with pytest.raises(UnknownTopicOrPartitionError):
                await consumer.poll(timeout_ms=300_000)

    story(scenario)
