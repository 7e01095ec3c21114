"""Topics that are deleted while a coordinator reads its partitions."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.groups import Groups
from barnabas_broker.coordinator.group.records import OffsetKey, OffsetValue, encode_offset_key
from barnabas_broker.coordinator.group.records import encode_offset_value as encoded
from barnabas_common.events import EventLog
from barnabas_common.record.batch import BatchHeader, batches
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.reader import Record, read_batch
from barnabas_common.topic_name import GROUP_METADATA_TOPIC
from barnabas_common.topic_partition import TopicPartition

DELETED = TopicPartition("orders", 0)
PARTITIONS = [TopicPartition(GROUP_METADATA_TOPIC, number) for number in range(2)]


class SlowLog:
    """Each partition has one group, and is read once it is released."""

    def __init__(self) -> None:
        self.released = [asyncio.Event() for _ in PARTITIONS]

    async def load(
        self,
        key: TopicPartition,
        _leader_epoch: int,
        take: Callable[[BatchHeader, Sequence[Record]], None],
        only_committed: bool,
    ) -> int:
        await self.released[key.partition].wait()
        builder = BatchBuilder()
        where = OffsetKey(f"group-{key.partition}", *DELETED)
        builder.append(1, encode_offset_key(where), encoded(OffsetValue(5)))
        data = builder.build()
        ((position, header),) = batches(data)
        take(header, read_batch(data, position))
        return 1


class Topic:
    name = GROUP_METADATA_TOPIC

    async def learn(self) -> bool:
        return True


def test_a_deletion_counts_for_the_loads_that_it_came_in_and_for_no_later_one() -> None:
    """With another partition still being read, it removed the offsets of the topic's successor."""
    removed: list[tuple[str, Sequence[TopicPartition]]] = []

    def loaded(found: Sequence[Group], deleted: Sequence[TopicPartition]) -> None:
        removed.extend((group.group_id, deleted) for group in found)

    async def until(count: int) -> None:
        async with asyncio.timeout(10):
            while len(removed) < count:
                await asyncio.sleep(0)

    async def story() -> None:
        log: Any = SlowLog()
        topic: Any = Topic()
        groups = Groups(log, topic, EventLog(1), loaded, lambda group: None)
        for partition in PARTITIONS:
            groups.became_leader(partition, 1)
        groups.partitions_deleted([DELETED])
        log.released[0].set()
        await until(1)
        # The topic exists again, and another coordinator has taken commits for it.
        groups.became_follower(PARTITIONS[0], 2)
        groups.became_leader(PARTITIONS[0], 3)
        await until(2)
        log.released[1].set()
        await until(3)
        await groups.close()

    asyncio.run(story())
    assert removed == [("group-0", [DELETED]), ("group-0", []), ("group-1", [DELETED])]
