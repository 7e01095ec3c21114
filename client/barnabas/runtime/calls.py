"""The calls in flight on one channel: matched to their answers, timed, and failed rightly.

The one thing that must hold: a call fails with `Refused` only if its request certainly never left.
From the moment `sent` is set, whatever goes wrong is `MaybeApplied`.
"""

import asyncio
import logging
from typing import Any

from barnabas.errors import MaybeApplied, Refused
from barnabas.messages.codec import FrameCodec
from barnabas.messages.failure import Failure
from barnabas.runtime.network import Message

logger = logging.getLogger(__name__)


class Call:
    """One request on its way; `future` gets the response, or None once a send has left."""

    __slots__ = ("correlation_id", "frame", "future", "sent", "timer", "wants_answer")

    def __init__(self, correlation_id: int, frame: bytes, wants_answer: bool) -> None:
        self.correlation_id = correlation_id
        self.frame = frame
        self.wants_answer = wants_answer
        self.sent = False
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.timer: asyncio.TimerHandle | None = None

    def left(self) -> None:
        """The frame was handed to the connection."""
        self.frame = b""
        if not self.wants_answer:
            self.finish(None)

    def finish(self, response: Message | None) -> None:
        if not self.future.done():
            self.future.set_result(response)

    def fail(self, reason: str) -> None:
        if not self.future.done():
            error = MaybeApplied(reason) if self.sent else Refused(reason)
            self.future.set_exception(error)


class Calls:
    """All calls in flight to `peer` (a text for error messages)."""

    def __init__(
        self, peer: str, requests: FrameCodec, responses: FrameCodec, max_message_bytes: int
    ) -> None:
        self.peer = peer
        self._requests = requests
        self._responses = responses
        self._max_message_bytes = max_message_bytes
        self._last_id = 0
        self._in_flight: dict[int, Call] = {}

    def start(self, request: Message, timeout: float, wants_answer: bool) -> Call:
        """Register a call; `timeout` in seconds runs from now.

        Raises `Refused` for a message over the limit, `InvalidArgumentError` for one that does
        not belong to the service.
        """
        self._last_id += 1
        frame = self._requests.encode(self._last_id, request)
        if len(frame) > self._max_message_bytes:
            raise Refused(
                f"{type(request).__name__} of {len(frame)} bytes to {self.peer} is over the limit "
                f"of {self._max_message_bytes} bytes a message"
            )
        call = Call(self._last_id, frame, wants_answer)
        loop = asyncio.get_running_loop()
        call.timer = loop.call_later(timeout, self._expire, call, timeout)
        self._in_flight[call.correlation_id] = call
        return call

    async def outcome(self, call: Call) -> Any:
        """The response to a started call; raises `Refused` or `MaybeApplied`."""
        try:
            return await call.future
        finally:
            if call.timer is not None:
                call.timer.cancel()
            self._in_flight.pop(call.correlation_id, None)

    def _expire(self, call: Call, timeout: float) -> None:
        what = "no answer from" if call.sent else "no connection to"
        call.fail(f"{what} {self.peer} within {timeout:g} s")

    def answer(self, data: bytes) -> None:
        """Hand a response to its caller; raises `MalformedFrame`."""
        frame = self._responses.decode(data)
        call = self._in_flight.get(frame.correlation_id)
        if call is None:
            logger.debug("late answer from %s: %s", self.peer, type(frame.message).__name__)
        elif isinstance(frame.message, Failure):
            call.fail(f"{self.peer} failed: {frame.message.message}")
        else:
            call.finish(frame.message)

    def fail_all(self, reason: str) -> None:
        """The connection is gone: fail every call in flight, in the order they were made."""
        for call in list(self._in_flight.values()):
            call.fail(reason)
