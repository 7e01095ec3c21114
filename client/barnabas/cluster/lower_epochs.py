"""Leader epochs lower than those a client knows, and when it believes them.

A broker whose cache lags answers with a lower epoch, and Kafka's clients ignore that. But if
ZooKeeper was restored from an older copy, or a state was written back by hand, an epoch without
records may be forgotten by all brokers, and the epochs from there on are given again. A client that
ignored them would stand still until the epoch that it knows was passed.
"""

from collections.abc import Iterator

from barnabas_common.messages.metadata import MetadataResponse
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster.metadata import ClusterMetadata

# Longer than a broker that is cut off keeps its ZooKeeper session.
GRACE = 30.0


class LowerEpochs:
    """Since when all answers about a partition have had a lower leader epoch than the known one,
    and which that is: brokers name newer leaders in refusals too."""

    def __init__(self) -> None:
        self._since: dict[TopicPartition, tuple[int, float]] = {}

    def believed(
        self, known: ClusterMetadata, response: MetadataResponse, now: float
    ) -> frozenset[TopicPartition]:
        """Take note of an answer; return its partitions whose lower epochs count from now on.

        `now` is in seconds of a monotonic clock.
        """
        believed = set()
        for partition, lower_than in _compared(known, response):
            epoch, since = self._since.pop(partition, (None, now))
            if lower_than is None:
                continue
            if epoch == lower_than and now - since >= GRACE:
                believed.add(partition)
            else:
                self._since[partition] = (lower_than, since if epoch == lower_than else now)
        return frozenset(believed)


def _compared(
    known: ClusterMetadata, response: MetadataResponse
) -> Iterator[tuple[TopicPartition, int | None]]:
    """Each partition of an answer, and the known leader epoch if that of the answer is lower."""
    for answer in response.topics:
        info = known.topics.get(answer.topic)
        for new in answer.partitions:
            partition = TopicPartition(answer.topic, new.partition)
            old = known.partition(partition)
            same_topic = info is not None and info.topic_id == answer.topic_id
            is_lower = same_topic and old is not None and new.leader_epoch < old.leader_epoch
            yield partition, old.leader_epoch if old is not None and is_lower else None
