"""A network in memory: frames travel as encoded bytes; late, in order, or not at all.

Everything above the stream is the real code: `StreamChannel` on the client's side, `Acceptor` and
`Exchange` on the server's. What is simulated is TCP: random latency, order within a connection and
none across connections, a limited window, refused connections, resets, links that swallow what is
sent (one direction at a time) or are slow, and hosts that lose power. A connection may break at any
frame, also between a request and its answer; a frame is never delivered twice: what looks like that
is a client which sent again. Works on a virtual loop and on an ordinary one.

Faults of links are told by host: `broker-1` for every life `broker-1/N` of that broker. A cut may
also be told by lives, and ends with them.
"""

import asyncio
import errno
import random
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass

from barnabas.runtime import Address, Channel, Handler, Knock, Listener, Service
from barnabas.runtime.stream import FrameStream, StreamBroken
from barnabas.runtime.stream_channel import StreamChannel
from barnabas_broker.rpc.acceptor import Acceptor, Limits
from barnabas_broker.rpc.credits import Credits

from barnabas_simulator.network_links import Link, Links, host_of, link_of

FIRST_FREE_PORT = 20_000


@dataclass(frozen=True)
class NetworkConditions:
    """How the network behaves; times in seconds, sizes in bytes."""

    min_latency: float = 0.0001
    max_latency: float = 0.001
    late_chance: float = 0.0  # of a frame that takes up to `late_latency`: the long tail
    late_latency: float = 0.05
    window: int = 4 * 1024 * 1024  # sent and not yet read; a writer waits beyond that
    connect_timeout: float = 2.0
    connect_retry: float = 0.2
    silence_limit: float = 15.0  # a connection over a cut link breaks after that


