"""The producer: `send` appends to a batch and returns immediately; the sender does the rest.

    async with Producer("localhost:9092") as producer:
        handle = await producer.send("flights", b"value", key=b"UA")
        metadata = await handle

`send` is the hot path: no task, no future and no await per record unless the buffer is full. It
yields to the event loop whenever a batch is full, so that a tight loop of sends cannot starve the
sender.
"""

import asyncio
import warnings
from asyncio import get_running_loop
from collections.abc import Sequence
from dataclasses import replace
from operator import index
from types import TracebackType
from typing import Unpack

from barnabas_common.errors import (
    BarnabasError,
    BufferExhaustedError,
    ClosedError,
    InvalidArgumentError,
    KafkaError,
    MessageTooLargeError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.record.batch import HEADER_SIZE
from barnabas_common.record.murmur2 import partition_for_key
from barnabas_common.record.record import Headers
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster.options import (
    DEFAULT_BOOTSTRAP,
    check_callable,
    check_int,
    check_timeout,
    check_topic,
)
from barnabas.producer.batch import ProducerBatch, mistake_in
from barnabas.producer.buffer_pool import RECORD_OVERHEAD, headers_size
from barnabas.producer.config import ProducerConfig, ProducerOptions
from barnabas.producer.handle import DeliveryHandle, OnDelivery, RecordMetadata
from barnabas.producer.in_transactions import InTransactions
from barnabas.producer.metrics import ProducerMetrics
from barnabas.producer.partitioner import next_round_robin, sticky_partition
from barnabas.producer.prebuilt import measure, with_producer
from barnabas.producer.queues import PartitionQueue, TopicQueues
from barnabas.producer.record_accumulator import RecordAccumulator
from barnabas.producer.sender import Sender

# How long leaving `async with` by an exception waits for records in flight.
FLUSH_ON_ERROR_MS = 5_000


class Producer(InTransactions):
    """Sends records to topics; options are those of `ProducerConfig`, by keyword.

    A producer belongs to one event loop and starts with `async with`, `start()` or the first
    `send`.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] = DEFAULT_BOOTSTRAP,
        *,
        runtime: Runtime | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        super().__init__(ProducerConfig.of(options), bootstrap_servers, runtime)
        self._metrics = ProducerMetrics()
        self._accumulator = RecordAccumulator(self._config)
        self._topics = self._accumulator.topics
        # A batch larger than a request could hold would travel alone and over the limit.
        self._fill_limit = min(self._config.batch_size, self._config.max_request_size)

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close(None if error is None else FLUSH_ON_ERROR_MS)

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
        on_delivery: OnDelivery | None = None,
    ) -> DeliveryHandle:
        """Append a record to a batch of its partition and return the handle of its delivery.

        Waits, up to `max_block_ms`, only for the topic's metadata and for buffer space. If no
        `partition` is given, the key selects it, or the partitioner if there is no key either.
        `timestamp_ms` defaults to now. `on_delivery(metadata, error)` is called on the event loop;
        one of the two is None.

        Raises `InvalidArgumentError`, `MessageTooLargeError` (over `max_request_size`),
        `UnknownTopicOrPartitionError`, `BufferExhaustedError`, `ClosedError`. Later errors are in
        the handle. Without an open transaction, a producer with a transactional id raises
        `ClientError`.
        """
        if get_running_loop() is not self._loop:
            await self._ensure_started()
        transaction = None if self.transactions is None else self.transactions.check_send()
        try:
            timestamp_ms = self._wall_ms() if timestamp_ms is None else index(timestamp_ms)
            if on_delivery is not None:
                check_callable("on_delivery", on_delivery)
            needed = RECORD_OVERHEAD
            if value is not None:
                needed += len(value)
            if key is not None:
                needed += len(key)
            if headers:
                headers = list(headers)
                needed += headers_size(headers)
            queues = self._topics.get(topic)
            if queues is None or (partition is not None and partition >= queues.count):
                queues = await self._load_topic(topic, partition or 0)
                self._check_open(transaction)
            free = key is None and partition is None
            queue = (queues.sticky if free else None) or self._choose(queues, key, partition)
            batch = queue.open
            if batch is None or batch.size + needed > self._fill_limit:
                batch = await self._make_room(queues, queue, free, needed, transaction)
            return batch.append(timestamp_ms, key, value, headers, on_delivery)
        except (TypeError, AttributeError, ValueError, OverflowError) as error:
            self._discard_empty(topic)
            if isinstance(error, InvalidArgumentError):
                raise
            raise mistake_in(error, topic, value, key, partition, timestamp_ms, headers) from error
        except (KafkaError, BufferExhaustedError) as error:
            self._missing_in_transaction(error, transaction)
            raise

    async def send_and_wait(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> RecordMetadata:
        """`send`, and wait until the record is delivered; raises the error of either."""
        return await (await self.send(topic, value, key, partition, timestamp_ms, headers))

    async def send_batch(self, topic: str, partition: int, batch: bytes) -> DeliveryHandle:
        """Send record batches (v2) built elsewhere, one or several back to back, atomically.

        The broker assigns their base offsets. The handle is that of the first record. Raises as
        `send`, and `CorruptMessageError` if the bytes are not whole batches with valid checksums.
        """
        if not isinstance(batch, bytes | bytearray | memoryview):
            raise InvalidArgumentError(f"batch must be bytes, not {type(batch).__name__}")
        batch = bytes(batch)  # its owner may change it before it is sent
        if get_running_loop() is not self._loop:
            await self._ensure_started()
        check_topic(topic)
        check_int("partition", partition, 0)
        transaction = None if self.transactions is None else self.transactions.check_send()
        try:
            measured = measure(batch)
            self._check_size(len(batch), f"{len(batch)} bytes of batches are")
            queues = self._topics.get(topic)
            if queues is None or partition >= queues.count:
                queues = await self._load_topic(topic, partition)
            queue = self._choose(queues, None, partition)
            await self._allocate(len(batch), transaction)
        except (KafkaError, BufferExhaustedError) as error:
            self._missing_in_transaction(error, transaction)
            raise
        if measured.names_producer:  # of the log that the batches were read from
            batch = with_producer(batch, -1, -1, -1)
        tp, now = queue.topic_partition, self._runtime.clock.monotonic()
        prebuilt = ProducerBatch.of_payload(tp, batch, measured, now)
        self._accumulator.enqueue(queue, prebuilt)
        await asyncio.sleep(0)
        return DeliveryHandle(prebuilt.result, 0, measured.max_timestamp)

    async def flush(self) -> None:
        """Send everything now and wait until every record is delivered or given up.

        Raises nothing for records that were given up: their handles carry the error.
        """
        self._check_home()
        await self._accumulator.flush()

    async def close(self, timeout_ms: int | None = None) -> None:
        """Flush, then stop. Records not delivered within `timeout_ms` fail with `ClosedError`.

        A transaction that is open is aborted.
        """
        check_timeout("timeout_ms", timeout_ms)
        if not self._end():
            return
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                if self.transactions is not None:
                    await self.transactions.abort_if_open()
                await self.flush()
        except TimeoutError:
            pass
        finally:
            self._sender.completion.abandon("the producer was closed")
            try:
                await self._sender.close()
            finally:
                await self._cluster.close()

    def metrics(self) -> ProducerMetrics:
        """A copy of the counters, as of now."""
        return replace(self._metrics, buffer_available_bytes=self._accumulator.pool.available)

    @property
    def undelivered(self) -> int:
        """How many records were sent, and neither delivered nor given up."""
        return sum(batch.count for batch in self._accumulator.incomplete)

    @property
    def undelivered_partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions of those records, the one with the oldest first."""
        batches = self._accumulator.incomplete
        return tuple(dict.fromkeys(batch.topic_partition for batch in batches))

    def take_unobserved_errors(self) -> list[BarnabasError]:
        """Errors of records that were given up and went unseen; each is returned once.

        A batch counts as observed when any of its handles was asked, awaited, or had a callback.
        """
        if not hasattr(self, "_sender"):
            return []
        unobserved = self._sender.completion.unobserved
        errors = [found.error for found in unobserved if found.error and not found.observed]
        unobserved.clear()
        return errors

    async def partitions_for(self, topic: str) -> int:
        """How many partitions the topic has."""
        await self._ensure_started()
        check_topic(topic)
        return (self._topics.get(topic) or await self._load_topic(topic)).count

    async def _open(self) -> None:
        self._wall_ms = self._runtime.clock.wall_ms
        self._sender = Sender(
            self._config, self._runtime.clock, self._cluster, self._accumulator, self._metrics
        )
        self._cluster.on_update(self._on_metadata)
        self._sender.start()
        self.transactions = self._sender.transactions

    def _choose(
        self, queues: TopicQueues, key: bytes | None, partition: int | None
    ) -> PartitionQueue:
        if partition is not None:
            if 0 <= partition < queues.count:
                return queues.queues[partition]
            raise UnknownTopicOrPartitionError(
                f"topic {queues.topic!r} has no partition {partition}, "
                f"it has {queues.count} from 0 on"
            )
        if key is not None:
            return queues.queues[partition_for_key(key, queues.count)]
        return self._free_choice(queues)

    def _free_choice(self, queues: TopicQueues) -> PartitionQueue:
        """The next partition for records without a key."""
        has_leader = queues.has_leader[: queues.count]
        if self._config.partitioner == "round-robin":
            queues.last_partition = next_round_robin(queues.last_partition, has_leader)
            return queues.queues[queues.last_partition]
        lengths = [queue.unsent for queue in queues.queues[: queues.count]]
        chance = self._runtime.randomness.random()
        queues.sticky = queues.queues[sticky_partition(lengths, has_leader, chance)]
        return queues.sticky

    async def _make_room(
        self,
        queues: TopicQueues,
        queue: PartitionQueue,
        free: bool,
        needed: int,
        transaction: int | None,
    ) -> ProducerBatch:
        """An open batch with room for `needed` bytes: of `queue`, or, if the record is `free` to go
        to any partition, of the queue the sticky partitioner has moved on to."""
        whole = needed + HEADER_SIZE
        self._check_size(whole, f"a record of up to {whole} bytes is")
        size = max(self._config.batch_size, needed) + HEADER_SIZE
        moving = free and self._config.partitioner == "sticky"
        while True:
            batch = queue.open
            if batch is not None and (not batch.count or batch.size + needed <= self._fill_limit):
                return batch
            if batch is not None:
                self._accumulator.close_open(queue)
                # A loop of sends that never waits must still let the sender run.
                await asyncio.sleep(0)
            await self._allocate(size, transaction)
            if moving:
                queue = queues.sticky or self._free_choice(queues)
            if queue.open is None:
                return self._accumulator.open_batch(queue, size, self._runtime.clock.monotonic())
            self._accumulator.pool.deallocate(size)

    async def _allocate(self, size: int, transaction: int | None) -> None:
        """Take memory for a batch. Raises `BufferExhaustedError`, and as `_check_open`."""
        await self._accumulator.pool.allocate(size, self._config.max_block_ms / 1000)
        try:
            self._check_open(transaction)
        except BarnabasError:
            self._accumulator.pool.deallocate(size)
            raise

    def _check_open(self, transaction: int | None) -> None:
        """Raise if the producer was closed while a record waited: nothing would settle its handle;
        or if the transaction of this number, which it is for, has ended."""
        if self._closed:
            raise ClosedError("the producer was closed while a record waited to be sent")
        if self.transactions is not None:
            self.transactions.check_send(transaction)

    def _discard_empty(self, topic: str) -> None:
        """Drop the batch that was opened for a record that could not be encoded."""
        queues = self._topics.get(topic) if isinstance(topic, str) else None
        for queue in queues.queues if queues is not None else ():
            self._accumulator.discard_empty(queue)

    def _check_size(self, size: int, what: str) -> None:
        config = self._config
        if size > min(config.max_request_size, config.buffer_memory):
            raise MessageTooLargeError(
                f"{what} over max_request_size ({config.max_request_size}) "
                f"or buffer_memory ({config.buffer_memory})"
            )

    async def _load_topic(self, topic: str, partition: int = 0) -> TopicQueues:
        """Ask about a topic, or about a partition that is not known: it may have grown."""
        info = await self._cluster.topic(topic, self._config.max_block_ms / 1000, partition + 1)
        queues = self._topics.get(topic)
        if queues is None:
            queues = self._topics[topic] = TopicQueues(topic, info.partition_count)
            self._on_metadata()
        return queues

    def _on_metadata(self) -> None:
        """Follow the number of partitions, and note which of them have a leader."""
        metadata = self._cluster.metadata
        for topic, queues in self._topics.items():
            info = metadata.topics.get(topic)
            if info is None:
                continue
            if info.partition_count != queues.count:
                queues.resize(info.partition_count)
            for queue in queues.queues:
                leader = metadata.leader(queue.topic_partition)
                queues.has_leader[queue.topic_partition.partition] = leader is not None

    def __del__(self) -> None:
        accumulator = getattr(self, "_accumulator", None)
        if accumulator is None or not accumulator.incomplete:
            return
        count = self.undelivered
        warnings.warn(
            f"a Producer was dropped with {count} records not delivered: "
            "use `async with`, or await close()",
            ResourceWarning,
            source=self,
            stacklevel=2,
        )
