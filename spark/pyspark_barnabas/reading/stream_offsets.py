"""A stream's position, as Spark keeps it in the checkpoint.

{"flights": {"0": 23, "1": 17}, "@barnabas": {"group.id": "...", "topic.ids": {"flights": "..."}}}

The first part is what Spark's Kafka source writes: the next offset to read of every partition. The
ids show that a topic was deleted and created again (KIP-516): its offsets then mean other records.
No topic's name begins with @.

The end of a query's first batch also has "began": where that batch begins. Spark stores only the
ends of batches. Whenever it plans the first one, also after a restart, it asks again where the
query starts, and the answer may have changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas_common.topic_partition import TopicPartition

from pyspark_barnabas.options.values import numbers_of
from pyspark_barnabas.reading.errors import PlanError

_OURS = "@barnabas"
Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True)
class StreamOffsets:
    """`offsets`: the next offset of every partition. `group_id`: where progress is published.

    `began`: where the first batch begins, in its end. In the position that a query begins at, it is
    that position.
    """

    offsets: Offsets
    topic_ids: Mapping[str, str]
    group_id: str
    began: Offsets | None = None

    @property
    def is_first(self) -> bool:
        """Whether the batch that begins here is the first that has anything to read."""
        return self.began == self.offsets

    def to_json(self) -> dict[str, Any]:
        """Equal positions give equal text: Spark compares the text to see whether there is more."""
        ours: dict[str, Any] = {
            "group.id": self.group_id,
            "topic.ids": dict(sorted(self.topic_ids.items())),
        }
        if self.began is not None:
            ours["began"] = _by_topic(self.began)
        return _by_topic(self.offsets) | {_OURS: ours}

    @classmethod
    def from_json(cls, found: Any) -> "StreamOffsets":
        """Raises PlanError for anything that `to_json` has not written."""
        try:
            ours = found[_OURS]
            began = ours.get("began")
            return cls(
                _flat(found),
                dict(ours["topic.ids"]),
                ours["group.id"],
                None if began is None else _flat(began),
            )
        except (LookupError, TypeError, ValueError, AttributeError):
            raise PlanError(
                'the checkpoint is not one of a stream with format("barnabas"): it has the'
                f" position {found!r:.300}. Use another checkpointLocation; startingOffsets says"
                " where to begin"
            ) from None


def _by_topic(offsets: Offsets) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for tp in sorted(offsets):
        found.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    return found


def _flat(found: Any) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, partition): offset
        for topic, offsets in numbers_of(found).items()
        for partition, offset in offsets.items()
    }
