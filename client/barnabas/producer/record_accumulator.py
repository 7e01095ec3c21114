"""The records that wait to be sent, by partition: one open batch, and closed ones in order.

`Producer.send` fills the queues, the sender drains them. A queue is ready when it has a closed
batch, or an open one that need not linger any more; the accumulator then offers it to the sender.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from barnabas_common.topic_partition import TopicPartition

from barnabas.producer.batch import ProducerBatch
from barnabas.producer.buffer_pool import BufferPool
from barnabas.producer.config import ProducerConfig


class PartitionQueue:
    """The unsent batches of one partition.

    While `in_flight`, none of its batches is put into another request, which keeps the order
    through retries. A retry waits until `not_before` (monotonic seconds), or for a leader with an
    epoch above `failed_epoch`.
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
    """The queues of one topic, and the present partition for records without a key.

    `queues` and `has_leader` have an entry for every partition there ever was, `count` is how many
    there are now: fewer once the topic was deleted and created again with fewer.
    """

    def __init__(self, topic: str, partition_count: int) -> None:
        self.topic = topic
        self.queues: list[PartitionQueue] = []
        self.sticky: PartitionQueue | None = None
        self.sticky_bytes = 0
        self.last_partition = -1
        self.has_leader: list[bool] = []
        self.count = 0
        self.resize(partition_count)

    def given(self, queue: PartitionQueue, size: int, batch_size: int) -> None:
        """Count a closed batch: after `batch_size` bytes the sticky partition changes."""
        if self.sticky is queue:
            self.sticky_bytes += size
            if self.sticky_bytes >= batch_size:
                self.sticky = None
                self.sticky_bytes = 0

    def resize(self, partition_count: int) -> None:
        """Spread keys over this many partitions; new ones get queues."""
        self.count = partition_count
        if self.sticky is not None and self.sticky.topic_partition.partition >= partition_count:
            self.sticky = None
            self.sticky_bytes = 0
        for number in range(len(self.queues), partition_count):
            self.queues.append(PartitionQueue(self, TopicPartition(self.topic, number)))
            self.has_leader.append(True)


class RecordAccumulator:
    """All queues, and the memory they share.

    The sender sets `on_ready(queue)`. `incomplete` has every batch that is not done, in the order
    they were opened.
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
        """A new batch to fill, for which `reserved` bytes were taken from the pool."""
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
        """Drop an open batch that got no record."""
        batch = queue.open
        if batch is not None and batch.count == 0:
            queue.open = None
            self.deallocate(batch)

    def enqueue(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Add a batch that was built elsewhere, behind everything sent before it."""
        self.close_open(queue)
        queue.closed.append(batch)
        self.incomplete[batch] = None
        self.on_ready(queue)

    def close_open(self, queue: PartitionQueue) -> None:
        """Close the open batch, if there is one: it takes no more records."""
        batch = queue.open
        if batch is None:
            return
        queue.open = None
        queue.closed.append(batch)
        batch.close()
        # Return the memory for records that did not come, and the memory that compression saved.
        unused = batch.reserved - len(batch.payload)
        if unused > 0:
            batch.reserved -= unused
            self.pool.deallocate(unused)
        queue.topic.given(queue, batch.size, self.config.batch_size)
        self.on_ready(queue)

    @property
    def hurried(self) -> bool:
        """Whether batches must not linger: a flush is in progress, or memory is short."""
        return self.flushes > 0 or self.pool.contended

    def ready(self, queue: PartitionQueue) -> bool:
        """Whether the queue has something to send."""
        return bool(queue.closed) or self._open_is_due(queue)

    def drain(self, queue: PartitionQueue, room: int, first: bool) -> list[ProducerBatch]:
        """Take the oldest batches of a queue that fit into `room` bytes together, in order.

        If the partition is the `first` of a request, its oldest batch is taken even if it is
        larger: it would otherwise never be sent. The broker appends all batches of a partition in a
        request or none, so a batch marked `solo`, which was refused together with others, is taken
        alone.
        """
        if queue.open is not None and queue.open.count and self._open_is_due(queue):
            self.close_open(queue)
        taken: list[ProducerBatch] = []
        while queue.closed:
            batch = queue.closed[0]
            if batch.done:
                queue.closed.popleft()
                continue
            size = len(batch.payload)
            alone = first and not taken
            if (size > room and not alone) or (taken and batch.solo):
                break
            taken.append(queue.closed.popleft())
            batch.sent()
            room -= size
            if batch.solo:
                break
        return taken

    def reenqueue(self, queue: PartitionQueue, batches: Sequence[ProducerBatch]) -> None:
        """Queue batches that were in flight again, before everything else of the partition."""
        for batch in batches:
            batch.reenqueued()
        queue.closed.extendleft(reversed(batches))

    def split(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Queue two batches with half the records each in place of `batch`."""
        parts = batch.split()
        self.incomplete.pop(batch, None)
        self.incomplete.update(dict.fromkeys(parts))
        queue.closed.extendleft(reversed(parts))

    def deallocate(self, batch: ProducerBatch) -> None:
        """Return the memory of a batch that is done."""
        if self.incomplete.pop(batch, True) is None:
            self.pool.deallocate(batch.reserved)

    def withdraw(self, batch: ProducerBatch) -> None:
        """Release a batch that is given up; no record may join it any more."""
        topic, partition = batch.topic_partition
        queue = self.topics[topic].queues[partition]
        if queue.open is batch:
            queue.open = None
        self.deallocate(batch)

    def hurry(self) -> None:
        """Offer every queue that has records to the sender now."""
        for topic in self.topics.values():
            for queue in topic.queues:
                if queue.closed or queue.open is not None:
                    self.on_ready(queue)

    def _open_is_due(self, queue: PartitionQueue) -> bool:
        batch = queue.open
        if batch is None:
            return False
        return self.config.linger_ms == 0 or batch.lingered or self.hurried

    def _linger_over(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        batch.lingered = True
        if queue.open is batch:
            self.on_ready(queue)