class MemoryNetwork:
    """The one network of a simulation; nodes are told apart by name."""

    def __init__(
        self,
        seed: int = 0,
        conditions: NetworkConditions | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.conditions = conditions or NetworkConditions()
        self.limits = limits or Limits()
        self.random = random.Random(seed)
        self.on_frame: Callable[[Link, bytes | _Reset], None] | None = None  # for a trace
        self.listeners: dict[Address, _MemoryListener] = {}
        self._connections: dict[_Connection, None] = {}
        self.links = Links(self.random)
        self._rejections: dict[Link, None] = {}
        self._next_port = FIRST_FREE_PORT

    def node(self, name: str, limits: Limits | None = None) -> "MemoryNode":
        """The network as one node sees it: its `Network` and its `Listen`."""
        return MemoryNode(self, name, limits or self.limits)

    def latency(self, link: Link | None = None) -> float:
        """How long the next frame takes, in seconds."""
        conditions = self.conditions
        seconds = self.random.uniform(conditions.min_latency, conditions.max_latency)
        if conditions.late_chance and self.random.random() < conditions.late_chance:
            seconds += conditions.late_latency * self.random.random()
        return seconds if link is None else seconds + self.links.extra_delay(link)

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def cut(self, sender: str, receiver: str) -> None:
        """Swallow silently whatever `sender` sends to `receiver`; the other way stays open.

        Nobody is told. What was sent arrives late if the link heals within `silence_limit`, as TCP
        sends it again; after that the connections over the link break.
        """
        self.links.cut((sender, receiver), True)
        for connection in self._between(sender, receiver):
            self._watch(connection)

    def heal(self, sender: str, receiver: str) -> None:
        """Undo `cut`."""
        self.links.cut((sender, receiver), False)
        for connection in self._between(sender, receiver):
            connection.resume()

    def reject(self, client: str, server: str) -> None:
        """A firewall resets the connections one host opened to another and refuses new ones."""
        self._rejections[link_of(client, server)] = None
        for connection in self._between(client, server):
            if connection.hosts == link_of(client, server):
                connection.break_both("connection reset by peer")

    def admit(self, client: str, server: str) -> None:
        """Undo `reject`."""
        self._rejections.pop(link_of(client, server), None)

    def is_cut(self, sender: str, receiver: str) -> bool:
        return self.links.swallows((sender, receiver))

    def delay(self, sender: str, receiver: str, seconds: float) -> None:
        """Each frame from one to the other takes up to so much longer; 0 undoes it."""
        self.links.delay(link_of(sender, receiver), seconds)

    def make_flaky(self, sender: str, receiver: str, chance: float) -> None:
        """Each frame is lost with that chance, and breaks its connection; 0 undoes it.

        From a server to its client that is a request applied whose answer is lost.
        """
        self.links.make_flaky(link_of(sender, receiver), chance)

    def lose_next(self, sender: str, receiver: str) -> None:
        """The next frame from one to the other is lost, and breaks its connection."""
        self.links.lose_next(link_of(sender, receiver))

    def lose_nothing_more(self) -> None:
        """Undo every `lose_next` that has not struck."""
        self.links.lose_nothing_more()

    def reset(self, one: str, other: str) -> None:
        """Break every connection between two hosts; what was on its way is lost."""
        for connection in self._between(one, other):
            connection.break_both("connection reset by peer")

    def lose_power(self, host: str) -> None:
        """A host falls silent without a word; its peers wait, for answers and for connections."""
        self.links.darken(host_of(host), True)
        for connection in self._connections:
            if host_of(host) in connection.hosts:
                self._watch(connection)

    def regain_power(self, node: str) -> None:
        """Undo `lose_power`: the host knows nothing of the connections of its node's last life."""
        self.links.darken(host_of(node), False)
        for connection in self._connections:
            if node in connection.nodes:
                connection.lose_what_is_under_way()
            elif host_of(node) in connection.hosts:
                connection.resume()  # of an earlier life, whose end a cut link may have held back
        self.kill(node)

    def _watch(self, connection: "_Connection") -> None:
        """Break it after `silence_limit`, if it is still silent then."""
        loop = asyncio.get_running_loop()
        loop.call_later(self.conditions.silence_limit, connection.check_silence, context=Context())

    def kill(self, node: str) -> None:
        """The end of a node's process: its listeners are gone, its connections break.

        What it had sent and is still on its way arrives or is lost, by chance.
        """
        for address, listener in list(self.listeners.items()):
            if listener.node == node:
                del self.listeners[address]
        for connection in list(self._connections):
            if node in connection.nodes:
                connection.kill(node)

    def open(self, client: str, server: str) -> "_Connection":
        connection = _Connection(self, client, server)
        self._connections[connection] = None
        return connection

    def forget(self, connection: "_Connection") -> None:
        self._connections.pop(connection, None)

    def _between(self, one: str, other: str) -> list["_Connection"]:
        links = (link_of(one, other), link_of(other, one))
        return [connection for connection in self._connections if connection.hosts in links]


class _ConnectTimeout(StreamBroken):
    """Nobody has refused, and nobody has answered."""


class MemoryNode:
    """One node's door to the network: implements `Network`, and `listen` implements `Listen`."""

    def __init__(self, network: MemoryNetwork, name: str, limits: Limits) -> None:
        self.name = name
        self._network = network
        self._limits = limits
        self._credits = Credits(limits.broker_bytes)

    def connect(self, address: Address, service: Service) -> Channel:
        async def open_stream() -> FrameStream:
            return await self._open_stream(address, service)

        return StreamChannel(address, service, open_stream, self._limits.max_message_bytes)

    async def listen(
        self, name: str, address: Address, handlers: Mapping[Service, Handler]
    ) -> Listener:
        network = self._network
        if address.port == 0:
            address = Address(address.host, network.free_port())
        if address in network.listeners:
            raise OSError(errno.EADDRINUSE, f"cannot listen on {address}: Address already in use")
        acceptor = Acceptor(name, handlers, self._limits, self._credits)
        listener = _MemoryListener(network, self.name, address, acceptor)
        network.listeners[address] = listener
        return listener

    async def knock(self, address: Address, timeout: float) -> Knock:
        try:
            async with asyncio.timeout(timeout):
                await self._reach(address)
        except (TimeoutError, _ConnectTimeout):
            return Knock.SILENT
        except StreamBroken:
            return Knock.REFUSED
        return Knock.ANSWERED

    async def _open_stream(self, address: Address, service: Service) -> FrameStream:
        listener = await self._reach(address)
        if service not in listener.acceptor.services:
            raise StreamBroken(f"service {service.value} is not offered on this listener")
        connection = self._network.open(self.name, listener.node)
        listener.accept(service, connection.server_end, self.name)
        return connection.client_end

    async def _reach(self, address: Address) -> "_MemoryListener":
        """The listener there, after one round trip; a cut link looks like silence."""
        network, conditions = self._network, self._network.conditions
        deadline = asyncio.get_running_loop().time() + conditions.connect_timeout
        await asyncio.sleep(network.latency())
        while True:
            listener = network.listeners.get(address)
            if listener is None and not network.links.is_dark(address.host):
                raise StreamBroken("connection refused")
            here, there = self.name, listener.node if listener else address.host
            if link_of(here, there) in network._rejections:
                raise StreamBroken("connection refused")
            if not network.is_cut(here, there) and not network.is_cut(there, here):
                await asyncio.sleep(network.latency())
                if listener is not None and network.listeners.get(address) is listener:
                    return listener
                raise StreamBroken("connection reset")
            if asyncio.get_running_loop().time() >= deadline:
                raise _ConnectTimeout("connecting timed out")
            await asyncio.sleep(conditions.connect_retry)


class _MemoryListener:
    """A bound listener; streams are served in the context of the node that opened it."""

    def __init__(
        self, network: MemoryNetwork, node: str, address: Address, acceptor: Acceptor
    ) -> None:
        self.node = node
        self.address = address
        self.acceptor = acceptor
        self._network = network
        self._context = copy_context()
        self._serving: dict[asyncio.Task[None], None] = {}

    def accept(self, service: Service, stream: "_End", remote: str) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._serve(service, stream, remote), context=self._context.copy())
        self._serving[task] = None
        task.add_done_callback(lambda done: self._serving.pop(done, None))

    async def _serve(self, service: Service, stream: "_End", remote: str) -> None:
        _, text = await self.acceptor.serve(service, stream, remote)
        stream.close(text)

    async def close(self, grace: float = 0.0) -> None:
        if self._network.listeners.get(self.address) is self:
            del self._network.listeners[self.address]
        await self.acceptor.close(grace)
        for task in list(self._serving):
            await task


