"""When a client may be used: started once, on one event loop, in one process, until closed.

The errors say what to do, because the causes (a fork, a second `asyncio.run`) are far from where
they show.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable

from barnabas.errors import ClientError, ClosedError


class Lifetime:
    """Guards one client; `loop` is its event loop while it may be used, else None."""

    def __init__(self, what: str, start: Callable[[], Awaitable[None]]) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.closed = False
        self._what = what
        self._start = start
        self._home: asyncio.AbstractEventLoop | None = None
        self._process = os.getpid()
        self._starting: asyncio.Lock | None = None

    async def ensure(self) -> None:
        """Start the client if it is not started yet; raise if it may not be used here.

        The one check on the fast path is `get_running_loop() is lifetime.loop`; this is the rest.
        """
        if self.closed:
            raise ClosedError(f"this {self._what} is closed")
        if os.getpid() != self._process:
            raise ClientError(
                f"this {self._what} was made in process {self._process} and the process was forked "
                f"since: make a new {self._what} in each process"
            )
        running = asyncio.get_running_loop()
        if self._home is None:
            self._home = running
            self._starting = asyncio.Lock()
        elif self._home is not running:
            raise ClientError(
                f"this {self._what} belongs to another event loop: make and use it within one "
                f"asyncio.run(), or use barnabas.sync.{self._what}"
            )
        assert self._starting is not None
        async with self._starting:
            if self.loop is None and not self.closed:
                await self._start()
                self.loop = running
        if self.closed:
            raise ClosedError(f"this {self._what} was closed while it started")

    def end(self) -> bool:
        """Refuse further use; True if the client had been started and this is the first end."""
        was_running = self.loop is not None
        self.closed = True
        self.loop = None
        return was_running
