"""The blocking producer.

    with Producer("localhost:9092") as producer:
        producer.send("flights", b"value", key=b"UA")

`send` queues; `flush`, leaving `with`, and a handle's `result()` wait and raise what went wrong.
"""

import asyncio
import atexit
import logging
import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self, Unpack

from barnabas_common.errors import InvalidArgumentError
from barnabas_common.prepared_transaction import PreparedTransaction
from barnabas_common.record.record import Headers
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster.options import DEFAULT_BOOTSTRAP, check_timeout
from barnabas.producer import OnDelivery, ProducerMetrics, ProducerOptions, RecordMetadata
from barnabas.producer import Producer as AsyncProducer
from barnabas.producer.producer import FLUSH_ON_ERROR_MS
from barnabas.sync.blocking import Blocking, blocking
from barnabas.sync.handle import SyncHandle
from barnabas.sync.lane import SendLane

logger = logging.getLogger(__name__)


class Producer(Blocking):
    """Takes the options of `barnabas.Producer`. May be used from several threads.

    Raises `NoBrokerReachableError` within seconds if no broker answers at the addresses.
    """

    _client: AsyncProducer

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] = DEFAULT_BOOTSTRAP,
        *,
        runtime: Runtime | None = None,
        **options: Unpack[ProducerOptions],
    ) -> None:
        super().__init__(AsyncProducer(bootstrap_servers, runtime=runtime, **options))
        self._lane = SendLane(self._client, self._thread)
        _warn_at_exit(self)

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:  # the error being raised says more than a failed delivery
            self._close(FLUSH_ON_ERROR_MS)

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
        on_delivery: OnDelivery | None = None,
    ) -> SyncHandle:
        """Queue a record and return its handle; blocks only while too much is queued.

        `on_delivery(metadata, error)` runs in the background thread and must not block.
        """
        self._check_usable()
        if self._client.transactions is not None:
            self._client.transactions.check_send()
        if value is not None and not isinstance(value, bytes):
            value = _copied(value)
        if key is not None and not isinstance(key, bytes):
            raise _not_bytes("key", key)
        return self._lane.put((topic, value, key, partition, timestamp_ms, headers, on_delivery))

    def send_and_wait(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> RecordMetadata:
        """Send and wait for the delivery; raises what went wrong."""
        return self.send(topic, value, key, partition, timestamp_ms, headers).result()

    def send_batch(self, topic: str, partition: int, batch: bytes) -> RecordMetadata:
        """Send record batches built elsewhere and wait; returns where their first record is."""

        async def deliver() -> RecordMetadata:
            await self._lane.drained()
            return await (await self._client.send_batch(topic, partition, batch))

        return self._call(deliver())

    def flush(self) -> None:
        """Wait until everything sent is delivered or given up.

        Raises the first error since the last flush that would go unseen otherwise: of a record
        without a callback, whose handle was not asked.
        """
        self._call(self._flush())
        self._raise_unobserved()

    def close(self, timeout_ms: int | None = None) -> None:
        """Flush and stop. Raises as `flush` does, and is closed nevertheless."""
        if self._closed:
            return
        check_timeout("timeout_ms", timeout_ms)
        self._close(timeout_ms)
        self._raise_unobserved()

    partitions_for = blocking(AsyncProducer.partitions_for)

    # Transactions: the records of `send` must have passed the queue before each step.

    init_transactions = blocking(AsyncProducer.init_transactions)
    send_offsets_to_transaction = blocking(AsyncProducer.send_offsets_to_transaction)

    def begin_transaction(self) -> None:
        """Open a transaction: records are part of it until it is committed or aborted."""

        async def begin() -> None:
            await self._lane.drained()
            await self._client.begin_transaction()

        self._call(begin())

    def prepare_transaction(self) -> PreparedTransaction | None:
        """Send everything, and leave the outcome open (KIP-939)."""

        async def prepare() -> PreparedTransaction | None:
            await self._pass_on()
            return await self._client.prepare_transaction()

        return self._call(prepare())

    def commit_transaction(self) -> None:
        """Send everything, then commit. Raises the error of a record that was not delivered."""

        async def commit() -> None:
            await self._pass_on()
            await self._client.commit_transaction()

        self._call(commit())

    def abort_transaction(self) -> None:
        """Abort: records that were not sent yet are dropped, and readers skip the others."""

        async def abort() -> None:
            try:
                await self._client.abort_transaction()
            finally:
                await self._pass_on()

        self._call(abort())

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """`with producer.transaction():` commits at the end, and aborts after an exception.

        After a fatal error, as when another producer has fenced this one, it closes the producer.
        """
        self.begin_transaction()
        assert self._client.transactions is not None
        try:
            yield self
            if self._client.transactions.was_left:
                self.commit_transaction()
        except BaseException as error:
            self._call(self._undo(error))
            raise

    def metrics(self) -> ProducerMetrics:
        """A copy of the counters, as of now."""
        return self._client.metrics()

    @property
    def undelivered(self) -> int:
        """How many records were sent, and neither delivered nor given up."""
        return self._lane.waiting + self._client.undelivered

    @property
    def undelivered_partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions of those records, the one with the oldest first."""
        return self._client.undelivered_partitions

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun and is neither prepared, committed nor aborted."""
        return self._client.in_transaction

    @property
    def prepared_transaction(self) -> PreparedTransaction | None:
        """The prepared transaction, until it is committed or aborted."""
        return self._client.prepared_transaction

    async def _flush(self) -> None:
        await self._pass_on()
        await self._client.flush()

    async def _pass_on(self) -> None:
        """Empty the queue; a record that was refused must not be missing in a transaction."""
        await self._lane.drained()
        if self._client.transactions is not None:
            for error in self._lane.take_refusals():
                self._client.transactions.batch_failed(error)

    async def _undo(self, error: BaseException) -> None:
        await self._client.undo(error)
        await self._pass_on()

    def _close(self, timeout_ms: int | None) -> None:
        self._close_by(lambda: self._drain_and_close(timeout_ms))

    async def _drain_and_close(self, timeout_ms: int | None) -> None:
        now = asyncio.get_running_loop().time
        deadline = None if timeout_ms is None else now() + timeout_ms / 1000
        try:
            async with asyncio.timeout_at(deadline):
                await self._flush()
        except TimeoutError:
            await self._client.close(0)
        except BaseException:  # a fatal error, or Ctrl-C: nothing more is sent
            await self._client.close(0)
            raise
        else:
            await self._client.close(None if deadline is None else _left_ms(deadline - now()))

    def _raise_unobserved(self) -> None:
        errors = [*self._lane.take_refusals(), *self._client.take_unobserved_errors()]
        if errors:
            raise errors[0]


def _left_ms(seconds: float) -> int:
    return max(0, round(seconds * 1000))


def _copied(value: object) -> bytes:
    """The content of a buffer that its owner may change before the record is sent."""
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise _not_bytes("value", value)


def _not_bytes(name: str, given: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{name} must be bytes or None, not {type(given).__name__}: encode it first"
    )


def _warn_at_exit(producer: Producer) -> None:
    """Warn a script that ends without close(): its last records may be lost."""
    reference = weakref.ref(producer)

    def warn() -> None:
        alive = reference()
        if alive is None or alive._closed or alive._thread.process != os.getpid():
            return
        if alive.undelivered:
            logger.warning("the program ends with records not delivered: close() the Producer")

    atexit.register(warn)
    weakref.finalize(producer, atexit.unregister, warn)
