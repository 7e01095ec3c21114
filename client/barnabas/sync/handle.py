"""The blocking handle of one record: first its arguments in the queue, then its outcome."""

import asyncio
from contextlib import suppress
from typing import Any

from barnabas_common.errors import BarnabasError

from barnabas.producer import DeliveryHandle, RecordMetadata
from barnabas.sync.loop_thread import LoopThread


class SyncHandle:
    """`result()` waits for the delivery and returns its `RecordMetadata` or raises its error."""

    __slots__ = ("_handle", "_observed", "_refusal", "_thread", "_waiter", "arguments")

    def __init__(self, thread: LoopThread, arguments: tuple[Any, ...] | None) -> None:
        self._thread = thread
        self.arguments = arguments
        self._handle: DeliveryHandle | None = None
        self._refusal: BarnabasError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._observed = False

    def done(self) -> bool:
        """Whether the record was delivered or given up."""
        if self._handle is not None:
            return self._handle.done()
        return self._refusal is not None

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Where the record is, once delivered.

        Raises its error, or `TimeoutError` after `timeout` seconds (then it may still arrive).
        """
        self._observed = True
        if not self.done():
            self._thread.call(self._settled(), timeout)
        if self._refusal is not None:
            raise self._refusal
        assert self._handle is not None
        return self._handle.result()

    @property
    def unobserved_refusal(self) -> BarnabasError | None:
        """Why the producer did not accept the record, if the caller has not asked."""
        return None if self._observed else self._refusal

    # The rest is called by the lane, on the loop.

    def accepted(self, handle: DeliveryHandle) -> None:
        """The producer has the record; `handle` has its outcome from now on."""
        self._handle = handle
        self._passed()

    def refused(self, error: BarnabasError) -> None:
        """The producer did not accept the record."""
        self._refusal = error
        self._passed()

    async def _settled(self) -> None:
        if self._handle is None and self._refusal is None:
            if self._waiter is None:
                self._waiter = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._waiter)  # several threads may wait for one handle
        if self._handle is not None and not self._handle.done():
            with suppress(BarnabasError):  # `result` raises it in the caller's thread
                await self._handle

    def _passed(self) -> None:
        self.arguments = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
