"""A program that uses the client may start others by fork and exec, as PySpark starts Java."""

import subprocess
import sys

SCRIPT = """
import asyncio, subprocess
from barnabas_common.errors import NotApplied
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.runtime import Address, Service
from barnabas_common.transport.grpc_network import GrpcNetwork

async def main():
    channel = GrpcNetwork().connect(Address("127.0.0.1", 1), Service.ADMIN)
    try:
        await channel.call(MetadataRequest(), 5.0)
    except NotApplied:
        pass
    # A preexec_fn makes it a real fork; without one it is a vfork, which runs no fork handlers.
    codes = {subprocess.run(["true"], preexec_fn=int).returncode for _ in range(20)}
    await channel.close()
    print(codes)

asyncio.run(main())
"""


def test_a_fork_while_channels_are_open_runs_no_handler_of_grpc():
    command = [sys.executable, "-c", SCRIPT]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout == "{0}\n"
    assert "fork" not in result.stderr
