"""The partitions of an internal topic as a coordinator uses them: read from start to end, appended.

An append is a few keys and values. It counts once it is committed, so that no later leader can be
without it; until then the coordinator keeps what it writes to itself.

Many members commit at the same time. What comes while a batch is on its way to the followers waits
for it, but not for long, and shares the next batch.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas_common.errors import CorruptMessageError, KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProducedPartition, ProducePartition, ProduceRequest
from barnabas_common.record.batch import BatchHeader, CorruptBatch, batches, next_offset
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.compression import Compression
from barnabas_common.record.reader import Record, read_batch
from barnabas_common.record.transactional import transactional_batch
from barnabas_common.runtime import Clock, TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.append_origin import AppendOrigin
from barnabas_broker.replica.leader.leadership import ACKS_ALL
from barnabas_broker.replica.replica_manager import ReplicaManager

# Other requests get their turn after so many records of a load.
_RECORDS_BETWEEN_PAUSES = 500

# Appends share a batch up to this size, far below any sensible `max.message.bytes`.
_SHARED_BATCH_BYTES = 16_384
_RECORD_OVERHEAD = 30
_LONGEST_WAIT_SECONDS = 0.01


class KeyValue(NamedTuple):
    """A record to append; a value of None is a tombstone."""

    key: bytes
    value: bytes | None


class InTransaction(NamedTuple):
    """The transaction that an append is a part of."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class Written(NamedTuple):
    """The offset of the first record, and what became of the append."""

    base_offset: int
    error: ErrorCode


_REFUSED = Written(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)