class _Connection:
    """A TCP connection: two ends, and what is on its way between them."""

    def __init__(self, network: MemoryNetwork, client: str, server: str) -> None:
        self.network = network
        self.nodes = (client, server)
        self.hosts = link_of(client, server)
        self.client_end = _End(self, client)
        self.server_end = _End(self, server)
        self._to_server = _Pipe(self, self.nodes, self.server_end)
        self._to_client = _Pipe(self, self.nodes[::-1], self.client_end)

    def pipe_from(self, end: "_End") -> "_Pipe":
        return self._to_server if end is self.client_end else self._to_client

    def resume(self) -> None:
        """A link healed: send again what was held back."""
        self._to_server.flush()
        self._to_client.flush()

    def lose_what_is_under_way(self) -> None:
        self._to_server.lose()
        self._to_client.lose()

    def check_silence(self) -> None:
        """`silence_limit` after a cut: break, unless the link healed in between."""
        links = self.network.links
        if links.swallows(self.nodes) or links.swallows(self.nodes[::-1]):
            self.break_both("the peer fell silent")

    def kill(self, node: str) -> None:
        """One end's process died: the other learns it from a reset, after what it still gets."""
        dying, pipe = (
            (self.client_end, self._to_server)
            if node == self.nodes[0]
            else (self.server_end, self._to_client)
        )
        dying.break_off("this node is dead")
        if self.network.random.random() < 0.5:
            pipe.lose()
        pipe.send(_Reset("connection reset by peer"))

    def break_both(self, reason: str) -> None:
        self.client_end.break_off(reason)
        self.server_end.break_off(reason)


@dataclass(frozen=True)
class _Reset:
    """Travels behind the last frame: the other end closed or died."""

    reason: str


class _Pipe:
    """One direction of a connection: first in, first out, each frame late by chance."""

    def __init__(self, connection: _Connection, link: Link, target: "_End") -> None:
        self._connection = connection
        self._network = connection.network
        self._nodes = link
        self._link = link_of(*link)
        self._target = target
        self._last_arrival = 0.0
        self._on_the_way: deque[bytes | _Reset] = deque()
        self._timers = 0

    def send(self, item: "bytes | _Reset") -> None:
        network = self._network
        if network.links.breaks(self._link):
            self._connection.break_both("connection reset by peer")
            return
        if network.on_frame is not None:
            network.on_frame(self._link, item)
        self._on_the_way.append(item)
        self.flush()

    def flush(self) -> None:
        """Schedule what is new, and what a cut link or a dark host held back."""
        while self._timers < len(self._on_the_way) and not self._network.links.swallows(
            self._nodes
        ):
            self._schedule()

    def lose(self) -> None:
        self._on_the_way.clear()

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        arrival = max(self._last_arrival, loop.time() + self._network.latency(self._link))
        self._last_arrival = arrival
        self._timers += 1
        # In an empty context: what was sent arrives though its sender be killed meanwhile.
        loop.call_at(arrival, self._arrive, context=Context())

    def _arrive(self) -> None:
        self._timers -= 1
        if self._on_the_way and not self._network.links.swallows(self._nodes):
            self._target.receive(self._on_the_way.popleft())


class _End:
    """One end of a connection; implements `FrameStream`."""

    def __init__(self, connection: _Connection, node: str) -> None:
        self.node = node
        self._connection = connection
        self._received: deque[bytes] = deque()
        self._window = Credits(connection.network.conditions.window)
        self._broken: str | None = None
        self._news = asyncio.Event()

    async def read(self) -> bytes | None:
        while not self._received:
            if self._broken is not None:
                raise StreamBroken(self._broken)
            self._news.clear()
            await self._news.wait()
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
        """Something arrived from the other end."""
        if isinstance(item, _Reset):
            self.break_off(item.reason)
        elif self._broken is None:
            self._received.append(item)
            self._news.set()

    def break_off(self, reason: str) -> None:
        """Nothing more is sent or received; what was received can still be read."""
        if self._broken is None:
            self._broken = reason
            self._news.set()
            window = self._other()._window
            window.give_back(window.used)
            if self._other()._broken is not None:
                self._connection.network.forget(self._connection)

    def _other(self) -> "_End":
        connection = self._connection
        return connection.server_end if self is connection.client_end else connection.client_end
