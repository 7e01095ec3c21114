"""The partitions of an internal topic as a coordinator uses them: read from start to end, appended.

An append is a batch of keys and values. It counts once it is committed, so that no later leader can
be without it; until then the coordinator keeps what it writes to itself.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas_common.errors import CorruptMessageError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.record.batch import CorruptBatch, batches, next_offset
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.compression import Compression
from barnabas_common.record.reader import Record, read_batch
from barnabas_common.runtime import Clock
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.replica.leader.leadership import ACKS_ALL
from barnabas_broker.replica.replica_manager import ReplicaManager

# Other requests get their turn after so many records of a load.
_RECORDS_BETWEEN_PAUSES = 500


class KeyValue(NamedTuple):
    """A record to append; a value of None is a tombstone."""

    key: bytes
    value: bytes | None


class Written(NamedTuple):
    """The offset of the first record, and what became of the append."""

    base_offset: int
    error: ErrorCode


class PartitionLog:
    """`compression` is the number of a codec, `load_buffer_size` in bytes, `timeout_ms` the time an
    append may take to be committed."""

    def __init__(
        self,
        replica_manager: ReplicaManager,
        clock: Clock,
        compression: int,
        load_buffer_size: int,
        timeout_ms: int,
    ) -> None:
        self._produces = replica_manager.produces
        self._reads = replica_manager.coordinator_reads
        self._clock = clock
        self._compression = Compression(compression).name.lower()
        self._load_buffer_size = load_buffer_size
        self._timeout_ms = timeout_ms

    async def append(self, key: TopicPartition, records: Sequence[KeyValue]) -> Written:
        """Append the records as one batch; returns when it is committed or has failed.

        The append itself is made before this waits for anything, so that a check of the coordinator
        just before still holds.
        """
        now_ms = self._clock.wall_ms()
        builder = BatchBuilder(self._compression)
        for record in records:
            builder.append(now_ms, record.key, record.value)
        item = ProducePartition(key.topic, key.partition, builder.build())
        request = ProduceRequest(ACKS_ALL, self._timeout_ms, [item])
        response = await self._produces.produce(request, internal_topics_allowed=True)
        assert response is not None
        result = response.partitions[0]
        return Written(result.base_offset, ErrorCode(result.error_code))

    async def load(
        self, key: TopicPartition, leader_epoch: int, take: Callable[[Record], None]
    ) -> None:
        """Call `take` with every record of the partition, in order; control records are left out.

        Raises:
            KafkaError: this broker no longer leads under that epoch, or its log cannot be read.
        """
        offset, end = self._reads.log_range(key, leader_epoch)
        since_pause = 0
        while offset < end:
            data = self._reads.read(key, leader_epoch, offset, end, self._load_buffer_size)
            for position, header in batches(data):
                if not header.is_control and header.record_count:
                    for record in _records(data, position):
                        take(record)
                since_pause += header.record_count
                if since_pause >= _RECORDS_BETWEEN_PAUSES:
                    since_pause = 0
                    await asyncio.sleep(0)
            offset = next_offset(data) or end
            await asyncio.sleep(0)


def _records(data: bytes, position: int) -> list[Record]:
    try:
        return read_batch(data, position, check_crcs=False)
    except CorruptBatch as error:
        raise CorruptMessageError(str(error)) from error
