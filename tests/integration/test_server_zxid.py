"""The zxid of a ZooKeeper server by `srvr`, at every form of address."""

import asyncio

import pytest
from barnabas_controller.zookeeper import server_zxid as module
from barnabas_controller.zookeeper.server_zxid import server_zxid

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
@pytest.mark.parametrize("has_port", [True, False])
async def test_a_server_is_asked_with_and_without_a_port(
    host: str, has_port: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(4) == b"srvr"
        writer.write(b"Zookeeper version: 3.9\nZxid: 0x1f\nMode: standalone\n")
        writer.close()

    server = await asyncio.start_server(answer, host.strip("[]"), 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setattr(module, "DEFAULT_PORT", port)
        assert await server_zxid(f"{host}:{port}" if has_port else host) == 0x1F
