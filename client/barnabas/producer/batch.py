"""One batch of one partition: filled, closed, sent (possibly several times), then done.

A batch that is too large for the broker is split: two batches with half the records each replace
it.
"""

import asyncio
from enum import Enum

from barnabas_common.errors import BarnabasError, InvalidArgumentError
from barnabas_common.record.batch import stamp_producer
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.reader import read_batch
from barnabas_common.record.record import Headers
from barnabas_common.topic_partition import TopicPartition

from barnabas.producer.handle import BatchResult, DeliveryHandle, OnDelivery
from barnabas.producer.prebuilt import Measured, mark_transactional, with_producer
from barnabas.producer.producer_id import ProducerIdAndEpoch


class BatchState(Enum):
    """The states of a batch; `_NEXT` has the legal transitions."""

    OPEN = "takes records"
    CLOSED = "waits to be sent, for the first time or again"
    IN_FLIGHT = "is in a request that is not answered yet"
    SPLIT = "was too large, and two batches replace it"
    DONE = "was delivered or given up"


# A batch can expire, or its producer be closed, in every state that is not final.
_NEXT = {
    BatchState.OPEN: (BatchState.CLOSED, BatchState.DONE),
    BatchState.CLOSED: (BatchState.IN_FLIGHT, BatchState.DONE),
    BatchState.IN_FLIGHT: (BatchState.CLOSED, BatchState.SPLIT, BatchState.DONE),
    BatchState.SPLIT: (),
    BatchState.DONE: (),
}


