"""The stamps of the data directories while no file descriptor is left."""

import asyncio
import errno

from barnabas_controller.store import znodes
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run


def test_the_znode_does_not_pass_a_directory_that_could_not_be_stamped() -> None:
    """Else the next start would take the directory for an older copy, and its records for lost."""

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
            return znodes.decode_log_dir_stamp(path, found[0]) if found else 0

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
