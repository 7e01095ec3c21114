"""The client's side of the network over gRPC: one bidirectional stream for each channel.

`transport.codec` encodes and decodes the frames; gRPC transports their bytes. Only this module and
the broker's `rpc.grpc_server` import grpc. Each option below replaces a default that does not suit
a cluster.
"""

import asyncio
import logging
import os
from typing import Any
from weakref import WeakSet

# gRPC's fork handlers run in every fork of the program, even if another program is then executed,
# as when PySpark starts Java. Sometimes they crash. gRPC reads the variable when it is imported.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
# gRPC's core writes the texts that peers send to stderr, raw bytes included. This package reports
# errors itself.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc
from grpc import aio

from barnabas_common.errors import ClientError
from barnabas_common.runtime.network import Address, Channel, ProbeResult, Service
from barnabas_common.transport.probe import probe
from barnabas_common.transport.stream import (
    MAX_ANSWER_BYTES,
    MAX_MESSAGE_BYTES,
    FrameStream,
    StreamBroken,
)
from barnabas_common.transport.stream_channel import StreamChannel

logger = logging.getLogger(__name__)

# gRPC logs a traceback for each text of its core that is not UTF-8. `plain_words` handles such
# texts.
logging.getLogger("grpc._cython.cygrpc").addFilter(
    lambda record: not str(record.msg).startswith("Invalid encoding")
)

_SETTLE_SECONDS = 0.5

# The server sends this as soon as it accepts a stream, so that the client knows before it sends.
ACCEPTED = "barnabas-accepted"

COMMON_OPTIONS: list[tuple[str, int]] = [
    # Both sides check the size themselves, because gRPC would end the stream with all its calls.
    ("grpc.max_send_message_length", -1),
    # The default splits records into frames of 16 KiB.
    ("grpc.http2.max_frame_size", 1024 * 1024),
    # A peer whose machine lost power or network is noticed after time + timeout.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
]
_CLIENT_OPTIONS: list[tuple[str, int]] = [
    *COMMON_OPTIONS,
    # By default all channels to an address share one connection: control would queue behind data.
    ("grpc.use_local_subchannel_pool", 1),
    # The default back-off grows to two minutes; a restarted broker must be found immediately.
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 200),
    # Despite its name, this is the time that one attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", 2_000),
    # By default a host that restarted with another IP address is not found for half a minute.
    ("grpc.dns_min_time_between_resolutions_ms", 500),
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.enable_retries", 0),
]


# The channels that are open in this process, and the process it was forked from while some were.
_open_channels: WeakSet["_GrpcChannel"] = WeakSet()
_forked_from: int | None = None


def _note_fork() -> None:
    """In a child: gRPC's threads are only in the parent, and what it inherited never answers."""
    global _forked_from
    if _open_channels:
        _forked_from = os.getppid()


os.register_at_fork(after_in_child=_note_fork)


def method(service: Service) -> str:
    """The path of a service's one method."""
    return f"/barnabas.v1.{service.value}/Exchange"


class GrpcNetwork:
    """Opens channels over gRPC; implements `Network`.

    A request of more than `max_message_bytes` is refused before it is sent. A response of more than
    `MAX_ANSWER_BYTES` breaks the connection. Raises `ClientError` in a process that was forked
    while channels were open.
    """

    def __init__(self, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        if _forked_from is not None:
            raise ClientError(
                f"this process was forked from process {_forked_from} while that had a client open:"
                " no client can be used here. Close the clients before forking, or start processes"
                " by the method 'spawn'"
            )
        self._max_message_bytes = max_message_bytes

    def connect(self, address: Address, service: Service) -> Channel:
        return _GrpcChannel(address, service, self._max_message_bytes)

    async def probe(self, address: Address, timeout: float) -> ProbeResult:
        """Probe with a plain socket. gRPC repeats its last failure while it backs off, and does not
        distinguish a refused connection from a timeout."""
        return await probe(address, timeout)


class _GrpcChannel(StreamChannel):
    """A `StreamChannel` whose streams are calls on one gRPC channel."""

    def __init__(self, address: Address, service: Service, max_message_bytes: int) -> None:
        super().__init__(address, service, self._grpc_stream, max_message_bytes)
        self._service = service
        self._options = [
            *_CLIENT_OPTIONS,
            ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
        ]
        self._grpc: aio.Channel | None = None

    async def close(self) -> None:
        try:
            await super().close()
        finally:
            channel, self._grpc = self._grpc, None
            if channel is not None:
                try:
                    await _close(channel)
                finally:
                    _open_channels.discard(self)

    async def _grpc_stream(self) -> FrameStream:
        if self._grpc is None:
            self._grpc = aio.insecure_channel(_target(self.address), options=self._options)
            _open_channels.add(self)
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
    """Close, and let gRPC's threads report the end of every call while this loop still runs.

    If the loop were closed first, as at the end of `asyncio.run`, the next loop would log an error
    for each report. gRPC reports the shutdown of the channel last.
    """
    reported = asyncio.ensure_future(channel.wait_for_state_change(channel.get_state()))
    await asyncio.sleep(0)  # so that it starts to wait
    await channel.close()
    try:
        async with asyncio.timeout(_SETTLE_SECONDS):
            await reported
    except TimeoutError:
        pass


def _target(address: Address) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"dns:///{host}:{address.port}"


def _reason(error: grpc.RpcError) -> str:
    """The error in one line; gRPC's own text goes to the log at level DEBUG."""
    return _plain(error.code(), error.details())


def _plain(code: grpc.StatusCode, details: str | None) -> str:
    logger.debug("gRPC says %s: %s", code.name, details)
    return plain_words(code.name, details or "")


# gRPC's texts about a broken connection change from release to release and name the address again,
# so each known phrase is replaced by a plain text. If a text has several, the first one counts.
_PLAIN = {
    "connection refused": "connection refused",
    "too many open files": "this process has no file descriptor left",
    "domain name not found": "the host name is not known",
    "address lookup failed": "the host name could not be resolved",
    "no route to host": "there is no route to the host",
    "host is unreachable": "there is no route to the host",
    "network is unreachable": "the network is unreachable",
    "connection timed out": "the connection timed out",
    "before receiving settings frame": "it takes connections, but does not answer",
    "keepalive timeout": "the other end did not answer pings",
    "ping timeout": "the other end did not answer pings",
    "failed parsing http/2": "what listens there does not speak gRPC",
    "connection reset": "the other end reset the connection",
    "broken pipe": "the other end closed the connection",
    "listener is closing": "the other end closed the connection",
    "socket closed": "the other end closed the connection",
    "stream removed": "the other end closed the connection",
    "internal error from core": "the stream has ended",  # a write that found no stream
}


def plain_words(code: str, details: str) -> str:
    """A plain text for gRPC's `details`; if none is known, these with the status code's name."""
    found = details.lower()
    for phrase, plain in _PLAIN.items():
        if phrase in found:
            return plain
    text = "".join(letter if letter.isprintable() else " " for letter in details).strip()
    return f"{text} ({code})" if text else code