@dataclass(slots=True)
class _Append:
    """`alone`, if it is given, writes the records in a batch of their own."""

    leader_epoch: int
    records: Sequence[KeyValue]
    written: asyncio.Future[Written]
    alone: Callable[[], Awaitable[ProducedPartition]] | None = None

    @property
    def size(self) -> int:
        return sum(
            len(record.key) + len(record.value or b"") + _RECORD_OVERHEAD for record in self.records
        )

    def answer(self, written: Written) -> None:
        if not self.written.done():
            self.written.set_result(written)


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
        self._waiting: dict[TopicPartition, list[_Append]] = {}
        self._in_flight: dict[TopicPartition, int] = {}
        self._tasks = TaskScope("coordinator's appends")

    async def close(self) -> None:
        """Fail what is not committed yet."""
        await self._tasks.close()

    def append(
        self, key: TopicPartition, leader_epoch: int, records: Sequence[KeyValue]
    ) -> Awaitable[Written]:
        """Append the records; returns when they are committed or have failed.

        Their place in the log is after everything that was appended before this call, and before
        everything that is appended after it, whenever the caller awaits the outcome.

        They are refused if this broker does not lead under `leader_epoch` any more when they are
        written: what the coordinator decided by is then out of date.
        """
        loop = asyncio.get_running_loop()
        append = _Append(leader_epoch, records, loop.create_future())
        waiting = self._enqueue(key, append)
        if len(waiting) == 1:
            pause = _LONGEST_WAIT_SECONDS if key in self._in_flight else 0.0
            loop.call_later(pause, self._start, key, waiting)
        return append.written

    def _enqueue(self, key: TopicPartition, append: _Append) -> list[_Append]:
        waiting = self._waiting.setdefault(key, [])
        waiting.append(append)
        return waiting

    async def append_in_transaction(
        self,
        key: TopicPartition,
        leader_epoch: int,
        transaction: InTransaction,
        records: Sequence[KeyValue],
        refusal: Callable[[], ErrorCode],
    ) -> Written:
        """Append the records in a batch of their own, as a part of the producer's transaction.

        The coordinator of the transaction is asked first. `refusal` then says whether they may
        still be written; nothing comes between its answer and the append. What was appended before
        that, and waits to share a batch, is before them in the log.
        """
        transactional_id, producer_id, producer_epoch = transaction
        now_ms = self._clock.wall_ms()
        batch = transactional_batch(producer_id, producer_epoch, now_ms, records)
        item = ProducePartition(key.topic, key.partition, bytes(batch))
        request = ProduceRequest(ACKS_ALL, self._timeout_ms, [item], transactional_id)
        verified = await self._produces.verification.verify(request)

        async def write() -> ProducedPartition:
            if error := refusal():
                return ProducedPartition(*key, error)
            response = await self._produces.produce(request, AppendOrigin.COORDINATOR, verified)
            assert response is not None
            return response.partitions[0]

        written: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        waiting = self._enqueue(key, _Append(leader_epoch, records, written, write))
        self._start(key, waiting)
        return await written

    def _start(self, key: TopicPartition, appends: list[_Append]) -> None:
        """Write what has come, unless that has happened; batches are appended in their order."""
        if self._waiting.get(key) is not appends:
            return
        del self._waiting[key]
        for batch in _in_batches(appends):
            self._spawn(key, batch)

    def _spawn(self, key: TopicPartition, batch: Sequence[_Append]) -> None:
        try:
            task = self._tasks.spawn(self._write(key, batch), f"append to {key}")
        except RuntimeError:  # the broker stops
            _refuse(batch)
            return
        self._in_flight[key] = self._in_flight.get(key, 0) + 1
        # However it ends, be it before it began, each append has an answer.
        task.add_done_callback(lambda _: self._ended(key, batch))

    def _leads(self, key: TopicPartition, append: _Append) -> bool:
        try:
            self._reads.log_range(key, append.leader_epoch)
        except KafkaError:
            append.answer(_REFUSED)
            return False
        return True

    async def _write(self, key: TopicPartition, appends: Sequence[_Append]) -> None:
        """Write one batch; nothing comes between the check of the epoch and the append."""
        current = [append for append in appends if self._leads(key, append)]
        if not current:
            return
        alone = current[0].alone
        result = await (self._produce(key, current) if alone is None else alone())
        first = result.base_offset
        for append in current:
            append.answer(Written(first, ErrorCode(result.error_code)))
            first += len(append.records)

    def _ended(self, key: TopicPartition, appends: Sequence[_Append]) -> None:
        _refuse(appends)
        self._in_flight[key] -= 1
        if not self._in_flight[key]:
            del self._in_flight[key]
            if key in self._waiting:
                self._start(key, self._waiting[key])

    async def _produce(self, key: TopicPartition, appends: Sequence[_Append]) -> ProducedPartition:
        now_ms = self._clock.wall_ms()
        builder = BatchBuilder(self._compression)
        for append in appends:
            for record in append.records:
                builder.append(now_ms, record.key, record.value)
        item = ProducePartition(key.topic, key.partition, builder.build())
        request = ProduceRequest(ACKS_ALL, self._timeout_ms, [item])
        response = await self._produces.produce(request, AppendOrigin.COORDINATOR)
        assert response is not None
        return response.partitions[0]

    def is_committed(self, key: TopicPartition, leader_epoch: int, end: int) -> bool:
        """Whether this broker leads under that epoch and everything below `end` is committed."""
        try:
            return self._reads.is_committed(key, leader_epoch, end)
        except KafkaError:
            return False

    async def load(
        self,
        key: TopicPartition,
        leader_epoch: int,
        take: Callable[[BatchHeader, Sequence[Record]], None],
        only_committed: bool = False,
    ) -> int:
        """Call `take` with every batch of the partition, in order, markers of transactions too.

        Waits until what was there at the beginning is committed; unless `only_committed`, not for
        replicas that are missing. Returns the end of the log. No other task runs between the last
        look at that end and the return.

        Raises:
            KafkaError: this broker no longer leads under that epoch, or its log cannot be read.
        """
        offset, end = self._reads.log_range(key, leader_epoch)
        await self._take(key, leader_epoch, offset, end, take)
        # If this leader died now, the next one might be without the last records: two generations
        # of a group would have one number.
        await self._reads.until_committed(key, leader_epoch, end, only_committed)
        # Coordinators of transactions do not wait for the load before they send their markers.
        while (offset := end) < (end := self._reads.log_range(key, leader_epoch).end):
            await self._take(key, leader_epoch, offset, end, take)
        return end

    async def _take(
        self,
        key: TopicPartition,
        leader_epoch: int,
        offset: int,
        end: int,
        take: Callable[[BatchHeader, Sequence[Record]], None],
    ) -> None:
        since_pause = 0
        while offset < end:
            data = self._reads.read(key, leader_epoch, offset, end, self._load_buffer_size)
            for position, header in batches(data):
                if header.record_count:
                    take(header, _records(data, position))
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


def _in_batches(appends: Sequence[_Append]) -> Iterator[list[_Append]]:
    """Neighbours together, up to a size; one that is larger is alone, and fails alone. So is the
    last one, if it belongs to a transaction."""
    batch: list[_Append] = []
    size = 0
    for append in appends:
        if batch and (append.alone or size + append.size > _SHARED_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(append)
        size += append.size
    if batch:
        yield batch


def _refuse(appends: Sequence[_Append]) -> None:
    """Refuse those that have no answer yet."""
    for append in appends:
        append.answer(_REFUSED)
