"""The consumer: reads partitions in offset order, fetching ahead of the application.

async with Consumer("flights", auto_offset_reset="earliest") as consumer:
    async for record in consumer:
        ...
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from barnabas_common.errors import (
    ClientError,
    ClosedError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.messages.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, ListedOffset
from barnabas_common.record.reader import Columns
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster.by_leader import list_offsets
from barnabas.cluster.metadata import TopicInfo
from barnabas.cluster.options import (
    DEFAULT_BOOTSTRAP,
    check_bool,
    check_int,
    check_timeout,
    check_topic,
    checked_names,
    checked_partitions,
    checked_timestamps,
)
from barnabas.consumer.config import ConsumerConfig, ConsumerOptions
from barnabas.consumer.fetcher import Fetcher
from barnabas.consumer.in_group import InGroup
from barnabas.consumer.offset_fetcher import OffsetFetcher
from barnabas.consumer.record import ConsumerRecord

if TYPE_CHECKING:
    import pyarrow


class Consumer(InGroup):
    """Reads all partitions of the given topics, or those given to `assign`.

    With a `group_id` it shares the topics with the other consumers of that group, and starts where
    the group has committed. It joins with its first poll.

    Options are those of `ConsumerConfig`, by keyword. A consumer belongs to one event loop and
    starts with `async with`, `start()` or the first call that needs the cluster; to start is to
    find its topics and first positions too (a partition without a leader is waited for some
    seconds), and raises `UnknownTopicOrPartitionError` if a topic does not exist.
    """

    def __init__(
        self,
        *topics: str,
        bootstrap_servers: str | Sequence[str] = DEFAULT_BOOTSTRAP,
        runtime: Runtime | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        for topic in topics:
            check_topic(topic)
        super().__init__(ConsumerConfig.of(options), bootstrap_servers, runtime, topics)
        self._topics = tuple(dict.fromkeys(topics)) if self._group_config is None else ()

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # The record at which the block failed may not be done: it must be read again.
        await self.close(commit=error_type is None)

    async def close(self, commit: bool = True) -> None:
        """Stop fetching, and leave the group. An `async for` over this consumer ends.

        What was returned is committed first, if commits are automatic and `commit` is left True.
        """
        check_bool("commit", commit)
        if not self._end():
            return
        self._closing = True  # a listener may commit
        async with AsyncExitStack() as closing:  # each part, also if the caller is cancelled
            closing.callback(self._buffer.close, ClosedError("the consumer is closed"))
            closing.push_async_callback(self._cluster.close)
            closing.push_async_callback(self._fetcher.close)
            closing.push_async_callback(self._offset_fetcher.close)
            try:
                await self._close_membership(commit)
            finally:
                self._closing = False
                self.pending.clear()

    # What to read

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read exactly these partitions; those that stay assigned keep their position.

        Commits in the background what was read, if commits are automatic.
        """
        self._check_usable()
        if self._topics or self._subscription is not None:
            raise ClientError(
                "this consumer reads all partitions of its topics: to assign, make one without"
            )
        assigned = checked_partitions(partitions)
        if self._membership is not None:
            self._membership.before_assign()
        self._positions.assign(dict.fromkeys(assigned))
        self._drop_pending(None)
        if self._loop is not None:
            self._cluster.watch(tp.topic for tp in assigned)
            self._wake()

    def assignment(self) -> list[TopicPartition]:
        """The partitions being read."""
        return list(self._positions.states)

    async def partitions_for(self, topic: str) -> list[TopicPartition]:
        """All partitions of a topic."""
        await self._ensure_started()
        info = await self._cluster.topic(topic, self._timeout)
        return [TopicPartition(topic, number) for number in range(info.partition_count)]

    async def list_topics(self, named: Iterable[str] | None = None) -> dict[str, TopicInfo]:
        """Topics as the cluster describes them now, with ids (KIP-516): all, or those named.

        A named topic that does not exist is left out. Internal topics are in the list too.
        """
        names = None if named is None else list(dict.fromkeys(checked_names("topics", named)))
        await self._ensure_started()
        if names is None:
            answer = await self._cluster.refresh(MetadataRequest(all_topics=True))
            known = self._cluster.metadata.topics
            return {t.topic: known[t.topic] for t in answer.topics if t.topic in known}
        await self._cluster.refresh(MetadataRequest(names))
        found = {}
        for name in names:
            try:
                # A broker that has just started may not know every topic yet.
                found[name] = await self._cluster.topic(name, self._timeout)
            except UnknownTopicOrPartitionError:
                continue
        return found

    # Where to read

    def seek(self, partition: TopicPartition | tuple[str, int], offset: int) -> None:
        """Continue at `offset`; if it is out of range, `auto_offset_reset` applies later."""
        self._check_usable()
        check_int("offset", offset, 0)
        state = self._assigned(partition)
        state.seek(offset)
        self._drop_pending(state.topic_partition)
        if self._loop is not None:
            self._wake()

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go to the first offset of these partitions, or of all assigned ones."""
        await self._seek_to(EARLIEST_TIMESTAMP, partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go to the present end of these partitions, or of all assigned ones."""
        await self._seek_to(LATEST_TIMESTAMP, partitions)

    async def position(self, partition: TopicPartition | tuple[str, int]) -> int:
        """The offset of the next record this consumer will return from the partition."""
        await self._ensure_started()
        state = self._assigned(partition)
        if not state.known:
            self._check_defined([tp for tp in self._positions.undefined() if tp == partition])
            await self._offset_fetcher.settled(lambda asked: asked is state)
        if not state.known:
            self._buffer.raise_failure(state)
            refusal = self._offset_fetcher.refusal(state)
            if refusal is not None:
                raise refusal
        return self._application_position(state)

    def high_watermark(self, partition: TopicPartition | tuple[str, int]) -> int:
        """The high watermark as of the last fetch; -1 before the first."""
        return self._assigned(partition).high_watermark

    async def lag(self, partition: TopicPartition | tuple[str, int]) -> int:
        """The number of offsets from the position to the high watermark; -1 while unknown."""
        await self._ensure_started()
        end = self.high_watermark(partition)
        return -1 if end < 0 else max(end - await self.position(partition), 0)

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The first offset in the log, by partition."""
        return await self._offsets(partitions, EARLIEST_TIMESTAMP)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last record consumers may read, by partition."""
        return await self._offsets(partitions, LATEST_TIMESTAMP)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, ListedOffset | None]:
        """The first record at or after each timestamp (ms); None if there is none."""
        wanted = checked_timestamps(timestamps, 0)
        await self._ensure_started()
        found = await list_offsets(
            self._cluster, wanted, self._config.isolation_code, self._timeout
        )
        return {tp: answer if answer.offset >= 0 else None for tp, answer in found.items()}

    # Reading

    async def poll(
        self, timeout_ms: int | None = None, max_records: int | None = None
    ) -> list[ConsumerRecord]:
        """The next records, at most `max_records` (default `max_poll_records`).

        Returns as soon as there is any; an empty list after `timeout_ms` (None: waits forever).
        The records of one partition are in order and together.

        Raises `OffsetOutOfRangeError` (only with `auto_offset_reset="none"`),
        `CorruptMessageError`, or another error that is not retriable; records that were fetched
        before it are returned first.
        """
        await self._ensure_started()
        self._check_open()
        limit = self._config.max_poll_records if max_records is None else max_records
        check_int("max_records", limit, 1)
        check_timeout("timeout_ms", timeout_ms)
        if self._membership is None:
            return await self._poll(timeout_ms, limit)
        self._membership.poll_begins()
        try:
            return await self._poll(timeout_ms, limit)
        finally:
            self._membership.poll_ends()

    async def _poll(self, timeout_ms: int | None, limit: int) -> list[ConsumerRecord]:
        if timeout_ms == 0:
            await asyncio.sleep(0)  # a loop of such polls must let the fetches run
        clock = self._cluster.clock
        deadline = None if timeout_ms is None else clock.monotonic() + timeout_ms / 1000
        while True:
            if self._membership is not None and self._membership.due:
                left = None if deadline is None else deadline - clock.monotonic()
                if not await self._membership.attend(left):
                    return []
            self._restore_held()
            if self.pending:
                count = min(limit, len(self.pending))
                return [self.pending.popleft() for _ in range(count)]
            self._check_assigned()
            records = self._buffer.take(limit)
            if records:
                return records
            left = None if deadline is None else deadline - clock.monotonic()
            if (left is not None and left <= 0) or not await self._buffer.wait(left):
                return []

    async def poll_arrow(
        self, timeout_ms: int | None = None, *, headers: bool = False
    ) -> "pyarrow.Table":
        """All records fetched so far as an Arrow table, without an object for each record.

        Columns: key, value, topic, partition, offset, timestamp (ms), timestampType and, if asked
        for, headers (null for none). An empty table after `timeout_ms`. Needs pyarrow; raises as
        `poll` does.
        """
        from barnabas.consumer.arrow import table_of

        check_timeout("timeout_ms", timeout_ms)
        await self._ensure_started()
        self._check_open()
        if self._membership is None:
            return table_of(await self._poll_columns(timeout_ms, headers), headers)
        self._membership.poll_begins()
        try:
            return table_of(await self._poll_columns(timeout_ms, headers), headers)
        finally:
            self._membership.poll_ends()

    async def _poll_columns(
        self, timeout_ms: int | None, with_headers: bool
    ) -> list[tuple[TopicPartition, Columns]]:
        if timeout_ms == 0:
            await asyncio.sleep(0)
        clock = self._cluster.clock
        deadline = None if timeout_ms is None else clock.monotonic() + timeout_ms / 1000
        while True:
            left = None if deadline is None else deadline - clock.monotonic()
            if self._membership is not None and not await self._membership.attend(left):
                return []
            self._restore_held()
            self._check_assigned()
            if self.pending:
                raise ClientError("records of an unfinished iteration remain: poll() them first")
            chunks = self._buffer.take_columns(with_headers)
            if chunks or (left is not None and left <= 0) or not await self._buffer.wait(left):
                return chunks

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        if not self.pending:
            try:
                await self.fill_pending()
            except ClosedError:
                raise StopAsyncIteration from None
        return self.pending.popleft()

    async def fill_pending(self) -> None:
        """Wait until the iteration has something to return."""
        while not self.pending:
            records = await self.poll()
            self.pending.extend(records)

    async def _open(self) -> None:
        self._fetcher = Fetcher(self._config, self._cluster, self._positions, self._buffer)
        self._offset_fetcher = OffsetFetcher(
            self._config, self._cluster, self._positions, self._buffer, self._fetcher
        )
        self._fetcher.on_reset = self._offset_fetcher.wake
        self._buffer.on_room = self._wake
        try:
            await self._open_membership()
            if self._membership is not None:
                self._offset_fetcher.fetch_committed = self._membership.commits.committed
            for topic in self._topics:
                await self._cluster.topic(topic, self._timeout)
            self._cluster.watch(tp.topic for tp in self._positions.states)
            self._assign_topics()
            self._cluster.on_update(self._assign_topics)
            self._fetcher.start()
            self._offset_fetcher.start()
            # From here on "latest" means the records produced after the consumer was started.
            await self._offset_fetcher.begun()
        except BaseException:
            await self._close_membership(commit=False)
            await self._offset_fetcher.close()
            await self._fetcher.close()
            raise

    def _assign_topics(self) -> None:
        """Assign all known partitions of the topics; there may be new ones."""
        if not self._topics:
            return
        partitions = self._cluster.metadata.partitions_of(self._topics)
        if not self._positions.states.keys() >= set(partitions):
            known = dict.fromkeys([*self._positions.states, *partitions])
            self._positions.assign(known)

    def _wake(self) -> None:
        self._fetcher.wake()
        self._offset_fetcher.wake()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the consumer is closed")

    def _check_assigned(self) -> None:
        self._check_open()
        if not self._positions.states and self._subscription is None:
            raise ClientError("nothing to read: name topics, or assign() partitions")
        self._check_defined(self._positions.undefined())

    @staticmethod
    def _check_defined(undefined: Sequence[TopicPartition]) -> None:
        if undefined:
            raise OffsetOutOfRangeError(
                f'{", ".join(map(str, undefined))}: no position, and auto_offset_reset is "none": '
                "seek first"
            )

    async def _seek_to(self, timestamp: int, partitions: Sequence[TopicPartition]) -> None:
        await self._ensure_started()
        states = [self._assigned(tp) for tp in partitions or self.assignment()]
        wanted = [state.topic_partition for state in states]
        for tp, offset in (await self._offsets(wanted, timestamp)).items():
            self.seek(tp, offset)

    async def _offsets(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        named = dict.fromkeys(checked_partitions(partitions), timestamp)
        await self._ensure_started()
        found = await list_offsets(self._cluster, named, self._config.isolation_code, self._timeout)
        return {tp: answer.offset for tp, answer in found.items()}
