"""What every listener needs, whatever carries its streams: limits, open streams, an orderly end."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.runtime import Handler, Peer, Service, TaskScope
from barnabas.runtime.stream import FrameStream

from barnabas_broker.rpc.credits import Credits
from barnabas_broker.rpc.exchange import Door, End, Exchange

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Bounds in bytes: of one message, and of what is in progress on a stream and on a broker."""

    max_message_bytes: int = 64 * MIB
    stream_bytes: int = 32 * MIB
    broker_bytes: int = 128 * MIB


class Acceptor:
    """Serves the streams of one listener."""

    def __init__(
        self, name: str, handlers: Mapping[Service, Handler], limits: Limits, broker: Credits
    ) -> None:
        self.name = name
        self.services = list(handlers)
        self._handlers = handlers
        self._limits = limits
        self._broker = broker
        self._tasks = TaskScope(f"listener {name}")
        self._exchanges: dict[Exchange, None] = {}
        self._closing = False

    async def serve(
        self, service: Service, stream: FrameStream, remote_address: str
    ) -> tuple[End, str]:
        """Serve one stream to its end; returns why it ended, and a text for the peer."""
        if self._closing:
            return End.CLOSED, End.CLOSED.value
        door = Door(service, self._handlers[service], self._limits.max_message_bytes)
        peer = Peer(self.name, remote_address)
        exchange = Exchange(stream, door, peer, self._credits(service), self._tasks)
        self._exchanges[exchange] = None
        try:
            return await exchange.run()
        finally:
            del self._exchanges[exchange]

    def _credits(self, service: Service) -> list[Credits]:
        """The broker's own traffic does not share the bound of its clients'.

        Produce requests hold their credits until followers have fetched what they brought. Were
        followers' fetches to wait for the same credits, a full broker would never become empty.
        """
        own = Credits(self._limits.stream_bytes)
        if service in (Service.REPLICA, Service.CONTROL):
            return [own]
        return [own, self._broker]

    async def close(self, grace: float) -> None:
        """Give requests in progress `grace` seconds, cancel the rest, end every stream."""
        self._closing = True
        exchanges = list(self._exchanges)
        try:
            async with asyncio.timeout(grace):
                for exchange in exchanges:
                    await exchange.drain()
        except TimeoutError:
            pass
        for exchange in exchanges:
            exchange.close()
        await self._tasks.close()
