"""Where requests wait at a partition: produces for the high watermark or a flush, fetches for data.

Each partition has one `Waiting`. What wakes its waiters, in Kafka's order: after a local append the
followers' fetches (and, if the high watermark moved, everybody); after a high watermark move the
consumers' fetches, then the produces; after a loss of leadership, all of them.
"""

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from barnabas.error_code import ErrorCode

from barnabas_broker.replica.deadlines import Deadlines, Waiter, wake

if TYPE_CHECKING:
    from barnabas_broker.replica.fetch_session import SessionPartition


class DelayedProduce:
    """One produce request that must wait: done when each of its partitions is.

    Partitions that nobody completes in time keep REQUEST_TIMED_OUT, the error they start with.
    """

    __slots__ = ("_pending", "errors", "waiter")

    def __init__(self, deadlines: Deadlines, deadline: float) -> None:
        self.errors: list[ErrorCode] = []
        self._pending = 0
        self.waiter: Waiter = deadlines.park(deadline)

    def expect(self) -> int:
        """One more partition to wait for; returns its slot in `errors`."""
        self._pending += 1
        self.errors.append(ErrorCode.REQUEST_TIMED_OUT)
        return len(self.errors) - 1

    def complete(self, slot: int, error: ErrorCode) -> None:
        """A partition's outcome; what comes after the request was answered changes nothing."""
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


class Waiting:
    """Everybody who waits at one partition."""

    def __init__(self) -> None:
        self._produces: deque[_ProduceWaiter] = deque()
        self._flushes: deque[_ProduceWaiter] = deque()
        self._consumers: dict[Waiter, None] = {}
        self.followers: dict[int, SessionPartition] = {}

    def park_produce(self, required_offset: int, produce: DelayedProduce) -> None:
        """Wait until the high watermark reaches `required_offset`, the last record's plus 1.

        Appends come in the order of their offsets, so the queue is sorted by itself.
        """
        self._produces.append(_ProduceWaiter(required_offset, produce, produce.expect()))

    def park_flush(self, required_offset: int, produce: DelayedProduce) -> None:
        """Wait until all below `required_offset` is durable, or need not be any more."""
        self._flushes.append(_ProduceWaiter(required_offset, produce, produce.expect()))

    def park_consumer(self, waiter: Waiter) -> None:
        self._consumers[waiter] = None

    def leave_consumer(self, waiter: Waiter) -> None:
        self._consumers.pop(waiter, None)

    def data_arrived(self) -> None:
        """The log's end moved: the followers have something to fetch."""
        for follower in self.followers.values():
            follower.data_arrived()

    def high_watermark_moved(self, high_watermark: int, produce_outcome: ErrorCode) -> None:
        """Consumers may read further, and produces up to there end with `produce_outcome`.

        The followers are not woken: they learn of it with the next answer they get.
        """
        for follower in self.followers.values():
            follower.offsets_moved()
        self._wake_consumers()
        _complete(self._produces, high_watermark, produce_outcome)

    def flushed(self, durable_end: int) -> None:
        """Everything below `durable_end` is as durable as it has to be."""
        _complete(self._flushes, durable_end, ErrorCode.NONE)

    def leadership_ended(self, error: ErrorCode) -> None:
        """Nobody here will get what they wait for; each looks again and finds the reason."""
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


def _complete(produces: deque[_ProduceWaiter], up_to: int, outcome: ErrorCode) -> None:
    while produces and produces[0].required_offset <= up_to:
        _, produce, slot = produces.popleft()
        produce.complete(slot, outcome)
