"""A client's knowledge of the cluster: brokers, topics, leaders and their epochs. Plain data.

Brokers answer from caches that may lag behind one another, so an answer is merged: for each
partition the highest leader epoch is kept and a lower one is ignored, unless the topic's id
changed, that is, the topic was deleted and created again (KIP-516), or the lower epoch is believed
(`lower_epochs.py`).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.metadata import (
    BrokerInfo,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from barnabas_common.topic_partition import TopicPartition


class Leader(NamedTuple):
    """The broker that leads a partition, and the epoch of its leadership."""

    broker_id: int
    epoch: int


@dataclass(frozen=True)
class TopicInfo:
    """A topic's partitions, by number from 0."""

    topic: str
    topic_id: str
    is_internal: bool
    partitions: tuple[PartitionMetadata, ...]

    @property
    def partition_count(self) -> int:
        return len(self.partitions)


@dataclass(frozen=True)
class ClusterMetadata:
    """Immutable; `merged` and `with_leader` return the next state.

    `errors` holds the error code of each topic that the last answer refused.
    """

    cluster_id: str = ""
    controller_id: int = -1
    brokers: Mapping[int, BrokerInfo] = field(default_factory=dict)
    topics: Mapping[str, TopicInfo] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)

    def leader(self, topic_partition: TopicPartition) -> Leader | None:
        """The partition's leader, if it and its address are known."""
        partition = self.partition(topic_partition)
        if partition is None or partition.leader_id not in self.brokers:
            return None
        return Leader(partition.leader_id, partition.leader_epoch)

    def partition(self, topic_partition: TopicPartition) -> PartitionMetadata | None:
        """The newest known state of a partition; None if the partition is unknown."""
        info = self.topics.get(topic_partition.topic)
        if info is None or not 0 <= topic_partition.partition < len(info.partitions):
            return None
        return info.partitions[topic_partition.partition]

    def partitions_of(self, topics: Iterable[str]) -> list[TopicPartition]:
        """Every known partition of the topics, in order."""
        return [
            TopicPartition(topic, partition.partition)
            for topic in topics
            if topic in self.topics
            for partition in self.topics[topic].partitions
        ]

    def merged(
        self,
        response: MetadataResponse,
        every_topic: bool = False,
        believed: Collection[TopicPartition] = (),
    ) -> "ClusterMetadata":
        """This metadata and a broker's answer; topics it does not name stay as they are.

        If `every_topic` was asked for, those it does not name are gone. The leader epochs of the
        `believed` partitions count even if they are lower.
        """
        named = {answer.topic for answer in response.topics} if every_topic else self.topics.keys()
        topics = {name: info for name, info in self.topics.items() if name in named}
        errors = dict(self.errors)
        if not response.brokers:  # from a broker without metadata from the controller yet
            topics = dict(self.topics)
            errors |= {a.topic: a.error_code for a in response.topics if a.topic not in topics}
            return replace(self, errors=errors)
        for answer in response.topics:
            if answer.error_code != ErrorCode.NONE:
                errors[answer.topic] = answer.error_code
                topics.pop(answer.topic, None)
            else:
                errors.pop(answer.topic, None)
                topics[answer.topic] = _merged_topic(topics.get(answer.topic), answer, believed)
        return ClusterMetadata(
            cluster_id=response.cluster_id or self.cluster_id,
            controller_id=response.controller_id,
            brokers={broker.broker_id: broker for broker in response.brokers},
            topics=topics,
            errors=errors,
        )

    def with_leader(self, topic_partition: TopicPartition, leader: Leader) -> "ClusterMetadata":
        """This metadata and a leader that a broker named when it refused a request (KIP-951)."""
        old = self.partition(topic_partition)
        if old is None or leader.broker_id < 0 or leader.epoch <= old.leader_epoch:
            return self
        info = self.topics[topic_partition.topic]
        partitions = list(info.partitions)
        partitions[topic_partition.partition] = replace(
            old, leader_id=leader.broker_id, leader_epoch=leader.epoch, error_code=0
        )
        topics = dict(self.topics)
        topics[info.topic] = replace(info, partitions=tuple(partitions))
        return replace(self, topics=topics)


def _merged_topic(
    old: TopicInfo | None, answer: TopicMetadata, believed: Collection[TopicPartition]
) -> TopicInfo:
    same_topic = old is not None and old.topic_id == answer.topic_id
    # A broker whose cache lags may not know the last partitions yet.
    found = {p.partition: p for p in old.partitions} if old is not None and same_topic else {}
    for new in answer.partitions:
        is_believed = TopicPartition(answer.topic, new.partition) in believed
        found[new.partition] = new if is_believed else _newest(found.get(new.partition), new)
    partitions = tuple(
        found.get(n) or _without_leader(n) for n in range(max(found, default=-1) + 1)
    )
    return TopicInfo(answer.topic, answer.topic_id, answer.is_internal, partitions)


def _without_leader(number: int) -> PartitionMetadata:
    """A partition that the answer leaves out: its topic's znode, written by hand, may have gaps."""
    return PartitionMetadata(number, ErrorCode.LEADER_NOT_AVAILABLE)


def _newest(old: PartitionMetadata | None, new: PartitionMetadata) -> PartitionMetadata:
    if old is None or new.leader_epoch >= old.leader_epoch:
        return new
    return old
