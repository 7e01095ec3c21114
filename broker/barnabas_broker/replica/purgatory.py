"""The purgatory: produces wait for the high watermark or for a flush, fetches wait for data.

Each partition has one `DelayedOperations`. Waiting requests are woken in Kafka's order: after a
local append the followers' fetches; after a high watermark move the consumers' fetches, then the
produces; after a loss of leadership all of them.
"""

from collections import deque
from typing import NamedTuple

from barnabas_common.errors.error_code import ErrorCode

from barnabas_broker.replica.deadlines import Deadlines, Waiter, wake
from barnabas_broker.replica.fetch_session import CachedPartition


class DelayedProduce:
    """One produce request that must wait; it is done when each of its partitions is.

    A partition that is not completed in time keeps REQUEST_TIMED_OUT, the error it starts with.
    """

    __slots__ = ("_pending", "errors", "waiter")

    def __init__(self, deadlines: Deadlines, deadline: float) -> None:
        self.errors: list[ErrorCode] = []
        self._pending = 0
        self.waiter: Waiter = deadlines.park(deadline)

    def expect(self) -> int:
        """Wait for one more partition; returns its slot in `errors`."""
        self._pending += 1
        self.errors.append(ErrorCode.REQUEST_TIMED_OUT)
        return len(self.errors) - 1

    def complete(self, slot: int, error: ErrorCode) -> None:
        """Take a partition's outcome; ignored once the request has been answered."""
        if self.waiter.done():
            return
        self.errors[slot] = error
        self._pending -= 1
        if not self._pending:
            wake(self.waiter)


class _ProduceWaiter(NamedTuple):
    required_offset: int
    produce: DelayedProduce
    slot: int


class DelayedOperations:
    """The requests that wait at one partition.

    `followers` has, by broker id, the followers that fetch the partition in a session.
    """

    def __init__(self) -> None:
        self._produces: deque[_ProduceWaiter] = deque()
        self._flushes: deque[_ProduceWaiter] = deque()
        self._consumers: dict[Waiter, None] = {}
        self.followers: dict[int, CachedPartition] = {}

    def park_produce(self, required_offset: int, produce: DelayedProduce) -> None:
        """Wait until the high watermark reaches `required_offset`, the last record's plus 1."""
        _enqueue(self._produces, _ProduceWaiter(required_offset, produce, produce.expect()))

    def park_flush(self, required_offset: int, produce: DelayedProduce) -> None:
        """Wait until the records below `required_offset` are durable, or need not be."""
        _enqueue(self._flushes, _ProduceWaiter(required_offset, produce, produce.expect()))

    def park_consumer(self, waiter: Waiter) -> None:
        """Have `waiter` woken once when the high watermark or the leader changes."""
        self._consumers[waiter] = None

    def leave_consumer(self, waiter: Waiter) -> None:
        """Undo `park_consumer`; does nothing for a waiter that was woken."""
        self._consumers.pop(waiter, None)

    def data_arrived(self) -> None:
        """The log end moved: wake the followers' fetches."""
        for follower in self.followers.values():
            follower.data_arrived()

    def high_watermark_moved(self, high_watermark: int, produce_outcome: ErrorCode) -> None:
        """Wake the consumers; complete the produces up to there with `produce_outcome`.

        The followers are not woken: their next answer carries the high watermark.
        """
        for follower in self.followers.values():
            follower.offsets_moved()
        self._wake_consumers()
        _complete(self._produces, high_watermark, produce_outcome)

    def flushed(self, durable_end: int) -> None:
        """Everything below `durable_end` is as durable as it must be."""
        _complete(self._flushes, durable_end, ErrorCode.NONE)

    def leadership_ended(self, error: ErrorCode) -> None:
        """Wake all requests: the fetches look again and find the reason, produces get `error`."""
        for follower in self.followers.values():
            follower.leadership_changed()
        self._wake_consumers()
        produces, self._produces = [*self._produces, *self._flushes], deque()
        self._flushes.clear()
        for _, produce, slot in produces:
            produce.complete(slot, error)

    def _wake_consumers(self) -> None:
        if self._consumers:
            consumers, self._consumers = self._consumers, {}
            for waiter in consumers:
                wake(waiter)


def _enqueue(produces: deque[_ProduceWaiter], waiter: _ProduceWaiter) -> None:
    """Keep the queue sorted. Appends come in offset order; only a producer's retry of what was
    appended before waits for less."""
    position = len(produces)
    while position and produces[position - 1].required_offset > waiter.required_offset:
        position -= 1
    produces.insert(position, waiter)


def _complete(produces: deque[_ProduceWaiter], up_to: int, outcome: ErrorCode) -> None:
    while produces and produces[0].required_offset <= up_to:
        _, produce, slot = produces.popleft()
        produce.complete(slot, outcome)
