"""A start cuts a log at damage. The checkpoints of the directory must not say more than is left."""

import pytest
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_common.record.batch import batches
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk

from tests.support.log_manager_world import ManagerWorld, append
from tests.support.log_world import read_all, values_in

T0 = TopicPartition("t", 0)
FOLDER = "/data/t-0"
SETTINGS = {"log.index.interval.bytes": "0", "log.segment.delete.delay.ms": "0"}


async def cut_at_four(seed: int = 0) -> tuple[ManagerWorld, LogManager]:
    """Ten flushed records; after a power loss the fifth is damaged."""
    world = ManagerWorld(SETTINGS, MemoryDisk(seed))
    manager = await world.start()
    log = await world.open(manager)
    for number in range(10):
        append(log, b"%d" % number)
    log.flush()
    await manager.checkpoint_all_offsets()
    world.disk.crash(keep_unflushed=False)
    path = f"{FOLDER}/{0:020}.log"
    data = bytearray(world.disk.read_file(path))
    fifth = [position for position, _ in batches(bytes(data))][4]
    data[fifth + 65] ^= 1
    world.disk.write_file(path, bytes(data))
    return world, await world.start()


@pytest.mark.parametrize("seed", range(20))
async def test_what_is_appended_after_the_cut_does_not_count_as_flushed(seed: int) -> None:
    world, manager = await cut_at_four(seed)
    log = await world.open(manager)
    assert (log.log_end_offset, log.recovery_point) == (4, 4)
    for number in range(4, 9):
        append(log, b"new %d" % number)
        if number in (5, 7):
            log.roll()
    world.disk.sync_directory(FOLDER)  # the names of the new segments, not what is in them
    world.disk.crash(keep_unflushed=False)
    log = await world.open(await world.start())
    values = values_in(read_all(log))
    written = [b"%d" % n for n in range(4)] + [b"new %d" % n for n in range(4, 9)]
    assert values == written[: len(values)], "no gap, and nothing torn"
    assert log.log_end_offset == len(values)


async def test_the_log_is_still_known_as_compacted() -> None:
    world = ManagerWorld(SETTINGS)
    manager = await world.start()
    append(await world.open(manager), b"a")
    await manager.stop()
    manager.unlock_directories()
    world.disk.write_file("/data/cleaner-offset-checkpoint", b"0\n1\nt 0 9\n")
    path = f"{FOLDER}/{0:020}.log"
    data = world.disk.read_file(path)
    world.disk.write_file(path, data + b"torn")
    world.disk.remove("/data/.kafka_cleanshutdown")
    manager = await world.start()
    log = await world.open(manager)
    assert log.cut_at_start and log.log_end_offset == 1
    assert world.text("/data/cleaner-offset-checkpoint") == "0\n1\nt 0 1\n"
    assert not manager.damaged_checkpoints()


async def test_a_start_that_died_after_the_cut_changes_nothing_about_that() -> None:
    world, _ = await cut_at_four()
    world.disk.crash(keep_unflushed=True)
    world.disk.write_file("/data/recovery-point-offset-checkpoint", b"0\n1\nt 0 10\n")
    await world.start()
    assert world.text("/data/recovery-point-offset-checkpoint") == "0\n1\nt 0 4\n"
