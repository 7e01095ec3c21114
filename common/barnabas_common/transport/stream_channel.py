"""A channel over one stream of frames: many concurrent calls, matched by correlation id.

The channels of both network adapters are such channels. A channel opens its stream at the first
call, and again at the first call after the stream broke. Two tasks serve a stream, one that reads
and one that writes. So a caller can be cancelled at any time without harm to other calls, and
requests leave in the order of the calls.

A call fails with `NotApplied` only if its request was certainly not sent. Once it is marked `sent`,
every failure is `MaybeApplied`.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from barnabas_common.errors import MaybeApplied, NotApplied
from barnabas_common.messages.failure import Failure
from barnabas_common.runtime.network import Address, Message, Service
from barnabas_common.runtime.tasks import TaskScope
from barnabas_common.transport.codec import REQUESTS, RESPONSES, MalformedFrame
from barnabas_common.transport.stream import FrameStream, StreamBroken

logger = logging.getLogger(__name__)

# Opens a stream to the peer; raises `StreamBroken` if that fails.
OpenStream = Callable[[], Awaitable[FrameStream]]


class _Call:
    """One request in flight; `future` gets the response, or None when a `send` has left."""

    __slots__ = ("correlation_id", "frame", "future", "sent", "timer", "wants_answer")

    def __init__(self, correlation_id: int, frame: bytes, wants_answer: bool) -> None:
        self.correlation_id = correlation_id
        self.frame = frame
        self.wants_answer = wants_answer
        self.sent = False
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.timer: asyncio.TimerHandle | None = None

    def left(self) -> None:
        """The connection has taken the frame."""
        self.frame = b""
        if not self.wants_answer:
            self.finish(None)

    def finish(self, response: Message | None) -> None:
        if not self.future.done():
            self.future.set_result(response)

    def fail(self, reason: str) -> None:
        if not self.future.done():
            error = MaybeApplied(reason) if self.sent else NotApplied(reason)
            self.future.set_exception(error)


class _Connection:
    """One stream, from the attempt to open it until its end."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.is_open: asyncio.Future[bool] = loop.create_future()
        self.ended: asyncio.Future[str] = loop.create_future()

    def opened(self) -> None:
        if not self.is_open.done():
            self.is_open.set_result(True)

    def end(self, reason: str) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)
        if not self.is_open.done():
            self.is_open.set_result(False)


