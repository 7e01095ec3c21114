"""Credits: a bound on the requests in progress, and on the memory they may take.

A stream is not read while its credits, or those it shares with other streams, are used up; gRPC's
flow control then delays the sender. One message may overdraw them, so that any message fits.
"""

import asyncio
from typing import NamedTuple

# The cost of a request in addition to its bytes: its task, its objects, its place in a purgatory.
# It bounds the number of small requests (parked fetches) that one stream may have open.
REQUEST_OVERHEAD = 16 * 1024


class Credits:
    """`limit` bytes, or requests, that may be in progress at once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._waiters: dict[asyncio.Future[None], None] = {}

    @property
    def is_used_up(self) -> bool:
        return self.used >= self.limit

    def take(self, size: int) -> None:
        """Take `size` without waiting; this may exceed the limit."""
        self.used += size

    def give_back(self, size: int) -> None:
        """Return `size`, and wake the waiters once less than the limit is in use."""
        self.used -= size
        if self._waiters and not self.is_used_up:
            for waiter in self._waiters:
                _wake(waiter)
            self._waiters = {}

    async def available(self) -> None:
        """Return when less than the limit is in use."""
        while self.is_used_up:
            await self.wait(asyncio.get_running_loop().create_future())

    async def wait(self, waiter: "asyncio.Future[None]") -> None:
        """Return when some were given back, or another one has woken the waiter."""
        self._waiters[waiter] = None
        try:
            await waiter
        finally:
            self._waiters.pop(waiter, None)


class BrokerCredits(NamedTuple):
    """What the streams of all clients share; `abandoned` are those that were ended as stalled and
    whose peers have not left."""

    bytes: Credits
    requests: Credits
    abandoned: Credits


class StreamCredits:
    """The credits of one stream: its own bytes, and what it shares with others.

    A stream with no request in progress may always have one, as each of Kafka's connections may:
    long requests of others, which wait for records or for a group, must not silence it.
    """

    def __init__(self, own: Credits, broker: BrokerCredits | None = None) -> None:
        self._own = own
        self._broker = broker
        self._in_progress = 0
        self._waiter: asyncio.Future[None] | None = None

    async def available(self) -> None:
        """Return when the next request may be read."""
        await self._own.available()
        if self._broker is None:
            return
        while self._in_progress and self._broker.requests.is_used_up:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._broker.requests.wait(self._waiter)
        await self._broker.bytes.available()

    def begin(self, size: int) -> None:
        """A request of so many bytes has begun."""
        self._in_progress += 1
        self.take(size)
        self._own.take(REQUEST_OVERHEAD)
        if self._broker is not None:
            self._broker.requests.take(1)

    def end(self, size: int) -> None:
        """It is handled."""
        self._in_progress -= 1
        self.give_back(size)
        self._own.give_back(REQUEST_OVERHEAD)
        if self._broker is not None:
            self._broker.requests.give_back(1)
        if self._waiter is not None and not self._in_progress:
            _wake(self._waiter)

    def take(self, size: int) -> None:
        """Take bytes, for an answer that is not sent yet."""
        self._own.take(size)
        if self._broker is not None:
            self._broker.bytes.take(size)

    def give_back(self, size: int) -> None:
        """The answer is sent."""
        self._own.give_back(size)
        if self._broker is not None:
            self._broker.bytes.give_back(size)


def _wake(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
