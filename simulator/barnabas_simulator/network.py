"""A network in memory: frames travel as encoded bytes; late, in order, or not at all.

Everything above the stream is the real code: `StreamChannel` on the client's side, `Acceptor` and
`Exchange` on the server's. What is simulated is TCP: random latency, order within a connection, a
limited window, refused connections, resets, and links that swallow what is sent (one direction at
a time). Works on a virtual loop and on an ordinary one.
"""

import asyncio
import errno
import random
from collections import deque
from collections.abc import Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass

from barnabas.runtime import Address, Channel, Handler, Listener, Service
from barnabas.runtime.stream import FrameStream, StreamBroken
from barnabas.runtime.stream_channel import StreamChannel
from barnabas_broker.rpc.acceptor import Acceptor, Limits
from barnabas_broker.rpc.credits import Credits

FIRST_FREE_PORT = 20_000


@dataclass(frozen=True)
class NetworkConditions:
    """How the network behaves; times in seconds, sizes in bytes."""

    min_latency: float = 0.0001
    max_latency: float = 0.001
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
        self.listeners: dict[Address, _MemoryListener] = {}
        self._connections: dict[_Connection, None] = {}
        self._cuts: dict[tuple[str, str], None] = {}
        self._next_port = FIRST_FREE_PORT

    def node(self, name: str, limits: Limits | None = None) -> "MemoryNode":
        """The network as one node sees it: its `Network` and its `Listen`."""
        return MemoryNode(self, name, limits or self.limits)

    def latency(self) -> float:
        return self.random.uniform(self.conditions.min_latency, self.conditions.max_latency)

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def cut(self, sender: str, receiver: str) -> None:
        """Swallow silently whatever `sender` sends to `receiver`; the other way stays open.

        Nobody is told. What was sent arrives late if the link heals within `silence_limit`, as TCP
        sends it again; after that the connections over the link break.
        """
        self._cuts[(sender, receiver)] = None
        loop = asyncio.get_running_loop()
        for connection in self._between(sender, receiver):
            loop.call_later(
                self.conditions.silence_limit, connection.check_silence, context=Context()
            )

    def heal(self, sender: str, receiver: str) -> None:
        """Undo `cut`."""
        self._cuts.pop((sender, receiver), None)
        for connection in self._between(sender, receiver):
            connection.resume()

    def is_cut(self, sender: str, receiver: str) -> bool:
        return (sender, receiver) in self._cuts

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
        return [item for item in self._connections if set(item.nodes) == {one, other}]


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
            if listener is None:
                raise StreamBroken("connection refused")
            here, there = self.name, listener.node
            if not network.is_cut(here, there) and not network.is_cut(there, here):
                await asyncio.sleep(network.latency())
                if network.listeners.get(address) is listener:
                    return listener
                raise StreamBroken("connection reset")
            if asyncio.get_running_loop().time() >= deadline:
                raise StreamBroken("connecting timed out")
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
        self.client_end = _End(self, client)
        self.server_end = _End(self, server)
        self._to_server = _Pipe(network, client, server, self.server_end)
        self._to_client = _Pipe(network, server, client, self.client_end)

    def pipe_from(self, end: "_End") -> "_Pipe":
        return self._to_server if end is self.client_end else self._to_client

    def resume(self) -> None:
        """A link healed: send again what was held back."""
        self._to_server.flush()
        self._to_client.flush()

    def check_silence(self) -> None:
        """`silence_limit` after a cut: break, unless the link healed in between."""
        client, server = self.nodes
        if self.network.is_cut(client, server) or self.network.is_cut(server, client):
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

    def __init__(self, network: MemoryNetwork, sender: str, receiver: str, target: "_End") -> None:
        self._network = network
        self._link = (sender, receiver)
        self._target = target
        self._last_arrival = 0.0
        self._on_the_way: deque[bytes | _Reset] = deque()
        self._timers = 0

    def send(self, item: "bytes | _Reset") -> None:
        self._on_the_way.append(item)
        self._schedule()

    def flush(self) -> None:
        """Schedule what a cut link held back."""
        while self._timers < len(self._on_the_way) and not self._network.is_cut(*self._link):
            self._schedule()

    def lose(self) -> None:
        self._on_the_way.clear()

    def _schedule(self) -> None:
        if self._network.is_cut(*self._link):
            return
        loop = asyncio.get_running_loop()
        arrival = max(self._last_arrival, loop.time() + self._network.latency())
        self._last_arrival = arrival
        self._timers += 1
        # In an empty context: what was sent arrives though its sender be killed meanwhile.
        loop.call_at(arrival, self._arrive, context=Context())

    def _arrive(self) -> None:
        self._timers -= 1
        if self._on_the_way and not self._network.is_cut(*self._link):
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
