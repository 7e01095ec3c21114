"""Records on their way out, by partition: one batch open for more, closed ones in order behind it.

`Producer.send` fills, the sender drains. A queue becomes ready when it has a closed batch, or an
open one that need not linger any more; the accumulator then tells the sender, once.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from barnabas.producer.batch import ProducerBatch
from barnabas.producer.buffer_pool import BufferPool
from barnabas.producer.config import ProducerConfig
from barnabas.topic_partition import TopicPartition


class PartitionQueue:
    """The unsent batches of one partition. While `in_flight` nothing more of it is sent, which is
    what keeps the order through retries.

    `not_before` (monotonic seconds) and `failed_epoch` hold a retry back: until that time, unless
    a leader with a newer epoch turns up earlier.
    """

    __slots__ = ("closed", "failed_epoch", "failures", "in_flight", "not_before", "open", "topic",
                 "topic_partition")  # fmt: skip

    def __init__(self, topic: "TopicQueues", topic_partition: TopicPartition) -> None:
        self.topic = topic
        self.topic_partition = topic_partition
        self.open: ProducerBatch | None = None
        self.closed: deque[ProducerBatch] = deque()
        self.in_flight = False
        self.failures = 0
        self.not_before = 0.0
        self.failed_epoch = -1

    @property
    def unsent(self) -> int:
        """How many batches wait."""
        return len(self.closed) + (self.open is not None)


class TopicQueues:
    """The queues of one topic, and where records without a key go at the moment."""

    def __init__(self, topic: str, partition_count: int) -> None:
        self.topic = topic
        self.queues: list[PartitionQueue] = []
        self.sticky: PartitionQueue | None = None
        self.sticky_bytes = 0
        self.last_partition = -1
        self.has_leader: list[bool] = []
        self.grow(partition_count)

    def given(self, queue: PartitionQueue, size: int, batch_size: int) -> None:
        """A batch was closed: after `batch_size` bytes the sticky partition is changed."""
        if self.sticky is queue:
            self.sticky_bytes += size
            if self.sticky_bytes >= batch_size:
                self.sticky = None
                self.sticky_bytes = 0

    def grow(self, partition_count: int) -> None:
        """There are more partitions now: keys spread over all of them."""
        for number in range(len(self.queues), partition_count):
            self.queues.append(PartitionQueue(self, TopicPartition(self.topic, number)))
            self.has_leader.append(True)


class Accumulator:
    """All queues, and the memory they share.

    `on_ready(queue)` is set by the sender. `incomplete` has every batch that is not done, in the
    order they were opened.
    """

    def __init__(self, config: ProducerConfig) -> None:
        self.config = config
        self.pool = BufferPool(config.buffer_memory)
        self.pool.on_contended = self.hurry
        self.topics: dict[str, TopicQueues] = {}
        self.incomplete: dict[ProducerBatch, None] = {}
        self.on_ready: Callable[[PartitionQueue], None] = lambda queue: None
        self.flushes = 0

    def open_batch(self, queue: PartitionQueue, reserved: int, now: float) -> ProducerBatch:
        """A new batch to fill; `reserved` bytes were taken from the pool for it."""
        batch = ProducerBatch(queue.topic_partition, self.config.compression_type, now)
        batch.reserved = reserved
        queue.open = batch
        self.incomplete[batch] = None
        if self.config.linger_ms == 0 or self.hurried:
            self.on_ready(queue)
        else:
            linger = self.config.linger_ms / 1000
            asyncio.get_running_loop().call_later(linger, self._linger_over, queue, batch)
        return batch

    def discard_empty(self, queue: PartitionQueue) -> None:
        """Forget an open batch that got no record."""
        batch = queue.open
        if batch is not None and batch.count == 0:
            queue.open = None
            self.release(batch)

    def enqueue(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """A batch that needs no filling, behind all that was sent before it."""
        self.close_open(queue)
        queue.closed.append(batch)
        self.incomplete[batch] = None
        self.on_ready(queue)

    def close_open(self, queue: PartitionQueue) -> None:
        """The open batch is full: it takes no more records."""
        batch = queue.open
        if batch is None:
            return
        queue.open = None
        queue.closed.append(batch)
        payload = batch.build()
        # What was reserved for records that did not come, or was compressed away.
        unused = batch.reserved - len(payload)
        if unused > 0:
            batch.reserved -= unused
            self.pool.give_back(unused)
        queue.topic.given(queue, batch.size, self.config.batch_size)
        self.on_ready(queue)

    @property
    def hurried(self) -> bool:
        """No lingering now: somebody flushes, or waits for memory."""
        return self.flushes > 0 or self.pool.contended

    def due(self, queue: PartitionQueue) -> bool:
        """Whether the queue has something to send."""
        return bool(queue.closed) or self._open_is_due(queue)

    def take(self, queue: PartitionQueue, room: int, first: bool) -> list[ProducerBatch]:
        """Take the oldest batches of a queue that fit into `room` bytes together, in order.

        The `first` of a request is taken even if it is larger, or it would never leave. Several
        batches of a partition travel in one request all or nothing; one that must travel alone
        (the broker refused it in company) does.
        """
        if queue.open is not None and queue.open.count and self._open_is_due(queue):
            self.close_open(queue)
        taken: list[ProducerBatch] = []
        while queue.closed:
            batch = queue.closed[0]
            if batch.done:
                queue.closed.popleft()
                continue
            size = len(batch.build())
            alone = first and not taken
            if (size > room and not alone) or (taken and batch.solo):
                break
            taken.append(queue.closed.popleft())
            room -= size
            if batch.solo:
                break
        return taken

    def put_back(self, queue: PartitionQueue, batches: Sequence[ProducerBatch]) -> None:
        """Batches to send again, before everything else of the partition."""
        queue.closed.extendleft(reversed([batch for batch in batches if not batch.done]))

    def release(self, batch: ProducerBatch) -> None:
        """A batch is done: its memory is free."""
        if self.incomplete.pop(batch, True) is None:
            self.pool.give_back(batch.reserved)

    def hurry(self) -> None:
        """Offer every queue that has records to the sender now."""
        for topic in self.topics.values():
            for queue in topic.queues:
                if queue.closed or queue.open is not None:
                    self.on_ready(queue)

    def replace(self, batch: ProducerBatch, parts: Sequence[ProducerBatch]) -> None:
        """A batch was split: its parts are in its place."""
        self.incomplete.pop(batch, None)
        self.incomplete.update(dict.fromkeys(parts))

    def _open_is_due(self, queue: PartitionQueue) -> bool:
        batch = queue.open
        if batch is None:
            return False
        return self.config.linger_ms == 0 or batch.lingered or self.hurried

    def _linger_over(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        batch.lingered = True
        if queue.open is batch:
            self.on_ready(queue)
