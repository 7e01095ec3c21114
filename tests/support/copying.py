"""Consume, transform, produce against scripted brokers: a full topic, its members, its copies."""

from collections.abc import Awaitable, Callable
from typing import Any

from barnabas import Consumer, ConsumerRecord, ProducerRecord
from barnabas_common.messages.metadata import PartitionMetadata, TopicMetadata
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run

from tests.support.scripted_brokers import ScriptedLog
from tests.support.scripted_transactions import TransactionBrokers


def consumer_of(brokers: TransactionBrokers, name: str = "c", **options: Any) -> Consumer:
    return Consumer(
        "flights",
        bootstrap_servers=brokers.bootstrap,
        runtime=brokers.runtime_of(name),
        **{
            "group_id": "g",
            "client_id": name,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "isolation_level": "read_committed",
            **options,
        },
    )


def committed_offset(brokers: TransactionBrokers, partition: int = 0) -> int | None:
    found = brokers.groups["g"].offsets.get(TopicPartition("flights", partition))
    return None if found is None else found[0]


def fill(brokers: TransactionBrokers, count: int) -> None:
    for partition in range(3):
        builder = BatchBuilder()
        for number in range(count):
            builder.append(number, None, b"%d-%d" % (partition, number), [])
        brokers.log(partition).append(builder.build())
    brokers.changed()


def every(count: int) -> list[bytes]:
    return sorted(b"%d-%d" % (partition, n) for partition in range(3) for n in range(count))


def copy(record: ConsumerRecord) -> list[ProducerRecord]:
    return [ProducerRecord("copies", record.value)] if record.partition < 3 else []


class Copying(TransactionBrokers):
    """Brokers with a second topic, `copies`, of one partition."""

    def __init__(self) -> None:
        super().__init__(partitions=3)
        self.logs[TopicPartition("copies", 0)] = ScriptedLog(self.brokers[0])

    def metadata(self, request: Any) -> Any:
        response = super().metadata(request)
        topics = []
        for topic in response.topics:
            if topic.topic not in ("flights", "copies"):
                topics.append(topic)
                continue
            found = [
                PartitionMetadata(tp.partition, 0, log.leader, log.epoch, [1, 2, 3], [1, 2, 3])
                for tp, log in self.logs.items()
                if tp.topic == topic.topic
            ]
            topics.append(TopicMetadata(topic.topic, 0, "id-of-" + topic.topic, False, found))
        response.topics = topics
        return response

    def copies(self) -> list[bytes]:
        values = self.committed()
        inputs = sum(len(self.logs[TopicPartition("flights", p)].records()) for p in range(3))
        return sorted(value for value in values[inputs:] if value is not None)


def copying(scenario: Callable[[Copying], Awaitable[None]]) -> None:
    async def tell() -> None:
        async with Copying() as brokers:
            await scenario(brokers)

    run(tell(), seed=1, max_time=300.0)
