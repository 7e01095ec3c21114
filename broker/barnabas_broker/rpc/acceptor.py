"""The part of a listener that does not depend on the transport: limits, open streams, shutdown."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from barnabas_common.runtime import Handler, Peer, Service, TaskScope
from barnabas_common.transport.stream import MAX_ANSWER_BYTES, FrameStream

from barnabas_broker.rpc.credits import BrokerCredits, Credits, StreamCredits
from barnabas_broker.rpc.exchange import End, Exchange, ServiceEndpoint
from barnabas_broker.rpc.idle_streams import end_idle_streams, end_stalled_streams

MIB = 1024 * 1024
# gRPC keeps the answer that a stalled client does not take until the client has left.
MOST_ABANDONED = 16


@dataclass(frozen=True)
class Limits:
    """Bounds: of one request in bytes, and of the requests in progress on a stream and a broker.

    `longest_stall` is how long, in seconds, a stream may keep an answer waiting while the bytes of
    the broker are used up.

    An answer may be larger than a request: a batch that came in the largest request must reach the
    followers, beside what else is new for them.
    """

    max_message_bytes: int = 64 * MIB
    max_answer_bytes: int = MAX_ANSWER_BYTES
    stream_bytes: int = 32 * MIB
    broker_bytes: int = 128 * MIB
    broker_requests: int = 8192
    longest_stall: float = 30.0

    def for_broker(self) -> BrokerCredits:
        """What the streams of one broker share."""
        return BrokerCredits(
            Credits(self.broker_bytes), Credits(self.broker_requests), Credits(MOST_ABANDONED)
        )


class Acceptor:
    """Serves the streams of one listener."""

    def __init__(
        self, name: str, handlers: Mapping[Service, Handler], limits: Limits, broker: BrokerCredits
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
        """Serve one stream until it ends; return why it ended, and a text for the peer."""
        if self._closing:
            return End.CLOSED, End.CLOSED.value
        endpoint = ServiceEndpoint(service, self._handlers[service], self._limits.max_answer_bytes)
        peer = Peer(self.name, remote_address)
        exchange = Exchange(stream, endpoint, peer, self._credits(service), self._tasks)
        self._exchanges[exchange] = None
        try:
            return await exchange.run()
        finally:
            del self._exchanges[exchange]

    @contextmanager
    def ending(self, end: End) -> Iterator[None]:
        """Count a stalled stream until its peer has left; the transport has an answer for it."""
        count = int(end is End.STALLED)
        self._broker.abandoned.take(count)
        try:
            yield
        finally:
            self._broker.abandoned.give_back(count)

    def end_stalled_streams(self) -> None:
        """From now on, end streams that take no answers, when others need the memory."""
        stalled = end_stalled_streams(self._exchanges, self._broker, self._limits.longest_stall)
        self._tasks.spawn(stalled, "stalled streams")

    def end_idle_streams(self, max_idle: float) -> None:
        """From now on, end streams that are idle for `max_idle` seconds."""
        self._tasks.spawn(end_idle_streams(self._exchanges, max_idle), "idle streams")

    def _credits(self, service: Service) -> StreamCredits:
        """The credits of one stream; traffic between brokers does not share those of clients.

        Produce requests hold their credits until followers have fetched the records. If followers'
        fetches waited for the same credits, a full broker could never make progress.
        """
        own = Credits(self._limits.stream_bytes)
        if service in (Service.REPLICA, Service.CONTROL):
            return StreamCredits(own)
        return StreamCredits(own, self._broker)

    async def close(self, grace: float) -> None:
        """Give requests in progress `grace` seconds, cancel the rest, end every stream."""
        self._closing = True
        exchanges = list(self._exchanges)
        for exchange in exchanges:
            exchange.stop_reading()
        try:
            async with asyncio.timeout(grace):
                for exchange in exchanges:
                    await exchange.answered()
        except TimeoutError:
            pass
        for exchange in exchanges:
            exchange.close()
        await self._tasks.close()
