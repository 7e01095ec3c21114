"""Serving one stream: frames in, a task for each request, answers out as they complete.

The gRPC server and the simulator's network both serve their streams through here. Invariants:

- A request that was read is carried through even if its sender has disconnected; only the end of
  the listener cancels it. A handler never stops half-way because a connection broke.
- Requests are started in the order of their arrival. Answers may overtake one another.
- `StreamCredits` bound the requests in progress, and their bytes and those of unsent answers.
"""

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from enum import Enum

from barnabas_common.messages.failure import Failure
from barnabas_common.runtime import DropConnection, Handler, Message, Peer, Service, TaskScope
from barnabas_common.transport.codec import REQUESTS, RESPONSES, Frame, MalformedFrame
from barnabas_common.transport.stream import FrameStream, StreamBroken

from barnabas_broker.rpc.credits import StreamCredits

logger = logging.getLogger(__name__)


class End(Enum):
    """Why the serving of a stream ended."""

    PEER_LEFT = "the peer left"
    DROPPED = "the connection was dropped by a request that wants no answer"
    MALFORMED = "malformed frame"
    CLOSED = "the listener is closing"
    UNREADABLE = "the listener could not read from the stream"
    STALLED = "the client did not take its answers, and others need the memory that they take"
    IDLE = "the client sent no request within connections.max.idle.ms"


@dataclass(frozen=True)
class ServiceEndpoint:
    """The receiver of a stream: a service, its handler, and the largest answer it gives."""

    service: Service
    handler: Handler
    max_answer_bytes: int


class Exchange:
    """Serves one stream. `tasks` belongs to the listener: requests outlive their stream."""

    def __init__(
        self,
        stream: FrameStream,
        endpoint: ServiceEndpoint,
        peer: Peer,
        credits: StreamCredits,
        tasks: TaskScope,
    ) -> None:
        self._stream = stream
        self._endpoint = endpoint
        self._peer = peer
        self._credits = credits
        self._tasks = tasks
        self._requests = REQUESTS[endpoint.service]
        self._responses = RESPONSES[endpoint.service]
        self._answers: deque[bytes] = deque()
        self._writer: asyncio.Task[object] | None = None
        self._write_began = 0.0
        self._in_progress = 0
        self._used = True
        self._idle = asyncio.Event()
        self._idle.set()
        self._end: asyncio.Future[tuple[End, str]] = asyncio.get_running_loop().create_future()
        self._reader: asyncio.Task[None] | None = None

    async def run(self) -> tuple[End, str]:
        """Serve until the stream ends; return why it ended, and a text for the peer."""
        self._reader = self._tasks.spawn(self._read(), f"reader of {self._peer.address}")
        try:
            return await self._end
        finally:
            self._finish(End.PEER_LEFT)
            self._reader.cancel()

    def stop_reading(self) -> None:
        """Start no more requests."""
        if self._reader is not None:
            self._reader.cancel()

    async def answered(self) -> None:
        """Return when every request in progress is answered."""
        await self._idle.wait()

    def close(self) -> None:
        """End the stream; requests still in progress get no answer."""
        self._finish(End.CLOSED)

    def take_used(self) -> bool:
        """Whether a request was in progress at any time since the last call."""
        used, self._used = self._used or self._in_progress > 0, False
        return used

    def close_idle(self) -> None:
        """End the stream because it is not used."""
        self._finish(End.IDLE)

    def is_stalled(self, longest: float) -> bool:
        """Whether the stream has not taken one answer for `longest` seconds."""
        now = asyncio.get_running_loop().time()
        return self._writer is not None and now - self._write_began >= longest

    def close_stalled(self) -> None:
        """End the stream, and drop the answer that is being written and those that wait."""
        self._finish(End.STALLED)
        if self._writer is not None:
            self._writer.cancel()

    def _finish(self, end: End, text: str = "") -> None:
        if not self._end.done():
            self._end.set_result((end, text or end.value))

    async def _read(self) -> None:
        try:
            while True:
                await self._credits.available()
                data = await self._stream.read()
                if data is None:
                    break
                self._begin(data)
        except StreamBroken as error:
            logger.debug("the stream of %s broke: %s", self._peer, error)
        except MalformedFrame as error:
            logger.warning("closing the connection of %s: %s", self._peer, error)
            self._finish(End.MALFORMED, str(error))
        except Exception:
            logger.exception("reading from %s failed", self._peer)
            self._finish(End.UNREADABLE)
        self._finish(End.PEER_LEFT)

    def _begin(self, data: bytes) -> None:
        """Start a task for one request; raises `MalformedFrame`."""
        frame = self._requests.decode(data)
        self._credits.begin(len(data))
        self._in_progress += 1
        self._used = True
        self._idle.clear()
        self._tasks.spawn(self._serve(frame, len(data)), type(frame.message).__name__)

    async def _serve(self, frame: Frame, size: int) -> None:
        """Have one request handled, and send its answer if it wants one."""
        try:
            try:
                response = await self._endpoint.handler(frame.message, self._peer)
            except DropConnection:
                self._finish(End.DROPPED)
                return
            except Exception as error:
                response = self._failed(frame, error)
            finally:
                self._credits.end(size)
            if response is not None:
                await self._write(self._encode(frame, response))
        finally:
            self._in_progress -= 1
            if self._in_progress == 0:
                self._idle.set()

    def _encode(self, frame: Frame, response: Message) -> bytes:
        """Encode a response, or a failure instead of one that cannot be sent."""
        try:
            answer = self._responses.encode(frame.correlation_id, response)
        except Exception as error:
            return self._responses.encode(frame.correlation_id, self._failed(frame, error))
        if len(answer) <= self._endpoint.max_answer_bytes:
            return answer
        name = type(frame.message).__name__
        text = f"the answer to {name} is over the limit: {len(answer)} bytes"
        logger.error("%s, for %s", text, self._peer)
        return self._responses.encode(frame.correlation_id, Failure(text))

    def _failed(self, frame: Frame, error: Exception) -> Failure:
        name = type(frame.message).__name__
        logger.exception("%s of %s failed", name, self._peer)
        return Failure(f"{name} met {type(error).__name__}: {error}")

    async def _write(self, answer: bytes) -> None:
        """Queue an answer; if no other task is writing, write all that are queued."""
        self._credits.take(len(answer))
        self._answers.append(answer)
        if self._writer is not None:
            return
        self._writer = asyncio.current_task()
        try:
            while self._answers:
                await self._write_one(self._answers.popleft())
        finally:
            self._writer = None
            while self._answers:  # the stream was ended
                self._credits.give_back(len(self._answers.popleft()))

    async def _write_one(self, answer: bytes) -> None:
        self._write_began = asyncio.get_running_loop().time()
        try:
            if not self._end.done():
                await self._stream.write(answer)
        except StreamBroken as error:
            logger.debug("cannot answer %s: %s", self._peer, error)
            self._finish(End.PEER_LEFT)
        finally:
            self._credits.give_back(len(answer))
