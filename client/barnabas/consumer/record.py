"""One record as the application receives it."""

from typing import NamedTuple

from barnabas_common.topic_partition import TopicPartition


class ConsumerRecord(NamedTuple):
    """A record and where it is stored: its partition, then the fields of a `Record`.

    `timestamp` in ms, of the producer (`timestamp_type` 0) or of the broker (1). A `value` of None
    is a tombstone. `leader_epoch` is the epoch of the leader that appended it.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    leader_epoch: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)
