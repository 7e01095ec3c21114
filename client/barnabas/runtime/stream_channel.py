"""A channel over one stream of frames: many calls at once, matched by correlation id.

Both adapters of the network open their streams through here. A channel opens its stream at the
first call, and again at the first call after it broke. Two tasks serve a stream, one that reads
and one that writes; so a caller can be cancelled at any time without harm to its neighbours, and
requests leave in the order of the calls.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from barnabas.errors import Refused
from barnabas.messages.codec import REQUESTS, RESPONSES, MalformedFrame
from barnabas.runtime.calls import Call, Calls
from barnabas.runtime.network import Address, Message, Service
from barnabas.runtime.stream import FrameStream, StreamBroken
from barnabas.runtime.tasks import TaskScope

logger = logging.getLogger(__name__)

# Opens a stream to the peer; raises `StreamBroken` when it is not there.
OpenStream = Callable[[], Awaitable[FrameStream]]


class _Life:
    """One life of the stream, from the wish to open it to its end."""

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
    """Implements `Channel`; see there for what callers may rely on."""

    def __init__(
        self, address: Address, service: Service, open_stream: OpenStream, max_message_bytes: int
    ) -> None:
        self.address = address
        self._name = f"{service.value} at {address}"
        self._open_stream = open_stream
        self._calls = Calls(self._name, REQUESTS[service], RESPONSES[service], max_message_bytes)
        self._outgoing: deque[Call] = deque()
        self._something_to_write = asyncio.Event()
        self._scope = TaskScope(f"channel {self._name}")
        self._life: _Life | None = None
        self._closed = False

    async def open(self, timeout: float) -> Awaitable[str]:
        life = self._living()
        try:
            async with asyncio.timeout(timeout):
                opened = await asyncio.shield(life.is_open)
        except TimeoutError:
            raise Refused(f"no connection to {self._name} within {timeout:g} s") from None
        if not opened:
            raise Refused(life.ended.result())
        return asyncio.shield(life.ended)

    async def call(self, request: Message, timeout: float) -> Message:
        return await self._submit(request, timeout, wants_answer=True)

    async def send(self, request: Message, timeout: float) -> None:
        await self._submit(request, timeout, wants_answer=False)

    async def close(self) -> None:
        self._closed = True
        reason = f"the channel to {self._name} was closed"
        self._calls.fail_all(reason)
        if self._life is not None:
            self._life.end(reason)
        await self._scope.close()

    async def _submit(self, request: Message, timeout: float, wants_answer: bool) -> Message:
        self._check_open()
        call = self._calls.start(request, timeout, wants_answer)
        self._outgoing.append(call)
        self._something_to_write.set()
        self._living()
        return await self._calls.outcome(call)

    def _check_open(self) -> None:
        if self._closed:
            raise Refused(f"the channel to {self._name} is closed")

    def _living(self) -> _Life:
        """The present life of the stream; begins one if there is none."""
        self._check_open()
        if self._life is None:
            self._life = _Life()
            self._scope.spawn(self._run(self._life), "stream")
        return self._life

    async def _run(self, life: _Life) -> None:
        """One life of the stream: until it breaks, or the channel is closed."""
        reason = f"the channel to {self._name} was closed"
        try:
            reason = await self._live(life)
        finally:
            self._life = None
            self._outgoing.clear()
            self._calls.fail_all(reason)
            life.end(reason)

    async def _live(self, life: _Life) -> str:
        """Open the stream and serve it; returns why it ended."""
        try:
            stream = await self._open_stream()
        except StreamBroken as error:
            return f"cannot reach {self._name}: {error}"
        life.opened()
        writer = self._scope.spawn(self._write(stream), "writer")
        try:
            while (frame := await stream.read()) is not None:
                self._calls.answer(frame)
            return f"{self._name} closed the connection"
        except StreamBroken as error:
            return f"the connection to {self._name} broke: {error}"
        except MalformedFrame as error:
            logger.error("closing the connection to %s, which answered: %s", self._name, error)
            return f"{self._name} answered nonsense: {error}"
        finally:
            writer.cancel()
            stream.close()

    async def _write(self, stream: FrameStream) -> None:
        try:
            while True:
                while self._outgoing:
                    await self._write_one(stream, self._outgoing.popleft())
                self._something_to_write.clear()
                await self._something_to_write.wait()
        except StreamBroken as error:
            # The reader meets the same end and fails the calls; here it only stops the writing.
            logger.debug("cannot write to %s: %s", self._name, error)

    async def _write_one(self, stream: FrameStream, call: Call) -> None:
        if call.future.done():  # cancelled, or out of time, before it left
            return
        call.sent = True
        await stream.write(call.frame)
        call.left()
