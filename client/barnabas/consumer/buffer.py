"""Records that were fetched and not taken yet: chunks in arrival order, and errors in place."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from barnabas_common.errors import BarnabasError, CorruptMessageError
from barnabas_common.record.reader import Columns
from barnabas_common.topic_partition import TopicPartition

from barnabas.consumer.completed_fetch import CompletedFetch
from barnabas.consumer.record import ConsumerRecord
from barnabas.consumer.subscription_state import TopicPartitionState


class _Failure(NamedTuple):
    """An error to raise in its place; a seek makes it stale."""

    state: TopicPartitionState
    version: int
    error: BarnabasError

    @property
    def stale(self) -> bool:
        return self.state.version != self.version


class FetchBuffer:
    """Lies between the fetchers and the application. `on_room()`: a partition may fetch again."""

    def __init__(self) -> None:
        self.on_room: Callable[[], None] = lambda: None
        self._entries: deque[CompletedFetch | _Failure] = deque()
        self._arrived = asyncio.Event()
        self._closed: BarnabasError | None = None

    @property
    def size(self) -> int:
        """Bytes buffered in all."""
        return sum(e.size for e in self._entries if isinstance(e, CompletedFetch) and not e.stale)

    def add(self, chunk: CompletedFetch) -> None:
        self._entries.append(chunk)
        self._arrived.set()

    def add_failure(self, state: TopicPartitionState, error: BarnabasError) -> None:
        """Raise `error` once everything fetched before it was taken."""
        state.blocked = True
        self._entries.append(_Failure(state, state.version, error))
        self._arrived.set()

    def wake(self) -> None:
        """End a `wait`: something other than records needs the application's poll."""
        self._arrived.set()

    def close(self, error: BarnabasError) -> None:
        """Drop everything; waiting and later callers get `error`."""
        self._entries.clear()
        self._closed = error
        self._arrived.set()

    async def wait(self, timeout: float | None) -> bool:
        """Wait until there is something to take; False after `timeout` seconds (None: forever)."""
        self._drop_stale()
        if self._entries:
            return True
        self._arrived.clear()
        try:
            async with asyncio.timeout(timeout):
                await self._arrived.wait()
        except TimeoutError:
            return False
        return True

    def take(self, limit: int) -> list[ConsumerRecord]:
        """Up to `limit` records, those of one partition in order; raises an error in its place."""
        records: list[ConsumerRecord] = []
        while len(records) < limit:
            chunk = self._head(raising=not records)
            if chunk is None:
                break
            try:
                some = chunk.take(limit - len(records))
            except CorruptMessageError as error:
                self._stop_at_damage(chunk, error)
                continue
            if chunk.exhausted:
                self._drop_head(chunk)
            if records:
                records.extend(some)
            else:
                records = some  # usually there is one batch to take: no copy
        return records

    def take_columns(self, with_headers: bool = False) -> list[tuple[TopicPartition, Columns]]:
        """All buffered records, as columns, chunk by chunk."""
        taken: list[tuple[TopicPartition, Columns]] = []
        while (chunk := self._head(raising=not taken)) is not None:
            try:
                columns = chunk.take_columns(with_headers)
            except CorruptMessageError as error:
                self._stop_at_damage(chunk, error)
                continue
            if chunk.exhausted:
                self._drop_head(chunk)
            if len(columns.offsets):
                taken.append((chunk.state.topic_partition, columns))
        return taken

    def _head(self, raising: bool) -> CompletedFetch | None:
        """The first chunk; raises the error that comes first instead, if `raising`."""
        if self._closed is not None:
            raise self._closed
        self._drop_stale()
        if not self._entries:
            return None
        head = self._entries[0]
        if isinstance(head, CompletedFetch):
            return head
        if not raising:
            return None
        raise self._settle(head)

    def raise_failure(self, state: TopicPartitionState) -> None:
        """Raise the error about this partition, if there is one; no record is taken."""
        if self._closed is not None:
            raise self._closed
        for entry in self._entries:
            if isinstance(entry, _Failure) and entry.state is state and not entry.stale:
                raise self._settle(entry)

    def _settle(self, failure: _Failure) -> BarnabasError:
        """The error of a failure that is raised now; its partition is fetched again."""
        self._entries.remove(failure)
        if failure.state.known:
            failure.state.rewind()
        failure.state.blocked = False
        self.on_room()
        return failure.error

    def _stop_at_damage(self, chunk: CompletedFetch, error: BarnabasError) -> None:
        """Fetch again from the damage on: a leader checks the first batch of an answer, and has
        another replica lead if its own copy is damaged. Raise the error if it was the first."""
        state = chunk.state
        if state.position > chunk.start:
            state.rewind()  # this chunk is stale then
            self.on_room()
            return
        self._entries[0] = _Failure(state, state.version, error)
        state.blocked = True

    def _drop_head(self, chunk: CompletedFetch) -> None:
        self._entries.popleft()
        chunk.state.buffered -= chunk.size
        self.on_room()

    def _drop_stale(self) -> None:
        while self._entries and self._entries[0].stale:
            self._entries.popleft()
