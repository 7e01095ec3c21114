"""A server that takes a connection and never answers costs no session."""

import asyncio

from barnabas_controller.zookeeper.kazoo_session import connect_kazoo
from barnabas_controller.zookeeper.session import State

from tests.contract.zookeeper_servers import (
    CONNECTION_TIMEOUT_MS,
    SESSION_TIMEOUT_MS,
    Events,
    RealEnsemble,
)


class Forwarder:
    """Forwards connections to a server, but for those that it leaves without an answer.

    `broken` connections end with the first request after the handshake.
    """

    def __init__(self, port: int) -> None:
        self.port = 0
        self.unanswered = 0
        self.broken = 0
        self._server_port = port
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> "Forwarder":
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        self.break_connections()

    def break_connections(self) -> None:
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        if self.unanswered:
            self.unanswered -= 1
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._server_port)
        self._writers.append(back)
        back_to_client = asyncio.ensure_future(_copy(there, writer))
        if self.broken:
            self.broken -= 1
            back.write(await reader.read(65_536))
            await reader.read(65_536)
            back.close()
        else:
            await _copy(reader, back)
        await back_to_client


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while some := await reader.read(65_536):
            writer.write(some)
    except ConnectionError:
        pass  # the other side is gone
    writer.close()


async def test_a_handshake_without_an_answer_costs_no_session(real_ensemble: RealEnsemble) -> None:
    """ZooKeeper does so to a client that connects while it is starting."""
    async with Forwarder(real_ensemble.server.port) as forwarder:
        connect = connect_kazoo(f"127.0.0.1:{forwarder.port}{real_ensemble.chroot}")
        session = await connect(SESSION_TIMEOUT_MS, CONNECTION_TIMEOUT_MS)
        states = Events()
        session.on_state(states)
        await session.create("/mine", ephemeral=True)
        forwarder.unanswered = 1
        forwarder.break_connections()
        await states.until(lambda seen: len(seen) >= 2)
        assert states.seen == [State.SUSPENDED, State.CONNECTED]
        assert forwarder.unanswered == 0
        assert await session.exists("/mine") is not None
        await session.close()


async def test_a_connection_that_is_lost_while_the_chroot_is_looked_for_is_no_failure(
    real_ensemble: RealEnsemble,
) -> None:
    """A broker whose session has ended would exit instead of registering again."""
    async with Forwarder(real_ensemble.server.port) as forwarder:
        forwarder.broken = 1
        connect = connect_kazoo(f"127.0.0.1:{forwarder.port}{real_ensemble.chroot}")
        session = await connect(SESSION_TIMEOUT_MS, CONNECTION_TIMEOUT_MS)
        assert forwarder.broken == 0
        assert await session.exists("/") is not None
        await session.close()
