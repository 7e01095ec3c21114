"""A network in memory: frames travel as encoded bytes; late, in order, or not at all.

Everything above the stream is the real code: `StreamChannel` on the client's side, `Acceptor` and
`Exchange` on the server's. TCP is simulated: random latency, order within a connection and none
across connections, a limited window, refused connections, resets, links that drop what is sent (in
one direction) or are slow, and hosts that lose power. A connection may break at any frame, also
between a request and its answer. No frame is delivered twice; a repeated request is one that a
client sent again. Works on a virtual loop and on an ordinary one.

Faults of links name hosts: `broker-1` for every incarnation `broker-1/N` of that broker. A cut may
also name incarnations, and ends with them.
"""

import asyncio
import errno
import random
from collections.abc import Callable, Mapping
from contextvars import Context, copy_context

from barnabas_broker.rpc.acceptor import Acceptor, Limits
from barnabas_common.runtime import Address, Channel, Handler, Listener, ProbeResult, Service
from barnabas_common.transport.stream import FrameStream, StreamBroken
from barnabas_common.transport.stream_channel import StreamChannel

from barnabas_simulator.network.connection import Connection, End
from barnabas_simulator.network.links import Link, Links, NetworkConditions, host_of, link_of

FIRST_FREE_PORT = 20_000


class MemoryNetwork:
    """The network of a simulation; nodes are identified by name."""

    def __init__(
        self,
        seed: int = 0,
        conditions: NetworkConditions | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.links = Links(random.Random(seed), conditions or NetworkConditions())
        self.listeners: dict[Address, _MemoryListener] = {}
        self._connections: dict[Connection, None] = {}
        self._rejections: dict[Link, None] = {}
        self._next_port = FIRST_FREE_PORT

    def node(self, name: str, limits: Limits | None = None) -> "MemoryNode":
        """The network as one node sees it: its `Network` and its `Listen`."""
        return MemoryNode(self, name, limits or self.limits)

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def cut(self, sender: str, receiver: str) -> None:
        """Silently hold back what `sender` sends to `receiver`; the other direction stays open.

        It arrives late if the link heals within `silence_limit`, because TCP sends it again; after
        that the connections over the link break.
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
        """Reset the connections from one host to another and refuse new ones, as a firewall."""
        self._rejections[link_of(client, server)] = None
        for connection in self._between(client, server):
            if connection.hosts == link_of(client, server):
                connection.break_both("connection reset by peer")

    def admit(self, client: str, server: str) -> None:
        """Undo `reject`."""
        self._rejections.pop(link_of(client, server), None)

    def reset(self, one: str, other: str) -> None:
        """Break every connection between two hosts; what is in flight is lost."""
        for connection in self._between(one, other):
            connection.break_both("connection reset by peer")

    def hold_back(self, client: str, server: str, patience: float) -> Callable[[], None] | None:
        """Hold back what one host sends over its open connections to another.

        The client sees them as broken `patience` seconds after the first frame and opens new ones.
        Returns what lets the old frames arrive; None if there is no such connection.
        """
        held = [c for c in self._connections if c.hosts == link_of(client, server)]
        for connection in held:
            connection.hold_back(patience)

        def let_through() -> None:
            for connection in held:
                connection.let_through()

        return let_through if held else None

    def lose_power(self, host: str) -> None:
        """Let a host stop without notice; its peers wait, for answers and for connections."""
        self.links.darken(host_of(host), True)
        for connection in self._connections:
            if host_of(host) in connection.hosts:
                self._watch(connection)

    def regain_power(self, node: str) -> None:
        """Undo `lose_power`: the host has lost the connections of its node's last incarnation."""
        self.links.darken(host_of(node), False)
        for connection in self._connections:
            if node in connection.nodes:
                connection.lose_what_is_in_flight()
            elif host_of(node) in connection.hosts:
                connection.resume()  # of an earlier incarnation: a cut may have held back its end
        self.kill(node)

    def _watch(self, connection: Connection) -> None:
        """Break it after `silence_limit`, if it is still silent then."""
        loop = asyncio.get_running_loop()
        loop.call_later(
            self.links.conditions.silence_limit, connection.check_silence, context=Context()
        )

    def kill(self, node: str) -> None:
        """End a node's process: its listeners close, its connections break.

        What it had sent and is still in flight arrives or is lost, by chance.
        """
        for address, listener in list(self.listeners.items()):
            if listener.node == node:
                del self.listeners[address]
        for connection in list(self._connections):
            if node in connection.nodes:
                connection.kill(node)

    def open(self, client: str, server: str) -> Connection:
        connection = Connection(self.links, client, server, self._forget)
        self._connections[connection] = None
        return connection

    def _forget(self, connection: Connection) -> None:
        self._connections.pop(connection, None)

    def _between(self, one: str, other: str) -> list[Connection]:
        links = (link_of(one, other), link_of(other, one))
        return [connection for connection in self._connections if connection.hosts in links]


class _ConnectTimeout(StreamBroken):
    """The connection was neither refused nor accepted in time."""


class MemoryNode:
    """The network as one node uses it: implements `Network`, and `listen` implements `Listen`."""

    def __init__(self, network: MemoryNetwork, name: str, limits: Limits) -> None:
        self.name = name
        self._network = network
        self._limits = limits
        self._credits = limits.for_broker()

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

    async def probe(self, address: Address, timeout: float) -> ProbeResult:
        try:
            async with asyncio.timeout(timeout):
                await self._reach(address)
        except (TimeoutError, _ConnectTimeout):
            return ProbeResult.SILENT
        except StreamBroken:
            return ProbeResult.REFUSED
        return ProbeResult.ANSWERED

    async def _open_stream(self, address: Address, service: Service) -> FrameStream:
        listener = await self._reach(address)
        if service not in listener.acceptor.services:
            raise StreamBroken(f"service {service.value} is not offered on this listener")
        connection = self._network.open(self.name, listener.node)
        listener.accept(service, connection.server_end, self.name)
        return connection.client_end

    async def _reach(self, address: Address) -> "_MemoryListener":
        """Return the listener there, after one round trip; over a cut link nothing answers."""
        network, links = self._network, self._network.links
        deadline = asyncio.get_running_loop().time() + links.conditions.connect_timeout
        await asyncio.sleep(links.latency())
        while True:
            listener = network.listeners.get(address)
            if listener is None and not links.is_dark(address.host):
                raise StreamBroken("connection refused")
            here, there = self.name, listener.node if listener else address.host
            if link_of(here, there) in network._rejections:
                raise StreamBroken("connection refused")
            if not links.swallows((here, there)) and not links.swallows((there, here)):
                await asyncio.sleep(links.latency())
                if listener is not None and network.listeners.get(address) is listener:
                    return listener
                raise StreamBroken("connection reset")
            if asyncio.get_running_loop().time() >= deadline:
                raise _ConnectTimeout("connecting timed out")
            await asyncio.sleep(links.conditions.connect_retry)


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

    def accept(self, service: Service, stream: End, remote: str) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._serve(service, stream, remote), context=self._context.copy())
        self._serving[task] = None
        task.add_done_callback(lambda done: self._serving.pop(done, None))

    async def _serve(self, service: Service, stream: End, remote: str) -> None:
        _, text = await self.acceptor.serve(service, stream, remote)
        stream.close(text)

    async def close(self, grace: float = 0.0) -> None:
        if self._network.listeners.get(self.address) is self:
            del self._network.listeners[self.address]
        await self.acceptor.close(grace)
        for task in list(self._serving):
            await task
