"""Probes of a peer by a process that itself lacks a resource."""

import resource
import socket

from barnabas_common.runtime import Address, ProbeResult
from barnabas_common.transport.probe import probe


async def test_without_a_file_descriptor_left_nothing_is_said_of_the_peer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address(*server.getsockname()[:2])
        assert await probe(address, timeout=5) is ProbeResult.ANSWERED
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (server.fileno(), hard))
        try:
            assert await probe(address, timeout=5) is ProbeResult.SILENT
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert await probe(address, timeout=5) is ProbeResult.ANSWERED
