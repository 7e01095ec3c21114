"""The light, awaitable handle of one record's delivery, which `send` returns."""

import asyncio
import logging
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple
from weakref import WeakSet

from barnabas_common.errors import BarnabasError, ClientError
from barnabas_common.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class RecordMetadata(NamedTuple):
    """Where a record was stored.

    `offset` is -1 with acks=0, because the broker then sends no answer, and for a retry if the
    leader does not know where the first attempt was stored. `timestamp` (ms) is the broker's if the
    topic has LogAppendTime, else the record's own.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


OnDelivery = Callable[[RecordMetadata | None, BarnabasError | None], None]


class _Callback(NamedTuple):
    record: int
    timestamp: int
    function: OnDelivery


class BatchResult:
    """The outcome of one batch, shared by the handles of its records: Kafka's
    `ProduceRequestResult`.

    It is set once, by `complete` or `fail`. A batch that was split has none: its records are found
    in the results of its parts. `observed` is set once a handle was asked, or a callback received
    the error.
    """

    __slots__ = ("_callbacks", "_parts", "_waiters", "base_offset", "done", "error",
                 "log_append_time", "observed", "topic_partition")  # fmt: skip

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.done = False
        self.base_offset = -1
        self.log_append_time = -1
        self.error: BarnabasError | None = None
        self.observed = False
        self._waiters: list[asyncio.Future[None]] = []
        self._callbacks: list[_Callback] = []
        self._parts: Sequence[tuple[int, BatchResult]] = ()

    def on_delivery(self, index: int, timestamp: int, function: OnDelivery) -> None:
        """Call `function` with the outcome of the record at `index`."""
        self._callbacks.append(_Callback(index, timestamp, function))

    def complete(self, base_offset: int, log_append_time: int) -> None:
        """Report the delivery to every handle and callback."""
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self._finish()

    def fail(self, error: BarnabasError) -> None:
        """Report the error to every handle and callback."""
        self.error = error
        self.observed = bool(self._callbacks)
        self._finish()

    def split(self, parts: "Sequence[tuple[int, BatchResult]]") -> None:
        """Take the outcome from `parts`; each comes with the index of its first record here."""
        self._parts = parts
        for callback in self._callbacks:
            part, index = self.locate(callback.record)
            part.on_delivery(index, callback.timestamp, callback.function)
        self._callbacks = []
        self._wake()

    def locate(self, index: int) -> "tuple[BatchResult, int]":
        """The result that a record belongs to after any splits, and its index there."""
        result = self
        while result._parts:
            first, part = next(p for p in reversed(result._parts) if p[0] <= index)
            result, index = part, index - first
        return result, index

    async def settled(self, index: int) -> None:
        """Wait until the record is delivered or given up."""
        result, _ = self.locate(index)
        while not result.done:
            await result._changed()
            result, _ = self.locate(index)

    async def all_settled(self) -> None:
        """Wait until every record is delivered or given up."""
        while not self.done and not self._parts:
            await self._changed()
        for _, part in self._parts:
            await part.all_settled()

    def metadata_of(self, index: int, timestamp: int) -> RecordMetadata:
        """Where a record of this delivered batch is stored."""
        topic, partition = self.topic_partition
        offset = self.base_offset + index if self.base_offset >= 0 else -1
        stamp = self.log_append_time if self.log_append_time >= 0 else timestamp
        return RecordMetadata(topic, partition, offset, stamp)

    def _finish(self) -> None:
        self.done = True
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
            except BaseException as error:
                _end_loop(error)

    async def _changed(self) -> None:
        # One future for each waiter: cancelling one must not cancel the others.
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


# Loops that a callback has ended: another error would interrupt the end of their tasks.
_ended: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


def _end_loop(error: BaseException) -> None:
    """Raise SystemExit or KeyboardInterrupt in the loop soon, once for each loop.

    The batches of the present answer must be accounted for before that, or a flush would wait for
    them forever.
    """
    loop = asyncio.get_running_loop()
    if loop in _ended:
        logger.error("another on_delivery raised %r: the program is ending", error)
        return
    _ended.add(loop)
    loop.call_soon(_raise, error)


def _raise(error: BaseException) -> None:
    raise error


class DeliveryHandle:
    """The delivery of one record: `await handle` gives its `RecordMetadata` or raises its error.

    There is one for each record, so it holds no future, only the record's index in its batch.
    """

    __slots__ = ("_index", "_result", "_timestamp")

    def __init__(self, result: BatchResult, index: int, timestamp: int) -> None:
        self._result = result
        self._index = index
        self._timestamp = timestamp

    def done(self) -> bool:
        """Whether the record was delivered or given up."""
        return self._result.locate(self._index)[0].done

    def exception(self) -> BarnabasError | None:
        """Why the record was given up; None if it was delivered. `ClientError` before that."""
        return self._outcome()[0].error

    def result(self) -> RecordMetadata:
        """Where the record is. Raises its error, or `ClientError` while the outcome is open."""
        result, index = self._outcome()
        if result.error is not None:
            raise result.error
        return result.metadata_of(index, self._timestamp)

    def __await__(self) -> Generator[Any, Any, RecordMetadata]:
        yield from self._result.settled(self._index).__await__()
        return self.result()

    def _outcome(self) -> tuple[BatchResult, int]:
        result, index = self._result.locate(self._index)
        if not result.done:
            raise ClientError("the record is not delivered yet: await the handle")
        result.observed = True
        return result, index
