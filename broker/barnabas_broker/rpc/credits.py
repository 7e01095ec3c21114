"""Byte credits: a bound on the memory that requests in progress may take.

A stream is not read while its credits, or those it shares with other streams, are used up; gRPC's
flow control then delays the sender. One message may overdraw them, so that any message fits.
"""

import asyncio
from collections import deque


class Credits:
    """`limit` bytes that may be in progress at once."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._waiters: deque[asyncio.Future[None]] = deque()

    def take(self, size: int) -> None:
        """Take `size` bytes without waiting; this may exceed the limit."""
        self.used += size

    def give_back(self, size: int) -> None:
        """Return `size` bytes, and wake the waiters once less than the limit is in use."""
        self.used -= size
        if self.used < self.limit:
            while self._waiters:
                waiter = self._waiters.popleft()
                if not waiter.done():
                    waiter.set_result(None)

    async def available(self) -> None:
        """Return when less than the limit is in use."""
        while self.used >= self.limit:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
