"""The blocking consumer: the methods of `barnabas.Consumer`, each waiting for its result.

with Consumer("flights", auto_offset_reset="earliest") as consumer:
    for record in consumer:
        ...
"""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from barnabas_common.errors import ClosedError
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster.options import DEFAULT_BOOTSTRAP
from barnabas.consumer import Consumer as AsyncConsumer
from barnabas.consumer import ConsumerOptions, ConsumerRecord, RebalanceListener
from barnabas.consumer.listener import LISTENING, Callback, check_listener, invoke
from barnabas.sync.blocking import Blocking, blocking, on_loop

if TYPE_CHECKING:
    import pyarrow

T = TypeVar("T")
Places = Sequence[tuple[TopicPartition, int]]


class Consumer(Blocking):
    """Takes the arguments of `barnabas.Consumer`; for one thread at a time.

    Raises `NoBrokerReachableError` within seconds if no broker answers at the addresses.
    """

    _client: AsyncConsumer

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Sequence[str] = DEFAULT_BOOTSTRAP,
        runtime: Runtime | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        super().__init__(
            AsyncConsumer(*topics, bootstrap_servers=bootstrap_servers, runtime=runtime, **options)
        )

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(commit=error_type is None)

    def close(self, commit: bool = True) -> None:
        """Stop, and leave the group; `commit` as for `barnabas.Consumer`. May be called twice."""
        self._close_by(lambda: self._client.close(commit))

    def _check_usable(self) -> None:
        if self._closed and LISTENING.get() is not None:  # `close` waits for the listener
            self._thread.check_running()
        else:
            super()._check_usable()

    assign = on_loop(AsyncConsumer.assign)
    partitions_for = blocking(AsyncConsumer.partitions_for)
    list_topics = blocking(AsyncConsumer.list_topics)

    seek = on_loop(AsyncConsumer.seek)
    seek_to_beginning = blocking(AsyncConsumer.seek_to_beginning)
    seek_to_end = blocking(AsyncConsumer.seek_to_end)
    position = blocking(AsyncConsumer.position)
    lag = blocking(AsyncConsumer.lag)
    beginning_offsets = blocking(AsyncConsumer.beginning_offsets)
    end_offsets = blocking(AsyncConsumer.end_offsets)
    offsets_for_times = blocking(AsyncConsumer.offsets_for_times)

    unsubscribe = blocking(AsyncConsumer.unsubscribe)
    subscription = on_loop(AsyncConsumer.subscription)

    commit = blocking(AsyncConsumer.commit)
    commit_async = on_loop(AsyncConsumer.commit_async)
    committed = blocking(AsyncConsumer.committed)
    group_metadata = on_loop(AsyncConsumer.group_metadata)

    pause = on_loop(AsyncConsumer.pause)
    resume = on_loop(AsyncConsumer.resume)
    paused = on_loop(AsyncConsumer.paused)
    health = on_loop(AsyncConsumer.health)

    _fill_pending = blocking(AsyncConsumer.fill_pending)

    _subscribe = on_loop(AsyncConsumer.subscribe)

    def subscribe(
        self,
        topics: str | Iterable[str] | re.Pattern[str],
        listener: RebalanceListener | None = None,
    ) -> None:
        """Share these topics with the group; the next poll joins.

        The listener runs in a thread while a poll waits, and may call this consumer, but not poll.
        """
        check_listener(listener)
        self._subscribe(topics, None if listener is None else _InThread(listener))

    def poll(
        self, timeout_ms: int | None = None, max_records: int | None = None
    ) -> list[ConsumerRecord]:
        """As `barnabas.Consumer.poll`; after a Ctrl-C the next poll returns the same records."""
        return self._polled(
            lambda: self._client.poll(timeout_ms, max_records),
            lambda records: [(record.topic_partition, record.offset) for record in records],
        )

    def poll_arrow(
        self, timeout_ms: int | None = None, *, headers: bool = False
    ) -> "pyarrow.Table":
        """As `barnabas.Consumer.poll_arrow`; after a Ctrl-C the next one returns the same."""
        return self._polled(lambda: self._client.poll_arrow(timeout_ms, headers=headers), _places)

    def _polled(
        self, poll: Callable[[], Coroutine[Any, Any, T]], places: Callable[[T], Places]
    ) -> T:
        """The result of a poll, unless the caller is interrupted: then it is read again.

        Otherwise a commit would cover records that were never returned.
        """
        found: list[T] = []

        async def run() -> T:
            found.append(await poll())
            return found[0]

        def read_again() -> None:
            for result in found:
                first = dict(reversed(places(result)))  # the lowest offset of each partition
                with suppress(ClosedError):
                    for partition in first.keys() & set(self._client.assignment()):
                        self._client.seek(partition, first[partition])

        try:
            return self._call(run())
        except BaseException:
            self._thread.loop.call_soon_threadsafe(read_again)
            raise

    def assignment(self) -> list[TopicPartition]:
        """The partitions being read."""
        return self._client.assignment()

    def high_watermark(self, partition: TopicPartition | tuple[str, int]) -> int:
        """The end of what consumers may read, as of the last fetch; -1 before the first."""
        return self._client.high_watermark(partition)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ConsumerRecord:
        while True:
            # The event loop may set records aside at any time: taking one must not look first.
            try:
                return self._client.pending.popleft()
            except IndexError:
                pass
            try:
                self._fill_pending()
            except ClosedError:
                raise StopIteration from None


def _places(table: "pyarrow.Table") -> Places:
    columns = (table.column(name).to_pylist() for name in ("topic", "partition", "offset"))
    return [
        (TopicPartition(topic, number), offset)
        for topic, number, offset in zip(*columns, strict=True)
    ]


class _InThread(RebalanceListener):
    """A listener of a blocking consumer: its calls to the consumer must not block the loop."""

    def __init__(self, listener: RebalanceListener) -> None:
        self._listener = listener

    async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        await self._in_thread(self._listener.on_partitions_assigned, partitions)

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        await self._in_thread(self._listener.on_partitions_revoked, partitions)

    async def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        await self._in_thread(self._listener.on_partitions_lost, partitions)

    async def _in_thread(self, callback: Callback, partitions: Sequence[TopicPartition]) -> None:
        token = LISTENING.set(self)  # the thread and its calls have this context
        try:
            await asyncio.to_thread(asyncio.run, invoke(callback, partitions))
        finally:
            LISTENING.reset(token)
