"""The broker as a process: the real clock, sockets, files and ZooKeeper, and the signals.

`run` returns the exit code: 0 after SIGTERM or SIGINT, 1 with one line on stderr when the broker
could not start or could not go on.
"""

import asyncio
import logging
import resource
import signal
import sys
from pathlib import Path

import uvloop
from barnabas.errors import BarnabasError
from barnabas.runtime import Pauses, Runtime, SystemClock, ThreadOffload, system_randomness
from barnabas.runtime.file_pauses import FilePauses
from barnabas.runtime.grpc_network import GrpcNetwork
from barnabas_controller.zookeeper.kazoo_session import connect_kazoo
from barnabas_controller.zookeeper.session import ZooKeeperError

from barnabas_broker.config import Config, InvalidConfig, keys
from barnabas_broker.disk.disk import Disk
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.disk.volatile_disk import VolatileDisk
from barnabas_broker.rpc.allocator import keep_freed_memory
from barnabas_broker.rpc.grpc_server import grpc_listen
from barnabas_broker.server.broker import Broker, World

logger = logging.getLogger(__name__)


def run(config: Config) -> int:
    """Run a broker until it is told to stop."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)-7s %(name)s: %(message)s",
    )
    logging.getLogger("kazoo").setLevel(logging.WARNING)
    _raise_descriptor_limit()
    keep_freed_memory()
    try:
        uvloop.run(_serve(config))
    except (BarnabasError, InvalidConfig, ZooKeeperError, OSError) as error:
        print(f"barnabas broker: {error}", file=sys.stderr)
        return 1
    return 0


class BrokerFailed(BarnabasError):
    """The broker had to stop by itself."""


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
    """Start the broker; False if it was asked to stop before it had."""
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
    """Wait until asked to stop (None) or until the broker has failed (why)."""
    failed.add_done_callback(lambda _: stop_asked.set())
    await stop_asked.wait()
    return failed.result() if failed.done() else None


def _real_world(config: Config, offload: ThreadOffload) -> World:
    limit = config[keys.SOCKET_REQUEST_MAX_BYTES]
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
        listen=grpc_listen(max_message_bytes=limit),
        connect_zookeeper=connect_kazoo(config[keys.ZOOKEEPER_CONNECT] or ""),
    )


def _disk(config: Config, clock: SystemClock) -> Disk:
    if config[keys.LOG_DISK] == "posix":
        return PosixDisk()
    logger.warning("log.disk=volatile: what is not flushed dies with this process")
    return VolatileDisk(PosixDisk(), clock.wall_ms)


def _pauses(config: Config) -> Pauses | None:
    directory = config[keys.PAUSE_DIRECTORY]
    if directory is None:
        return None
    logger.warning("pause points are worked by files in %s", directory)
    return FilePauses(Path(directory), config[keys.BROKER_ID])


def _raise_descriptor_limit() -> None:
    """Two open files per segment: the soft limit of 1024 is too low for many partitions."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