class StreamChannel:
    """Implements `Channel`, which documents what callers may rely on."""

    def __init__(
        self, address: Address, service: Service, open_stream: OpenStream, max_message_bytes: int
    ) -> None:
        self.address = address
        self._name = f"{service.value} at {address}"
        self._open_stream = open_stream
        self._requests = REQUESTS[service]
        self._responses = RESPONSES[service]
        self._max_message_bytes = max_message_bytes
        self._last_id = 0
        self._in_flight: dict[int, _Call] = {}
        self._outgoing: deque[_Call] = deque()
        self._something_to_write = asyncio.Event()
        self._scope = TaskScope(f"channel {self._name}")
        self._connection: _Connection | None = None
        self._closed = False

    async def open(self, timeout: float) -> Awaitable[str]:
        connection = self._current()
        try:
            async with asyncio.timeout(timeout):
                opened = await asyncio.shield(connection.is_open)
        except TimeoutError:
            raise NotApplied(f"no connection to {self._name} within {timeout:g} s") from None
        if not opened:
            raise NotApplied(connection.ended.result())
        return asyncio.shield(connection.ended)

    async def call(self, request: Message, timeout: float) -> Message:
        return await self._exchange(request, timeout, wants_answer=True)

    async def send(self, request: Message, timeout: float) -> None:
        await self._exchange(request, timeout, wants_answer=False)

    async def close(self) -> None:
        self._closed = True
        reason = f"the channel to {self._name} was closed"
        self._fail_all(reason)
        if self._connection is not None:
            self._connection.end(reason)
        await self._scope.close()

    # ---- Calls

    async def _exchange(self, request: Message, timeout: float, wants_answer: bool) -> Message:
        self._check_open()
        call = self._start_call(request, timeout, wants_answer)
        self._outgoing.append(call)
        self._something_to_write.set()
        self._current()
        try:
            return await call.future
        finally:
            if call.timer is not None:
                call.timer.cancel()
            self._in_flight.pop(call.correlation_id, None)

    def _check_open(self) -> None:
        if self._closed:
            raise NotApplied(f"the channel to {self._name} is closed")

    def _start_call(self, request: Message, timeout: float, wants_answer: bool) -> _Call:
        """Register a call; `timeout`, in seconds, runs from now.

        Raises `NotApplied` if the message is over the limit, and `InvalidArgumentError` if it
        belongs to another service.
        """
        self._last_id += 1
        frame = self._requests.encode(self._last_id, request)
        if len(frame) > self._max_message_bytes:
            raise NotApplied(
                f"{type(request).__name__} of {len(frame)} bytes to {self._name} is over the limit "
                f"of {self._max_message_bytes} bytes a message"
            )
        call = _Call(self._last_id, frame, wants_answer)
        loop = asyncio.get_running_loop()
        call.timer = loop.call_later(timeout, self._expire, call, timeout)
        self._in_flight[call.correlation_id] = call
        return call

    def _expire(self, call: _Call, timeout: float) -> None:
        what = "no answer from" if call.sent else "no connection to"
        call.fail(f"{what} {self._name} within {timeout:g} s")

    def _answer(self, data: bytes) -> None:
        """Pass a response to its caller; raises `MalformedFrame`."""
        frame = self._responses.decode(data)
        call = self._in_flight.get(frame.correlation_id)
        if call is None:
            logger.debug("late answer from %s: %s", self._name, type(frame.message).__name__)
        elif isinstance(frame.message, Failure):
            call.fail(f"{self._name} failed: {frame.message.message}")
        else:
            call.finish(frame.message)

    def _fail_all(self, reason: str) -> None:
        """Fail every call in flight, in the order of the calls."""
        for call in list(self._in_flight.values()):
            call.fail(reason)

    # ---- The stream

    def _current(self) -> _Connection:
        """The present connection; starts a new one if there is none."""
        self._check_open()
        if self._connection is None:
            self._connection = _Connection()
            self._scope.spawn(self._run(self._connection), "stream")
        return self._connection

    async def _run(self, connection: _Connection) -> None:
        """Serve one connection until it breaks, or the channel is closed."""
        reason = f"the channel to {self._name} was closed"
        try:
            reason = await self._serve(connection)
        finally:
            self._connection = None
            self._outgoing.clear()
            self._fail_all(reason)
            connection.end(reason)

    async def _serve(self, connection: _Connection) -> str:
        """Open the stream and read from it; return the reason why it ended."""
        try:
            stream = await self._open_stream()
        except StreamBroken as error:
            return f"cannot reach {self._name}: {error}"
        connection.opened()
        writer = self._scope.spawn(self._write(stream), "writer")
        try:
            while (frame := await stream.read()) is not None:
                self._answer(frame)
            return f"{self._name} closed the connection"
        except StreamBroken as error:
            return f"the connection to {self._name} broke: {error}"
        except MalformedFrame as error:
            logger.error("closing the connection to %s, which answered: %s", self._name, error)
            return f"{self._name} sent a malformed answer: {error}"
        finally:
            writer.cancel()
            stream.close()

    async def _write(self, stream: FrameStream) -> None:
        try:
            while True:
                while self._outgoing:
                    call = self._outgoing.popleft()
                    if not call.future.done():  # otherwise cancelled or expired before it was sent
                        call.sent = True
                        await stream.write(call.frame)
                        call.left()
                self._something_to_write.clear()
                await self._something_to_write.wait()
        except StreamBroken as error:
            # The reader meets the same error and fails the calls; here only the writing stops.
            logger.debug("cannot write to %s: %s", self._name, error)
        except Exception:
            stream.close()  # the reader would wait for answers to requests that never leave
            raise
