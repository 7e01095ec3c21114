"""The common base of producer, consumer and admin: a client is started once, on one event loop, in
one process, and used until it is closed.

The errors say what to do, because the causes (a fork, a second `asyncio.run`) are far from where
the errors appear.
"""

import asyncio
import os
from types import TracebackType
from typing import Self

from barnabas_common.errors import ClientError, ClosedError
from barnabas_common.runtime import Runtime, SystemClock, ThreadOffload, system_randomness

from barnabas.cluster.cluster import Cluster, ClusterConfig


class Client:
    """Starts and ends with its `Cluster`. `_loop` is its event loop while it may be used, else
    None. `_closing`: `close` waits for the application, which may use the client for its last time.

    `runtime` replaces clock, randomness and network (tests, simulation).
    """

    def __init__(self, config: ClusterConfig, runtime: Runtime | None) -> None:
        self._cluster_config = config
        self._given_runtime = runtime
        self._what = type(self).__name__
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = self._closing = False
        self._home: asyncio.AbstractEventLoop | None = None
        self._process = os.getpid()
        self._starting: asyncio.Lock | None = None

    async def start(self) -> Self:
        """Find the cluster. Raises `NoBrokerReachableError` within seconds if no broker answers."""
        await self._ensure_started()
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop. May be called twice."""
        if self._end():
            await self._cluster.close()

    async def _ensure_started(self) -> None:
        """Start the client if it is not started yet; raise if it may not be used here.

        The fast path checks `get_running_loop() is self._loop`; this is the rest.
        """
        if self._closed and not self._closing:
            raise ClosedError(f"this {self._what} is closed")
        self._check_home()
        if self._closing:
            return
        running = asyncio.get_running_loop()
        if self._home is None:
            self._home = running
            self._starting = asyncio.Lock()
        assert self._starting is not None
        async with self._starting:
            if self._loop is None and not self._closed:
                await self._start()
                self._loop = running
                if self._closed:  # that `close` found nothing to end
                    await self.close()
        if self._closed:
            raise ClosedError(f"this {self._what} was closed while it started")

    def _check_home(self) -> None:
        """Raise `ClientError` in another process or event loop than the one of the client: what it
        waits for would never happen there."""
        if os.getpid() != self._process:
            raise ClientError(
                f"this {self._what} was made in process {self._process} and the process was forked "
                f"since: close it before forking, or start processes by the method 'spawn', "
                f"and make a new {self._what} in each"
            )
        if self._home is not None and self._home is not asyncio.get_running_loop():
            raise ClientError(
                f"this {self._what} belongs to another event loop: make, use and close it within "
                f"one asyncio.run(), or use barnabas.sync.{self._what}"
            )

    async def _start(self) -> None:
        self._runtime = self._given_runtime or _real_runtime()
        self._cluster = Cluster(self._cluster_config, self._runtime)
        try:
            await self._cluster.start()
            await self._open()
        except BaseException:
            await self._cluster.close()
            raise

    async def _open(self) -> None:
        """Start the parts that a client has besides its cluster; for subclasses."""

    def _end(self) -> bool:
        """Refuse further use; True if the client was started and this is the first end."""
        if not self._closed:
            self._check_home()
        was_running = self._loop is not None
        self._closed = True
        self._loop = None
        return was_running


def _real_runtime() -> Runtime:
    # Imported only when used: a simulation must not load gRPC, which starts its own threads.
    from barnabas_common.transport.grpc_network import GrpcNetwork

    return Runtime(SystemClock(), system_randomness(), ThreadOffload(), GrpcNetwork())
