"""A stream's position, as Spark keeps it in the checkpoint.

{"flights": {"0": 23, "1": 17}, "@barnabas": {"group.id": "...", "topic.ids": {"flights": "..."}}}

The first part is what Spark's Kafka source writes: the next offset to read of every partition. The
ids show that a topic was deleted and created again (KIP-516): its offsets then mean other records.
No topic's name begins with @.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas_common.topic_partition import TopicPartition

_OURS = "@barnabas"


@dataclass(frozen=True)
class StreamOffsets:
    """`offsets`: the next offset of every partition. `group_id`: where progress is published."""

    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, str]
    group_id: str

    def to_json(self) -> dict[str, Any]:
        """Equal positions give equal text: Spark compares the text to see whether there is more."""
        found: dict[str, Any] = {}
        for tp in sorted(self.offsets):
            found.setdefault(tp.topic, {})[str(tp.partition)] = self.offsets[tp]
        ids = dict(sorted(self.topic_ids.items()))
        return found | {_OURS: {"group.id": self.group_id, "topic.ids": ids}}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "StreamOffsets":
        ours = found.get(_OURS, {})
        offsets = {
            TopicPartition(topic, int(partition)): offset
            for topic, by_partition in found.items()
            if topic != _OURS
            for partition, offset in by_partition.items()
        }
        return cls(offsets, ours.get("topic.ids", {}), ours.get("group.id", ""))
