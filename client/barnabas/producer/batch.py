"""One batch of one partition on its way: filled, closed, sent (perhaps often), then done.

A batch is done exactly once, with its base offset or its error; all its records' handles and
callbacks get their outcome from it. A batch that is too large for the broker is split: its
records then live in two new batches, and handles find them through `locate`.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.errors import BarnabasError
from barnabas.producer.handle import DeliveryHandle, OnDelivery, RecordMetadata
from barnabas.record.builder import BatchBuilder
from barnabas.record.reader import read_batch
from barnabas.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class _Callback(NamedTuple):
    place: int
    timestamp: int
    function: OnDelivery


class ProducerBatch:
    """`append` and `size` belong to the accumulator while the batch is open.

    `offsets` is how many offsets the batch takes up in the log; `reserved` how many bytes of the
    producer's buffer it holds; `lingered` that its linger time is over; `solo` that it must travel
    alone; `observed` that somebody was told of its error.
    """

    __slots__ = (
        "_builder",
        "_callbacks",
        "_parts",
        "_waiters",
        "append",
        "attempts",
        "base_offset",
        "compression",
        "count",
        "created",
        "done",
        "error",
        "last_failure",
        "lingered",
        "log_append_time",
        "observed",
        "offsets",
        "payload",
        "prebuilt",
        "reserved",
        "size",
        "solo",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition, compression: str, created: float) -> None:
        self.topic_partition = topic_partition
        self.compression = compression
        self.created = created
        self._builder: BatchBuilder | None = BatchBuilder(compression)
        self.append: Callable[..., int] = self._builder.append
        self.size = 0
        self.count = 0
        self.offsets = 0
        self.payload: bytes | None = None
        self.prebuilt = False
        self.reserved = 0
        self.lingered = False
        self.solo = False
        self.attempts = 0
        self.last_failure: BarnabasError | None = None
        self.done = False
        self.base_offset = -1
        self.log_append_time = -1
        self.error: BarnabasError | None = None
        self.observed = False
        self._waiters: list[asyncio.Future[None]] = []
        self._callbacks: list[_Callback] = []
        self._parts: Sequence[tuple[int, ProducerBatch]] = ()

    @classmethod
    def of_payload(
        cls,
        topic_partition: TopicPartition,
        payload: bytes,
        count: int,
        offsets: int,
        created: float,
    ) -> "ProducerBatch":
        """Record batches built by the caller: sent as they are, never split."""
        batch = cls(topic_partition, "none", created)
        batch._builder = None
        batch.payload = payload
        batch.size = len(payload)
        batch.count = count
        batch.offsets = offsets
        batch.prebuilt = True
        return batch

    def handle(self, timestamp: int, on_delivery: OnDelivery | None) -> DeliveryHandle:
        """The handle of the record just appended."""
        index = self.count
        self.count = index + 1
        if on_delivery is not None:
            self._callbacks.append(_Callback(index, timestamp, on_delivery))
        return DeliveryHandle(self, index, timestamp)

    def build(self) -> bytes:
        """Close the batch, once, and return its bytes."""
        if self.payload is None:
            assert self._builder is not None
            self.payload = self._builder.build()
            self.offsets = self.count
            self._builder = None
            del self.append
        return self.payload

    def complete(self, base_offset: int, log_append_time: int) -> None:
        """Delivered: every handle gets its offset."""
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self._finish()

    def fail(self, error: BarnabasError) -> None:
        """Given up: every handle gets the error."""
        self.error = error
        self.observed = bool(self._callbacks)
        self._finish()

    def split(self) -> "list[ProducerBatch]":
        """Two batches with half the records each, in order, in place of this one."""
        records = list(read_batch(self.build()))
        middle = len(records) // 2
        parts = []
        for first, some in ((0, records[:middle]), (middle, records[middle:])):
            part = ProducerBatch(self.topic_partition, self.compression, self.created)
            for record in some:
                part.size = part.append(record.timestamp, record.key, record.value, record.headers)
            part.count = len(some)
            part.last_failure = self.last_failure
            part._callbacks = [
                callback._replace(place=callback.place - first)
                for callback in self._callbacks
                if first <= callback.place < first + len(some)
            ]
            parts.append((first, part))
        # Together the parts hold what their parent held.
        parts[0][1].reserved, self.reserved = self.reserved, 0
        self._parts = parts
        self._callbacks = []
        self.payload = None
        self._wake()
        return [part for _, part in parts]

    def locate(self, index: int) -> "tuple[ProducerBatch, int]":
        """The batch a record is in now, after any splits, and its place there."""
        batch = self
        while batch._parts:
            first, part = next(p for p in reversed(batch._parts) if p[0] <= index)
            batch, index = part, index - first
        return batch, index

    async def settled(self, index: int) -> None:
        """Wait until the record is delivered or given up."""
        batch, _ = self.locate(index)
        while not batch.done:
            await batch._changed()
            batch, _ = self.locate(index)

    async def all_settled(self) -> None:
        """Wait until every record is delivered or given up."""
        while not self.done and not self._parts:
            await self._changed()
        for _, part in self._parts:
            await part.all_settled()

    async def _changed(self) -> None:
        # One future a waiter: cancelling one must not cancel the others.
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def metadata_of(self, index: int, timestamp: int) -> RecordMetadata:
        """Where a record of this delivered batch is stored."""
        topic, partition = self.topic_partition
        offset = self.base_offset + index if self.base_offset >= 0 else -1
        stamp = self.log_append_time if self.log_append_time >= 0 else timestamp
        return RecordMetadata(topic, partition, offset, stamp)

    def _finish(self) -> None:
        self.done = True
        self.payload = None
        self._wake()
        callbacks, self._callbacks = self._callbacks, []
        for index, timestamp, function in callbacks:
            try:
                if self.error is None:
                    function(self.metadata_of(index, timestamp), None)
                else:
                    function(None, self.error)
            except Exception:
                logger.exception("on_delivery of a record of %s failed", self.topic_partition)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
