"""Asks ZooKeeper servers for their zxid, outside any session, by the four-letter word `srvr`."""

import asyncio
import contextlib
import re
from urllib.parse import urlsplit

DEFAULT_PORT = 2181
_SECONDS = 2.0
_ZXID = re.compile(rb"^Zxid: 0x([0-9a-f]+)", re.MULTILINE)


async def server_zxid(hosts: str) -> int | None:
    """The newest zxid among the servers `host[:port],...` that answer; None if none does."""
    answers = await asyncio.gather(*(_ask(host) for host in hosts.split(",")))
    return max((zxid for zxid in answers if zxid is not None), default=None)


async def _ask(address: str) -> int | None:
    parts = urlsplit(f"//{address}")  # knows the brackets of an IPv6 address
    with contextlib.suppress(OSError, TimeoutError, ValueError):
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_connection(
                parts.hostname, parts.port or DEFAULT_PORT
            )
            try:
                writer.write(b"srvr")
                found = _ZXID.search(await reader.read())
            finally:
                writer.close()
        return int(found[1], 16) if found else None
    return None
