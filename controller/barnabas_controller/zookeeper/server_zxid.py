"""How far a ZooKeeper server is, asked with its four-letter word `srvr`, outside any session."""

import asyncio
import contextlib
import re

_SECONDS = 2.0
_PAUSE_SECONDS = 0.1
_ZXID = re.compile(rb"Zxid: 0x([0-9a-f]+)")


async def server_zxid(hosts: str) -> int | None:
    """The newest zxid among the servers `host:port,...` that answer; None if none does."""
    answers = await asyncio.gather(*(_ask(host) for host in hosts.split(",")))
    return max((zxid for zxid in answers if zxid is not None), default=None)


async def _ask(address: str) -> int | None:
    """None if nothing listens there, or no answer comes in time."""
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError, TimeoutError, ValueError):
        async with asyncio.timeout(_SECONDS):
            while True:
                reader, writer = await asyncio.open_connection(host, int(port))
                found = None
                # A server may close with a reset, and one that just starts without an answer.
                with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                    found = await _zxid_in_answer(reader, writer)
                if found is not None:
                    return found
                await asyncio.sleep(_PAUSE_SECONDS)
    return None


async def _zxid_in_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int | None:
    try:
        writer.write(b"srvr")
        async for line in reader:
            if found := _ZXID.match(line):
                return int(found[1], 16)
        return None
    finally:
        writer.close()
