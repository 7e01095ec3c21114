"""The stamps of data directories that could not be written."""

import asyncio
import errno

from barnabas_common.events import EventKind
from barnabas_controller.store import znodes
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.config_world import events_of


def test_the_znode_does_not_pass_a_directory_that_could_not_be_stamped() -> None:
    """Otherwise the next start would treat the directory as an older copy with lost records."""

    async def story() -> None:
        cluster = SimulatedCluster()
        await cluster.start()
        broker = cluster.broker(1)
        disk = broker._world.disk
        write, is_short = disk.write_file, True

        def write_file(path: str, data: bytes, **options: bool) -> None:
            if is_short and path.endswith("stamp"):
                raise OSError(errno.EMFILE, "no file descriptor is left")
            write(path, data, **options)

        async def registered() -> int:
            assert broker.membership.store is not None
            path = znodes.log_dir_stamp_path(1)
            found = await broker.membership.store.get(path)
            return znodes.decode_log_dir_stamp(path, found[0]).stamp if found else 0

        disk.write_file = write_file  # type: ignore[method-assign]
        await asyncio.sleep(60)
        stamp = broker.log_manager.directories[0].read_stamp()
        assert await registered() <= stamp
        is_short = False
        await asyncio.sleep(60)
        renewed = broker.log_manager.directories[0].read_stamp()
        assert await registered() == renewed > stamp
        assert len(broker.log_manager.live_log_dirs()) == 1 and not broker.failed.done()

    run(story())


def test_a_directory_that_failed_is_no_older_copy_when_it_works_again() -> None:
    """Only the stamp could not be written, and nothing is lost."""

    async def story() -> None:
        cluster = SimulatedCluster()
        await cluster.start()
        disk, epoch = cluster.disks[1], cluster.broker(1).membership.broker_epoch
        write = disk.write_file

        def write_file(path: str, data: bytes, **options: bool) -> None:
            if path.endswith("stamp"):
                raise OSError(errno.EIO, "Input/output error")
            write(path, data, **options)

        disk.write_file = write_file  # type: ignore[method-assign]
        async with asyncio.timeout(60):
            while not cluster.exits:
                await asyncio.sleep(0.1)
        disk.write_file = write  # type: ignore[method-assign]
        cluster.start_broker(1)
        await cluster.serving()
        broker = cluster.broker(1)
        assert not events_of(cluster, 1, EventKind.LOG_DIRECTORY_OUTDATED)
        assert broker.membership.unbroken_since <= epoch < broker.membership.broker_epoch

    run(story())
