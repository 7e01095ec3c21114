"""The network over gRPC: one bidirectional stream for each channel; the client's side.

Frames are encoded and decoded by `barnabas.messages.codec`; gRPC moves their bytes. Only this
module and the broker's `rpc.grpc_server` import grpc. Each option below undoes a default that does
not suit a cluster.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable
from typing import Any

# gRPC's own handlers run in every fork of the program, also one that is about to become another
# program; at times that one dies of them (PySpark starts Java so). Read when gRPC is loaded.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")

import grpc
from grpc import aio

from barnabas.runtime.grpc_words import plain_words
from barnabas.runtime.knocking import knock
from barnabas.runtime.network import Address, Channel, Knock, Message, Service
from barnabas.runtime.stream import FrameStream, StreamBroken
from barnabas.runtime.stream_channel import StreamChannel

logger = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
_SETTLE_SECONDS = 0.5

# Sent by the server as soon as it accepts a stream, so that a client knows before it sends.
ACCEPTED = "barnabas-accepted"

COMMON_OPTIONS: list[tuple[str, int]] = [
    # Both sides check the size themselves: gRPC would end the stream, neighbours' calls included.
    ("grpc.max_send_message_length", -1),
    # The default cuts records into frames of 16 KiB.
    ("grpc.http2.max_frame_size", 1024 * 1024),
    # A peer whose machine vanished without a word is noticed after time + timeout.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
]
_CLIENT_OPTIONS: list[tuple[str, int]] = [
    *COMMON_OPTIONS,
    # Else all channels to one address share one TCP connection: control would queue behind data.
    ("grpc.use_local_subchannel_pool", 1),
    # The default back-off grows to two minutes; a broker that came back must be found at once.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
    # Despite its name, how long one attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", 2_000),
    # Else a host that came back under another IP address is not found for half a minute.
    ("grpc.dns_min_time_between_resolutions_ms", 500),
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.enable_retries", 0),
]


def method(service: Service) -> str:
    """The path of a service's one method."""
    return f"/barnabas.v1.{service.value}/Exchange"


class GrpcNetwork:
    """Opens channels over gRPC; implements `Network`.

    `max_message_bytes`: a request over it is refused before it is sent, an answer over it breaks
    the connection.
    """

    def __init__(self, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._max_message_bytes = max_message_bytes

    def connect(self, address: Address, service: Service) -> Channel:
        return _GrpcChannel(address, service, self._max_message_bytes)

    async def knock(self, address: Address, timeout: float) -> Knock:
        """By a plain socket: gRPC repeats its last failure while it backs off, and does not say in
        so many words whether it was refused or ran out of time."""
        return await knock(address, timeout)


class _GrpcChannel:
    """A `StreamChannel` together with the gRPC channel its streams come from."""

    def __init__(self, address: Address, service: Service, max_message_bytes: int) -> None:
        self.address = address
        self._service = service
        self._options = [
            *_CLIENT_OPTIONS,
            ("grpc.max_receive_message_length", max_message_bytes),
        ]
        self._grpc: aio.Channel | None = None
        self._frames = StreamChannel(address, service, self._open_stream, max_message_bytes)

    async def open(self, timeout: float) -> Awaitable[str]:
        return await self._frames.open(timeout)

    async def call(self, request: Message, timeout: float) -> Message:
        return await self._frames.call(request, timeout)

    async def send(self, request: Message, timeout: float) -> None:
        await self._frames.send(request, timeout)

    async def close(self) -> None:
        await self._frames.close()
        channel, self._grpc = self._grpc, None
        if channel is not None:
            await _close(channel)

    async def _open_stream(self) -> FrameStream:
        if self._grpc is None:
            self._grpc = aio.insecure_channel(_target(self.address), options=self._options)
        stream = _GrpcStream(self._grpc.stream_stream(method(self._service))())
        await stream.opened(self._service)
        return stream


class _GrpcStream:
    """One gRPC call as a `FrameStream`."""

    def __init__(self, call: Any) -> None:
        self._call = call

    async def opened(self, service: Service) -> None:
        """Wait until the server accepted the stream; raises `StreamBroken` if it did not."""
        try:
            metadata = await self._call.initial_metadata()
            if metadata is not None and ACCEPTED in metadata:
                return
            code, details = await self._call.code(), await self._call.details()
        except grpc.RpcError as error:
            raise StreamBroken(_reason(error)) from error
        except BaseException:
            self._call.cancel()
            raise
        if code == grpc.StatusCode.UNIMPLEMENTED:
            text = f"service {service.value} is not offered on this listener"
            raise StreamBroken(f"{text} ({details})")
        raise StreamBroken(_plain(code, details))

    async def read(self) -> bytes | None:
        try:
            frame = await self._call.read()
        except grpc.RpcError as error:
            raise StreamBroken(_reason(error)) from error
        return None if frame is aio.EOF else frame

    async def write(self, frame: bytes) -> None:
        try:
            await self._call.write(frame)
        except grpc.RpcError as error:
            raise StreamBroken(_reason(error)) from error
        except asyncio.InvalidStateError as error:
            raise StreamBroken("the stream has ended") from error

    def close(self) -> None:
        self._call.cancel()


async def _close(channel: aio.Channel) -> None:
    """Close, and let gRPC's own threads tell of the end of every call while this loop still runs.

    Told after the loop is closed, as at the end of `asyncio.run`, the next loop would log an error
    for each. That the channel is shut down is told after them.
    """
    told = asyncio.ensure_future(channel.wait_for_state_change(channel.get_state()))
    await asyncio.sleep(0)  # it begins to wait
    await channel.close()
    try:
        async with asyncio.timeout(_SETTLE_SECONDS):
            await told
    except TimeoutError:
        pass


def _target(address: Address) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"dns:///{host}:{address.port}"


def _reason(error: grpc.RpcError) -> str:
    """What went wrong, in one line; gRPC's own words are in the log, at DEBUG."""
    return _plain(error.code(), error.details())


def _plain(code: grpc.StatusCode, details: str | None) -> str:
    logger.debug("gRPC says %s: %s", code.name, details)
    return plain_words(code.name, details or "")
