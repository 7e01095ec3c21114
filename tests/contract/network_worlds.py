"""The two networks behind one interface, so that the same tests run on both."""

import asyncio
import socket
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Protocol

from barnabas_broker.rpc.acceptor import Limits
from barnabas_broker.rpc.grpc_server import GrpcListen
from barnabas_common.runtime import Address, Channel, Listener, ProbeResult, Service
from barnabas_common.transport.grpc_network import GrpcNetwork
from barnabas_simulator.network import MemoryNetwork

from tests.contract.network_peer import ScriptedPeer

PEER_PROGRAM = Path(__file__).with_name("network_peer.py")
LIMITS = Limits(max_message_bytes=1024 * 1024, max_answer_bytes=2 * 1024 * 1024)


class World(Protocol):
    """Listeners, channels, and a peer in another process that a test can kill."""

    async def listen(
        self, peer: ScriptedPeer, *services: Service, port: int = 0, limits: Limits = LIMITS
    ) -> Listener: ...

    def connect(self, address: Address, service: Service = Service.DATA) -> Channel: ...

    def unused_address(self) -> Address: ...

    async def probe(self, address: Address, timeout: float = 1.0) -> ProbeResult: ...

    async def silent_address(self) -> Address: ...

    async def start_mortal(self, port: int = 0) -> Address: ...

    async def kill_mortal(self) -> None: ...

    async def close(self) -> None: ...


class GrpcWorld:
    def __init__(self) -> None:
        self._network = GrpcNetwork(LIMITS.max_message_bytes)
        self._channels: list[Channel] = []
        self._listeners: list[Listener] = []
        self._sockets: list[socket.socket] = []
        self._mortal: Process | None = None

    async def listen(
        self, peer: ScriptedPeer, *services: Service, port: int = 0, limits: Limits = LIMITS
    ) -> Listener:
        handlers = peer.handlers(*services)
        listener = await GrpcListen(limits)("TEST", Address("127.0.0.1", port), handlers)
        self._listeners.append(listener)
        return listener

    def connect(self, address: Address, service: Service = Service.DATA) -> Channel:
        channel = self._network.connect(address, service)
        self._channels.append(channel)
        return channel

    def unused_address(self) -> Address:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            return Address("127.0.0.1", taken.getsockname()[1])

    async def probe(self, address: Address, timeout: float = 1.0) -> ProbeResult:
        return await self._network.probe(address, timeout)

    async def silent_address(self) -> Address:
        """A listener that accepts nothing and whose queue is full:

        the kernel drops new connections.
        """
        full = socket.create_server(("127.0.0.1", 0), backlog=0)
        address = Address("127.0.0.1", full.getsockname()[1])
        self._sockets.append(full)
        for _ in range(2):
            waiting = socket.socket()
            waiting.setblocking(False)
            waiting.connect_ex(address)
            self._sockets.append(waiting)
        await asyncio.sleep(0.05)
        return address

    async def start_mortal(self, port: int = 0) -> Address:
        self._mortal = await asyncio.create_subprocess_exec(
            sys.executable, str(PEER_PROGRAM), str(port), stdout=PIPE
        )
        assert self._mortal.stdout is not None
        return Address("127.0.0.1", int(await self._mortal.stdout.readline()))

    def signal_mortal(self, number: int) -> None:
        assert self._mortal is not None
        self._mortal.send_signal(number)

    async def kill_mortal(self) -> None:
        if self._mortal is not None:
            self._mortal.kill()
            await self._mortal.wait()
            self._mortal = None

    async def close(self) -> None:
        await self.kill_mortal()
        for each in self._sockets:
            each.close()
        for channel in self._channels:
            await channel.close()
        for listener in self._listeners:
            await listener.close()


class MemoryWorld:
    def __init__(self) -> None:
        self.network = MemoryNetwork(limits=LIMITS)
        self._client = self.network.node("client")
        self._mortal = self.network.node("mortal")
        self._channels: list[Channel] = []
        self._listeners: list[Listener] = []

    async def listen(
        self, peer: ScriptedPeer, *services: Service, port: int = 0, limits: Limits = LIMITS
    ) -> Listener:
        node = self.network.node("server", limits)
        listener = await node.listen("TEST", Address("server", port), peer.handlers(*services))
        self._listeners.append(listener)
        return listener

    def connect(self, address: Address, service: Service = Service.DATA) -> Channel:
        channel = self._client.connect(address, service)
        self._channels.append(channel)
        return channel

    def unused_address(self) -> Address:
        return Address("server", self.network.free_port())

    async def probe(self, address: Address, timeout: float = 1.0) -> ProbeResult:
        return await self._client.probe(address, timeout)

    async def silent_address(self) -> Address:
        address = await self.start_mortal()
        self.network.cut("client", "mortal")
        return address

    async def start_mortal(self, port: int = 0) -> Address:
        handlers = ScriptedPeer().handlers(Service.DATA)
        listener = await self._mortal.listen("PEER", Address("mortal", port), handlers)
        self._listeners.append(listener)
        return listener.address

    async def kill_mortal(self) -> None:
        self.network.kill("mortal")

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()
        for listener in self._listeners:
            await listener.close()
