"""One stream being served: frames in, a task for each request, answers out as they complete.

The gRPC server and the simulator's network both serve their streams through here. What must hold:

- A request that was read is carried through even if its sender is gone; only the listener's end
  cancels it. A handler must never stop half-way because somebody else's connection broke.
- Requests are begun in the order they arrived. Answers may overtake one another.
- The bytes of requests in progress and of answers not yet taken are bounded by `Credits`.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from barnabas.messages.codec import REQUESTS, RESPONSES, Frame, MalformedFrame
from barnabas.messages.failure import Failure
from barnabas.runtime import DropConnection, Handler, Peer, Service, TaskScope
from barnabas.runtime.stream import FrameStream, StreamBroken

from barnabas_broker.rpc.credits import Credits

logger = logging.getLogger(__name__)

# What a request costs besides its bytes: its task, its objects, its place in a purgatory. It
# bounds how many small requests (parked fetches) one stream may have open.
REQUEST_OVERHEAD = 16 * 1024


class End(Enum):
    """Why the serving of a stream ended."""

    PEER_LEFT = "the peer left"
    DROPPED = "the connection was dropped by a request that wants no answer"
    MALFORMED = "malformed frame"
    CLOSED = "the listener is closing"


@dataclass(frozen=True)
class Door:
    """What a stream leads to: a service, who serves it, and the largest message it takes."""

    service: Service
    handler: Handler
    max_message_bytes: int


class Exchange:
    """Serves one stream. `tasks` belongs to the listener: requests outlive their stream."""

    def __init__(
        self,
        stream: FrameStream,
        door: Door,
        peer: Peer,
        credits: Sequence[Credits],
        tasks: TaskScope,
    ) -> None:
        self._stream = stream
        self._door = door
        self._peer = peer
        self._credits = credits
        self._tasks = tasks
        self._requests = REQUESTS[door.service]
        self._responses = RESPONSES[door.service]
        self._answers: deque[bytes] = deque()
        self._writing = False
        self._in_progress = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._end: asyncio.Future[tuple[End, str]] = asyncio.get_running_loop().create_future()
        self._reader: asyncio.Task[None] | None = None

    async def run(self) -> tuple[End, str]:
        """Serve until the stream ends; returns why, and a text for the peer."""
        self._reader = self._tasks.spawn(self._read(), f"reader of {self._peer.address}")
        try:
            return await self._end
        finally:
            self._finish(End.PEER_LEFT)
            self._reader.cancel()

    async def drain(self) -> None:
        """Read no more, and return when every request in progress is answered."""
        if self._reader is not None:
            self._reader.cancel()
        await self._idle.wait()

    def close(self) -> None:
        """End the stream; requests still in progress get no answer."""
        self._finish(End.CLOSED)

    def _finish(self, end: End, text: str = "") -> None:
        if not self._end.done():
            self._end.set_result((end, text or end.value))

    async def _read(self) -> None:
        try:
            while True:
                for credits in self._credits:
                    await credits.available()
                data = await self._stream.read()
                if data is None:
                    break
                self._begin(data)
        except StreamBroken as error:
            logger.debug("the stream of %s broke: %s", self._peer, error)
        except MalformedFrame as error:
            logger.warning("closing the connection of %s: %s", self._peer, error)
            self._finish(End.MALFORMED, str(error))
        self._finish(End.PEER_LEFT)

    def _begin(self, data: bytes) -> None:
        """Start one request as a task of its own; raises `MalformedFrame`."""
        frame = self._requests.decode(data)
        self._take(len(data) + REQUEST_OVERHEAD)
        self._in_progress += 1
        self._idle.clear()
        self._tasks.spawn(self._serve(frame, len(data)), type(frame.message).__name__)

    async def _serve(self, frame: Frame, size: int) -> None:
        try:
            try:
                answer = await self._handle(frame)
            finally:
                self._give_back(size + REQUEST_OVERHEAD)
            if answer is not None:
                await self._write(answer)
        except DropConnection:
            self._finish(End.DROPPED)
        finally:
            self._in_progress -= 1
            if self._in_progress == 0:
                self._idle.set()

    async def _handle(self, frame: Frame) -> bytes | None:
        """The encoded answer to a request, or None if it wants none."""
        name = type(frame.message).__name__
        try:
            response = await self._door.handler(frame.message, self._peer)
            if response is None:
                return None
            answer = self._responses.encode(frame.correlation_id, response)
        except DropConnection:
            raise
        except Exception as error:
            logger.exception("%s of %s failed", name, self._peer)
            return self._failure(frame, f"{name} met {type(error).__name__}: {error}")
        if len(answer) > self._door.max_message_bytes:
            text = f"the answer to {name} is over the limit: {len(answer)} bytes"
            logger.error("%s, for %s", text, self._peer)
            return self._failure(frame, text)
        return answer

    def _failure(self, frame: Frame, text: str) -> bytes:
        return self._responses.encode(frame.correlation_id, Failure(text))

    async def _write(self, answer: bytes) -> None:
        """Put an answer in line; whoever finds nobody writing writes all there are."""
        self._take(len(answer))
        self._answers.append(answer)
        if self._writing:
            return
        self._writing = True
        try:
            while self._answers:
                await self._write_one(self._answers.popleft())
        finally:
            self._writing = False

    async def _write_one(self, answer: bytes) -> None:
        try:
            if not self._end.done():
                await self._stream.write(answer)
        except StreamBroken as error:
            logger.debug("cannot answer %s: %s", self._peer, error)
            self._finish(End.PEER_LEFT)
        finally:
            self._give_back(len(answer))

    def _take(self, size: int) -> None:
        for credits in self._credits:
            credits.take(size)

    def _give_back(self, size: int) -> None:
        for credits in self._credits:
            credits.give_back(size)
