"""A TCP connection in memory: two ends, and a pipe each way that keeps order and takes time."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from functools import partial

from barnabas_broker.rpc.credits import Credits
from barnabas_common.transport.stream import StreamBroken

from barnabas_simulator.network.links import Link, Links, link_of


class Connection:
    """`closed` is called when both ends are broken."""

    def __init__(
        self, links: Links, client: str, server: str, closed: "Callable[[Connection], None]"
    ) -> None:
        self.links = links
        self.closed = closed
        self.nodes = (client, server)
        self.hosts = link_of(client, server)
        self.client_end = End(self)
        self.server_end = End(self)
        self._to_server = _Pipe(self, self.nodes, self.server_end)
        self._to_client = _Pipe(self, self.nodes[::-1], self.client_end)

    def pipe_from(self, end: "End") -> "_Pipe":
        return self._to_server if end is self.client_end else self._to_client

    def resume(self) -> None:
        """Send again what was held back, after a link has healed."""
        self._to_server.flush()
        self._to_client.flush()

    def hold_back(self, patience: float) -> None:
        """Hold back what the client sends; `patience` seconds after the first frame it gives up.

        The server does not notice.
        """
        self._to_server.hold_back(partial(self._give_up_later, patience))

    def let_through(self) -> None:
        """Undo `hold_back`: what was held back arrives, also if its sender has given up."""
        self._to_server.let_through()

    def _give_up_later(self, patience: float) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(patience, self._give_up, context=Context())

    def _give_up(self) -> None:
        self.client_end.break_off("connection reset by peer")
        self._to_server.send(_Reset("connection reset by peer"))

    def lose_what_is_in_flight(self) -> None:
        self._to_server.lose()
        self._to_client.lose()

    def check_silence(self) -> None:
        """Break, `silence_limit` after a cut, unless the link has healed in between."""
        if self.links.swallows(self.nodes) or self.links.swallows(self.nodes[::-1]):
            self.break_both("the peer fell silent")

    def kill(self, node: str) -> None:
        """End one side's process: the other side gets a reset, after what still arrives."""
        dying, pipe = (
            (self.client_end, self._to_server)
            if node == self.nodes[0]
            else (self.server_end, self._to_client)
        )
        dying.break_off("this node is dead")
        if self.links.chance.random() < 0.5:
            pipe.lose()
        pipe.send(_Reset("connection reset by peer"))

    def break_both(self, reason: str) -> None:
        self.client_end.break_off(reason)
        self.server_end.break_off(reason)


@dataclass(frozen=True)
class _Reset:
    """Travels behind the last frame: the other end closed, or its process ended."""

    reason: str


class _Pipe:
    """One direction of a connection: first in, first out, each frame late by chance."""

    def __init__(self, connection: Connection, nodes: Link, target: "End") -> None:
        self._connection = connection
        self._links = connection.links
        self._nodes = nodes
        self._link = link_of(*nodes)
        self._target = target
        self._last_arrival = 0.0
        self._in_flight: deque[bytes | _Reset] = deque()
        self._timers = 0
        self._is_held_back = False
        self._first_held: Callable[[], None] | None = None

    def send(self, item: bytes | _Reset) -> None:
        if self._links.breaks(self._link):
            self._connection.break_both("connection reset by peer")
            return
        if self._links.on_frame is not None:
            self._links.on_frame(self._link, item)
        self._in_flight.append(item)
        self.flush()
        if self._is_held_back and self._first_held is not None:
            notify, self._first_held = self._first_held, None
            notify()

    def hold_back(self, first_held: Callable[[], None]) -> None:
        """Deliver nothing until `let_through`; `first_held` is called at the next frame."""
        self._is_held_back, self._first_held = True, first_held

    def let_through(self) -> None:
        self._is_held_back, self._first_held = False, None
        self.flush()

    def flush(self) -> None:
        """Schedule what is new, and what a cut link or a dark host held back."""
        while self._timers < len(self._in_flight) and not self._stands_still():
            self._schedule()

    def _stands_still(self) -> bool:
        return self._is_held_back or self._links.swallows(self._nodes)

    def lose(self) -> None:
        self._in_flight.clear()

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        arrival = max(self._last_arrival, loop.time() + self._links.latency(self._link))
        self._last_arrival = arrival
        self._timers += 1
        # In an empty context: what was sent arrives even if its sender is killed in the meantime.
        loop.call_at(arrival, self._arrive, context=Context())

    def _arrive(self) -> None:
        self._timers -= 1
        if self._in_flight and not self._stands_still():
            self._target.receive(self._in_flight.popleft())


class End:
    """One end of a connection; implements `FrameStream`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._received: deque[bytes] = deque()
        self._window = Credits(connection.links.conditions.window)
        self._broken: str | None = None
        self._changed = asyncio.Event()

    async def read(self) -> bytes | None:
        while not self._received:
            if self._broken is not None:
                raise StreamBroken(self._broken)
            self._changed.clear()
            await self._changed.wait()
        frame = self._received.popleft()
        self._window.give_back(len(frame))
        return frame

    async def write(self, frame: bytes) -> None:
        window = self._other()._window
        await window.available()
        if self._broken is not None:
            raise StreamBroken(self._broken)
        window.take(len(frame))
        self._connection.pipe_from(self).send(bytes(frame))

    def close(self, reason: str = "closed by the peer") -> None:
        if self._broken is None:
            self.break_off("closed on this side")
            self._connection.pipe_from(self).send(_Reset(reason))

    def receive(self, item: bytes | _Reset) -> None:
        """Accept what arrived from the other end."""
        if isinstance(item, _Reset):
            self.break_off(item.reason)
        elif self._broken is None:
            self._received.append(item)
            self._changed.set()

    def break_off(self, reason: str) -> None:
        """Send and receive nothing more; what was received can still be read."""
        if self._broken is None:
            self._broken = reason
            self._changed.set()
            window = self._other()._window
            window.give_back(window.used)
            if self._other()._broken is not None:
                self._connection.closed(self._connection)

    def _other(self) -> "End":
        connection = self._connection
        return connection.server_end if self is connection.client_end else connection.client_end
