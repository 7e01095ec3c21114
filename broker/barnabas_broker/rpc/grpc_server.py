"""Listeners over gRPC: the server's side of `barnabas_common.transport.grpc_network`.

One gRPC server for each listener, with generic handlers named after the services: no generated
stubs. gRPC moves bytes; `rpc.exchange` handles frames, requests and answers.
"""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import grpc
from barnabas_common.runtime import Address, Handler, Listener, Service
from barnabas_common.transport.grpc_network import ACCEPTED, COMMON_OPTIONS, method
from barnabas_common.transport.stream import StreamBroken
from grpc import aio

from barnabas_broker.rpc.acceptor import Acceptor, Limits
from barnabas_broker.rpc.client_connections import (
    HANDSHAKE_OPTIONS,
    ConnectionLimits,
    count_established,
)
from barnabas_broker.rpc.exchange import End

logger = logging.getLogger(__name__)

MAX_STREAMS = 100
"""At once on one connection; further ones wait at the client."""

_OPTIONS: list[tuple[str, int]] = [
    *COMMON_OPTIONS,
    *HANDSHAKE_OPTIONS,
    # On by default: a second broker would bind a used port without an error and share connections.
    ("grpc.so_reuseport", 0),
    # A client opens one. By default a connection, of which there are few, has as many as it likes.
    ("grpc.max_concurrent_streams", MAX_STREAMS),
    # Allow clients' keep-alive pings; by default they are answered with "too many pings".
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
    ("grpc.http2.max_ping_strikes", 0),
]
# What gRPC raises from a write to a client that has disconnected, depending on the moment.
_WRITE_ERRORS = (grpc.RpcError, aio.InternalError, aio.UsageError, asyncio.InvalidStateError)
_STATUS = {
    End.DROPPED: grpc.StatusCode.CANCELLED,
    End.MALFORMED: grpc.StatusCode.INVALID_ARGUMENT,
    End.UNREADABLE: grpc.StatusCode.INTERNAL,
    End.CLOSED: grpc.StatusCode.UNAVAILABLE,
    End.IDLE: grpc.StatusCode.UNAVAILABLE,
    End.STALLED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    End.PEER_LEFT: grpc.StatusCode.CANCELLED,
}


class GrpcListen:
    """Binds listeners over gRPC; implements `Listen`. They share one bound on memory.

    `connections` limits each client listener: each one that does not serve brokers.
    """

    def __init__(
        self, limits: Limits | None = None, connections: ConnectionLimits | None = None
    ) -> None:
        self._limits = limits or Limits()
        self._connections = connections or ConnectionLimits()
        self._client_ports: list[int] = []
        self._credits = self._limits.for_broker()

    async def __call__(
        self, name: str, address: Address, handlers: Mapping[Service, Handler]
    ) -> Listener:
        limit = self._limits.max_message_bytes
        for_clients = Service.CONTROL not in handlers
        options = [*_OPTIONS, ("grpc.max_receive_message_length", limit)]
        if for_clients:
            options += self._connections.options(address)
        server = aio.server(options=options)
        acceptor = Acceptor(name, handlers, self._limits, self._credits)
        for service in handlers:
            server.add_generic_rpc_handlers((_generic_handler(service, acceptor),))
        try:
            bound = Address(address.host, _bind(server, address))
        except OSError:
            await server.stop(None)
            raise
        await server.start()
        if for_clients:
            self._client_ports.append(bound.port)
            acceptor.end_stalled_streams()
            if self._connections.max_idle is not None:
                acceptor.end_idle_streams(self._connections.max_idle)
        logger.info("listener %s serves at %s", name, bound)
        return _GrpcListener(bound, server, acceptor)

    def count_connections(self) -> tuple[int, int] | None:
        """The connections of all client listeners, and their limit; see `CountConnections`.

        Blocks for some milliseconds.
        """
        count = count_established(self._client_ports)
        limit = self._connections.max_connections * len(self._client_ports)
        return None if count is None else (count, limit)


def grpc_listen(max_message_bytes: int = Limits.max_message_bytes) -> GrpcListen:
    """Return a `Listen` for messages up to this size."""
    return GrpcListen(Limits(max_message_bytes=max_message_bytes))


class _GrpcListener:
    """A bound gRPC server."""

    def __init__(self, address: Address, server: aio.Server, acceptor: Acceptor) -> None:
        self.address = address
        self._server = server
        self._acceptor = acceptor

    async def close(self, grace: float = 0.0) -> None:
        # stop() closes the port immediately, then waits for the streams that the acceptor ends.
        stopping = asyncio.ensure_future(self._server.stop(grace + 1.0))
        await self._acceptor.close(grace)
        await stopping


class _ServerStream:
    """A server's side of a gRPC call as a `FrameStream`."""

    def __init__(self, context: Any) -> None:
        self._context = context

    async def read(self) -> bytes | None:
        frame = await self._context.read()
        return None if frame is aio.EOF else frame

    async def write(self, frame: bytes) -> None:
        try:
            await self._context.write(frame)
        except _WRITE_ERRORS as error:
            raise StreamBroken(str(error)) from error

    def close(self) -> None:
        """gRPC ends the stream when its handler returns."""


def _generic_handler(service: Service, acceptor: Acceptor) -> grpc.GenericRpcHandler:
    async def exchange(_requests: object, context: Any) -> None:
        await context.send_initial_metadata(((ACCEPTED, service.value),))
        remote = unquote(context.peer()).partition(":")[2]
        end, text = await acceptor.serve(service, _ServerStream(context), remote)
        with acceptor.ending(end):
            await context.abort(_STATUS[end], text)

    path = method(service).split("/")
    handler = grpc.stream_stream_rpc_method_handler(exchange)
    return grpc.method_handlers_generic_handler(path[1], {path[2]: handler})


def _bind(server: aio.Server, address: Address) -> int:
    """Bind the server; return the port. Raises `OSError` that names the address and the cause."""
    # gRPC reports only that binding failed, and on stderr. A plain socket, bound first, shows why.
    _check_free(address)
    host = f"[{address.host}]" if ":" in address.host else address.host
    try:
        port = server.add_insecure_port(f"{host}:{address.port}")
    except RuntimeError:
        port = 0
    if port == 0:
        raise OSError(errno.EADDRINUSE, f"cannot listen on {address}: its port was just taken")
    return int(port)


def _check_free(address: Address) -> None:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        socket.create_server(address, family=family, reuse_port=False).close()
    except OSError as error:
        number = error.errno or errno.EADDRNOTAVAIL
        cause = os.strerror(number) if number > 0 else error.strerror
        raise OSError(number, f"cannot listen on {address}: {cause}") from error
