"""The broker as a process: the real clock, sockets, files and ZooKeeper, and the signals.

`run` returns the exit code: 0 after SIGTERM or SIGINT, 1 with one line on stderr if the broker
could not start or has failed.
"""

import asyncio
import faulthandler
import logging
import resource
import signal
import sys
from pathlib import Path

import uvloop
from barnabas_common.errors import BarnabasError
from barnabas_common.runtime import Pauses, Runtime, SystemClock, ThreadOffload, system_randomness
from barnabas_common.runtime.file_pauses import FilePauses
from barnabas_common.transport.grpc_network import GrpcNetwork
from barnabas_controller.zookeeper.kazoo_session import connect_kazoo
from barnabas_controller.zookeeper.session import ZooKeeperError

from barnabas_broker.config import Config, InvalidConfig, keys
from barnabas_broker.disk.disk import Disk, is_out_of_descriptors
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.disk.volatile_disk import VolatileDisk
from barnabas_broker.rpc.acceptor import Limits
from barnabas_broker.rpc.allocator import keep_freed_memory
from barnabas_broker.rpc.client_connections import ConnectionLimits
from barnabas_broker.rpc.grpc_server import GrpcListen
from barnabas_broker.server.broker import Broker, World
from barnabas_broker.server.descriptors import (
    count_segments,
    raise_descriptor_limit,
    share_descriptors,
)

logger = logging.getLogger(__name__)


def run(config: Config) -> int:
    """Run a broker until it is asked to stop, or fails."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
    )
    logging.getLogger("kazoo").setLevel(logging.WARNING)
    faulthandler.enable()  # gRPC's core is silenced, so it would abort the process silently
    keep_freed_memory()
    try:
        uvloop.run(_serve(config))
    except (BarnabasError, InvalidConfig, ZooKeeperError, OSError) as error:
        print(f"barnabas broker: {_describe(error)}", file=sys.stderr)
        return 1
    return 0


def _describe(error: Exception) -> str:
    """The error that ended the broker, in one line."""
    if isinstance(error, OSError) and is_out_of_descriptors(error):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return f"{error} (the limit of open files is {limit}; raise it)"
    return str(error)


class BrokerFailed(BarnabasError):
    """The broker stopped because it had failed."""


async def _serve(config: Config) -> None:
    config.check_broker()
    stop_asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_asked.set)
    offload = ThreadOffload()
    broker = Broker(config, _real_world(config, offload))
    try:
        if not await _started(broker, stop_asked):
            return
        reason = await _first_of(stop_asked, broker.failed)
        await broker.stop()
        if reason is not None:
            raise BrokerFailed(reason)
    finally:
        offload.close()


async def _started(broker: Broker, stop_asked: asyncio.Event) -> bool:
    """Start the broker; False if it was asked to stop before it had started."""
    starting = asyncio.ensure_future(broker.start())
    interrupt = asyncio.ensure_future(stop_asked.wait())
    interrupt.add_done_callback(lambda _: starting.cancel())
    try:
        await starting
    except asyncio.CancelledError:
        if stop_asked.is_set():
            return False
        raise
    finally:
        interrupt.cancel()
    return True


async def _first_of(stop_asked: asyncio.Event, failed: "asyncio.Future[str]") -> str | None:
    """Wait for a stop request (None) or a failure of the broker (its reason)."""
    failed.add_done_callback(lambda _: stop_asked.set())
    await stop_asked.wait()
    return failed.result() if failed.done() else None


def _real_world(config: Config, offload: ThreadOffload) -> World:
    limit = config[keys.SOCKET_REQUEST_MAX_BYTES]
    listen = GrpcListen(Limits(max_message_bytes=limit), _connection_limits(config))
    clock = SystemClock()
    return World(
        runtime=Runtime(
            clock=clock,
            randomness=system_randomness(),
            offload=offload,
            network=GrpcNetwork(max_message_bytes=limit),
            pauses=_pauses(config),
        ),
        disk=_disk(config, clock),
        listen=listen,
        connect_zookeeper=connect_kazoo(config[keys.ZOOKEEPER_CONNECT] or ""),
        count_connections=listen.count_connections,
    )


def _connection_limits(config: Config) -> ConnectionLimits:
    """The limits of each client listener. Raises TooFewDescriptors."""
    shares = share_descriptors(
        raise_descriptor_limit(),
        count_segments(config.log_directories),
        config[keys.MAX_CONNECTIONS],
    )
    logger.info(
        "of %d open files clients may hold %d as connections, %d are kept for the logs and brokers",
        shares.limit,
        shares.connections,
        shares.reserve,
    )
    return ConnectionLimits(
        max(shares.connections // (len(config.listeners) - 1), 1),
        config[keys.CONNECTIONS_MAX_IDLE_MS],
    )


def _disk(config: Config, clock: SystemClock) -> Disk:
    if config[keys.LOG_DISK] == "posix":
        return PosixDisk()
    logger.warning("log.disk=volatile: unflushed data is lost when this process ends")
    return VolatileDisk(PosixDisk(), clock.wall_ms)


def _pauses(config: Config) -> Pauses | None:
    directory = config[keys.PAUSE_DIRECTORY]
    if directory is None:
        return None
    logger.warning("pause points are controlled by files in %s", directory)
    return FilePauses(Path(directory), config[keys.BROKER_ID])