class ProducerBatch:
    """`size` is in bytes before compression, `count` in records, `created` in monotonic seconds.

    Once the batch is closed, `payload` has its bytes, and `offsets` the number of offsets that they
    take up in the log. `reserved` is how many bytes of the producer's buffer the batch holds.
    `lingered` is set when its linger time is over, by `timer`, which holds the batch until it
    is closed. `solo` is set if it must be its partition's only batch in a request.
    `maybe_stored`: an attempt ended without an answer that says it was refused.

    An idempotent producer numbers the batch when it is first sent: `producer` is then in its
    header, with the sequence of its first record. `record_batches` is how many headers it has, one
    unless it was built elsewhere. `share` is the same for the batches that were in one request.
    `transactional`: the header says that the batch is part of a transaction.
    """

    __slots__ = ("_builder", "_compression", "attempts", "base_sequence", "count", "created",
                 "last_failure", "lingered", "maybe_stored", "offsets", "payload", "producer",
                 "record_batches", "reserved", "result", "share", "size", "solo", "state",
                 "timer", "topic_partition", "transactional")  # fmt: skip

    def __init__(self, topic_partition: TopicPartition, compression: str, created: float) -> None:
        self.topic_partition = topic_partition
        self.created = created
        self.state = BatchState.OPEN
        self.result = BatchResult(topic_partition)
        self.size = self.count = self.offsets = self.reserved = self.attempts = 0
        self.payload: bytes | bytearray = b""
        self.lingered = self.solo = self.maybe_stored = self.transactional = False
        self.producer: ProducerIdAndEpoch | None = None
        self.base_sequence = -1
        self.share = 0
        self.record_batches = 1
        self.timer: asyncio.TimerHandle | None = None
        self.last_failure: BarnabasError | None = None
        self._compression: str | None = compression
        self._builder = BatchBuilder(compression)

    @classmethod
    def of_payload(
        cls,
        topic_partition: TopicPartition,
        payload: bytes,
        measured: Measured,
        created: float,
    ) -> "ProducerBatch":
        """A closed batch of bytes that the caller built: their records are never split."""
        batch = cls(topic_partition, "none", created)
        batch._compression = None
        batch.payload = payload
        batch.size = batch.reserved = len(payload)
        batch.count = measured.records
        batch.offsets = measured.offsets
        batch.record_batches = measured.batches
        batch.state = BatchState.CLOSED
        return batch

    @property
    def done(self) -> bool:
        return self.state is BatchState.DONE

    @property
    def splittable(self) -> bool:
        """Whether the batch was built here and has several records."""
        return self.count > 1 and self._compression is not None

    def append(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        on_delivery: OnDelivery | None = None,
    ) -> DeliveryHandle:
        """Add a record to the open batch; raises as `BatchBuilder.append` does."""
        index = self.count
        self.size = self._builder.append(timestamp_ms, key, value, headers)
        self.count = index + 1
        if on_delivery is not None:
            self.result.on_delivery(index, timestamp_ms, on_delivery)
        return DeliveryHandle(self.result, index, timestamp_ms)

    def close(self) -> None:
        """Take no more records, and build the payload."""
        self._enter(BatchState.CLOSED)
        self.payload = self._builder.build_buffer()
        self.offsets = self.count
        del self._builder

    def number(self, producer: ProducerIdAndEpoch, base_sequence: int) -> None:
        """Write the producer and the sequence of the first record into the header."""
        self.producer = producer
        self.base_sequence = base_sequence
        if isinstance(self.payload, bytearray):  # built here, and no request refers to it
            if self.transactional:
                mark_transactional(self.payload, True)
            stamp_producer(self.payload, *producer, base_sequence)
        else:
            self.payload = with_producer(self.payload, *producer, base_sequence, self.transactional)

    def sent(self) -> None:
        """Count the attempt: the batch is part of a request now."""
        self._enter(BatchState.IN_FLIGHT)
        self.attempts += 1

    def reenqueued(self) -> None:
        """Wait to be sent again."""
        self._enter(BatchState.CLOSED)

    def complete(self, base_offset: int, log_append_time: int) -> None:
        """End as delivered."""
        self._enter(BatchState.DONE)
        self.result.complete(base_offset, log_append_time)

    def fail(self, error: BarnabasError) -> None:
        """End as given up."""
        self._enter(BatchState.DONE)
        self.result.fail(error)

    def split(self) -> "list[ProducerBatch]":
        """Two closed batches with half the records each, in order, that replace this one."""
        assert self._compression is not None
        self._enter(BatchState.SPLIT)
        records = list(read_batch(self.payload))
        middle = len(records) // 2
        parts = []
        for some in (records[:middle], records[middle:]):
            part = ProducerBatch(self.topic_partition, self._compression, self.created)
            for record in some:
                part.append(record.timestamp, record.key, record.value, record.headers)
            part.close()
            part.last_failure = self.last_failure
            part.transactional = self.transactional
            part.solo = True
            parts.append(part)
        # Together the parts hold as much of the buffer as this batch did.
        parts[0].reserved, self.reserved = self.reserved, 0
        self.result.split([(0, parts[0].result), (middle, parts[1].result)])
        return parts

    def _enter(self, state: BatchState) -> None:
        assert state in _NEXT[self.state], f"{self.topic_partition}: {self.state} -> {state}"
        self.state = state
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def mistake_in(
    error: Exception, topic: object, value: object, key: object, partition: object,
    timestamp: object, headers: object,
) -> InvalidArgumentError:  # fmt: skip
    """The error that names the caller's mistake in a record that cannot be encoded."""
    for name, given in (("value", value), ("key", key)):
        if given is not None and not isinstance(given, bytes):
            return InvalidArgumentError(
                f"{name} must be bytes or None, not {type(given).__name__}: encode it first"
            )
    if timestamp is not None and not isinstance(timestamp, int):
        return InvalidArgumentError(f"timestamp_ms must be an int, not {timestamp!r}")
    if partition is not None and not isinstance(partition, int):
        return InvalidArgumentError(f"partition must be an int or None, not {partition!r}")
    if not _are_headers(headers):
        return InvalidArgumentError(
            f"headers are pairs of a str and bytes or None, not {headers!r:.200}"
        )
    return InvalidArgumentError(f"a record for {topic!r} cannot be encoded: {error}")


def _are_headers(headers: object) -> bool:
    return isinstance(headers, list | tuple) and all(
        isinstance(pair, list | tuple)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and (pair[1] is None or isinstance(pair[1], bytes))
        for pair in headers
    )
