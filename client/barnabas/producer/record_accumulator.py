"""The records that wait to be sent, by partition: one open batch, and closed ones in order.

`Producer.send` fills the queues, the sender drains them. A queue is ready when it has a closed
batch, or an open one that need not linger any more; the accumulator then offers it to the sender.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice

from barnabas_common.topic_partition import TopicPartition

from barnabas.producer.batch import BatchState, ProducerBatch
from barnabas.producer.buffer_pool import BufferPool
from barnabas.producer.config import ProducerConfig
from barnabas.producer.producer_id import ProducerIds
from barnabas.producer.queues import PartitionQueue, TopicQueues
from barnabas.producer.sequences import UNLIMITED


class RecordAccumulator:
    """All queues, and the memory they share.

    The sender sets `on_ready(queue)`, `on_batch(topic_partition)`, which is called before a queue
    gets a batch, and `ids` if the producer is idempotent. `incomplete` has every batch that is not
    done, in the order they were opened.
    """

    def __init__(self, config: ProducerConfig) -> None:
        self.config = config
        self.pool = BufferPool(config.buffer_memory)
        self.pool.on_contended = self.hurry
        self.topics: dict[str, TopicQueues] = {}
        self.incomplete: dict[ProducerBatch, None] = {}
        self.on_ready: Callable[[PartitionQueue], object] = lambda queue: None
        self.on_batch: Callable[[TopicPartition], None] = lambda topic_partition: None
        self.ids: ProducerIds | None = None
        self.flushes = 0

    def open_batch(self, queue: PartitionQueue, reserved: int, now: float) -> ProducerBatch:
        """A new batch to fill, for which `reserved` bytes were taken from the pool."""
        self.on_batch(queue.topic_partition)
        batch = ProducerBatch(queue.topic_partition, self.config.compression_type, now)
        batch.transactional = self.config.transactional_id is not None
        batch.reserved = reserved
        queue.open = batch
        self.incomplete[batch] = None
        if self.config.linger_ms == 0 or self.hurried:
            self.on_ready(queue)
        else:
            linger = self.config.linger_ms / 1000
            loop = asyncio.get_running_loop()
            batch.timer = loop.call_later(linger, self._linger_over, queue, batch)
        return batch

    def discard_empty(self, queue: PartitionQueue) -> None:
        """Drop an open batch that got no record."""
        batch = queue.open
        if batch is not None and batch.count == 0:
            queue.open = None
            self.deallocate(batch)

    def enqueue(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Add a batch that was built elsewhere, behind everything sent before it."""
        self.on_batch(queue.topic_partition)
        batch.transactional = self.config.transactional_id is not None
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

    def has_records(self, queue: PartitionQueue) -> bool:
        """Whether the queue has something to send, now or after an answer."""
        return bool(queue.closed) or self._open_is_due(queue)

    def ready(self, queue: PartitionQueue) -> bool:
        """Whether the queue has something that may be sent now."""
        if queue.closed and queue.closed[0].producer is not None:
            return queue.sequences.admits_retry(queue.closed[0])
        if queue.closed:
            admitted = self._admitted(queue)
            return admitted > 0 and (queue.requests == 0 or self._worth_it(queue, admitted))
        # While an answer is awaited, a batch that is not full takes more records.
        return queue.requests == 0 and self._open_is_due(queue)

    def drain(self, queue: PartitionQueue, room: int, first: bool) -> list[ProducerBatch]:
        """Take the oldest batches of a `ready` queue that fit into `room` bytes together, in order.

        If the partition is the `first` of a request, they are taken even if one alone, or a retry,
        is larger: it would otherwise never be sent.
        """
        due = queue.open if queue.requests == 0 and self._open_is_due(queue) else None
        if due is not None and due.count:
            self.close_open(queue)
        current = None if self.ids is None else self.ids.current
        share = queue.retry() or queue.fresh(self._admitted(queue), room, first)
        if sum(len(batch.payload) for batch in share) > room and not first:
            return []
        queue.take(share, current)
        return share

    def _admitted(self, queue: PartitionQueue) -> int:
        """How many batches that were never sent may be sent now."""
        if self.ids is None:
            return 0 if queue.requests else UNLIMITED
        return queue.sequences.room(self.ids.current)

    def _worth_it(self, queue: PartitionQueue, count: int) -> bool:
        """Whether to send `count` batches before earlier ones are answered.

        Each request costs time. After the answer all that waits goes into one; so another is sent
        before only if much waits.
        """
        waiting = sum(len(batch.payload) for batch in islice(queue.closed, count))
        return waiting >= self.config.max_request_size // 2

    def reenqueue(self, queue: PartitionQueue, batches: Sequence[ProducerBatch]) -> None:
        """Queue batches that were in flight again, before everything else of the partition."""
        for batch in batches:
            batch.reenqueued()
        queue.put_in_front(batches)

    def split(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Queue two batches with half the records each in place of `batch`."""
        parts = batch.split()
        queue.sequences.split(batch, parts)
        self.incomplete.pop(batch, None)
        self.incomplete.update(dict.fromkeys(parts))
        queue.separate(parts)
        queue.put_in_front(parts)

    def deallocate(self, batch: ProducerBatch) -> None:
        """Return the memory of a batch that is done."""
        if self.incomplete.pop(batch, True) is None:
            self.pool.deallocate(batch.reserved)

    def withdraw(self, batch: ProducerBatch) -> PartitionQueue:
        """Release a batch that is given up; no record may join it any more. Returns its queue."""
        topic, partition = batch.topic_partition
        queue = self.topics[topic].queues[partition]
        if queue.open is batch:
            queue.open = None
        elif batch.state is BatchState.CLOSED:
            queue.closed.remove(batch)
        queue.sequences.given_up(batch)
        self.deallocate(batch)
        return queue

    def hurry(self) -> None:
        """Offer every queue that has records to the sender now."""
        for topic in self.topics.values():
            for queue in topic.queues:
                if queue.closed or queue.open is not None:
                    self.on_ready(queue)

    async def flush(self) -> None:
        """Send everything now, and wait until every record is delivered or given up."""
        self.flushes += 1
        try:
            self.hurry()
            for batch in list(self.incomplete):
                await batch.result.all_settled()
        finally:
            self.flushes -= 1

    def _open_is_due(self, queue: PartitionQueue) -> bool:
        batch = queue.open
        if batch is None:
            return False
        return self.config.linger_ms == 0 or batch.lingered or self.hurried

    def _linger_over(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        batch.lingered = True
        if queue.open is batch:
            self.on_ready(queue)
