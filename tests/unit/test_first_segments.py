"""First segments of a log that are gone, after a kill: lost, or deleted by the log itself."""

import errno
import os
from dataclasses import replace

import pytest
from barnabas_broker.disk.disk import File
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk

from tests.support.log_manager_world import ManagerWorld, append, settle
from tests.support.log_world import FOLDER, NOW, LogWorld
from tests.support.mortal_disk import Killed, MortalDisk

KILLED = LogCheckpoint(15, 0, 15, is_unbroken=True)
POWER_LOST = LogCheckpoint(15, 0, 15, flushed_up_to=15)
WITHOUT_CHECKPOINTS = LogCheckpoint()
AFTER = pytest.mark.parametrize(
    "checkpoint",
    [KILLED, POWER_LOST, WITHOUT_CHECKPOINTS],
    ids=["a kill", "a power loss", "the replica has left the ISR"],
)


def written(disk: MemoryDisk | None = None) -> tuple[LogWorld, UnifiedLog]:
    """Return a flushed log of three segments with five batches each."""
    world = LogWorld(disk=disk or MemoryDisk())
    log = world.open()
    for number in range(15):
        if number and number % 5 == 0:
            log.roll()
        world.append(log, b"value %d" % number, epoch=3)
    log.flush()
    return world, log


def lose(world: LogWorld, *bases: int) -> None:
    """Remove all files of these segments."""
    for name in world.names():
        if any(name.startswith(f"{base:020}") for base in bases):
            world.disk.remove(f"{FOLDER}/{name}")


@AFTER
@pytest.mark.parametrize("bases", [(0,), (0, 5)])
def test_lost_first_segments_are_noticed(checkpoint: LogCheckpoint, bases: tuple[int, ...]) -> None:
    world, _ = written()
    lose(world, *bases)
    log = world.open(checkpoint)
    assert log.misses_batches and log.damage is not None
    assert log.damage.offset == 0
    assert (log.log_start_offset, log.log_end_offset) == (bases[-1] + 5, 15)


def test_so_is_one_behind_a_raised_log_start() -> None:
    world, log = written()
    log.maybe_increment_log_start_offset(3)
    log.flush()
    lose(world, 0)
    again = world.open(replace(KILLED, log_start_offset=3))
    assert again.damage is not None and again.damage.offset == 3


def test_and_one_in_front_of_a_segment_that_is_being_deleted() -> None:
    world, _ = written()
    lose(world, 0)
    name = f"{FOLDER}/{5:020}.log"
    world.disk.rename(name, name + ".deleted")
    log = world.open(KILLED)
    assert log.damage is not None and log.damage.offset == 0


@AFTER
def test_nothing_is_lost_below_the_log_start(checkpoint: LogCheckpoint) -> None:
    world, log = written()
    log.maybe_increment_log_start_offset(7)
    assert log.delete_old_segments(NOW) == 1
    log.flush()
    again = world.open(replace(checkpoint, log_start_offset=7))
    assert (again.log_start_offset, again.misses_batches) == (7, False)
    again = world.open(checkpoint)
    assert (again.log_start_offset, again.misses_batches) == (5, False), "its checkpoint lags"


@pytest.mark.parametrize("keep_unflushed", [True, False], ids=["killed", "power lost"])
def test_a_death_at_any_change_of_a_deletion_or_of_the_start_after_it_loses_nothing(
    keep_unflushed: bool,
) -> None:
    """Segments that have the name of deleted ones go only when the epoch file is durable."""
    checkpoint = replace(KILLED, is_unbroken=keep_unflushed)
    for changes in range(10_000):
        disk = MortalDisk(seed=changes)
        world, log = written(disk)
        for segment in log.segments()[:2]:
            segment.mark_deleted()
        disk.sync_directory(FOLDER)
        disk.crash(keep_unflushed)
        disk.changes_left = changes
        has_died = False
        try:
            world.open(checkpoint)
        except Killed:
            has_died = True
        disk.crash(keep_unflushed)
        again = world.open(checkpoint)
        assert (again.log_start_offset, again.misses_batches) == (10, False)
        if not has_died:
            assert changes > 3, "the start made changes"
            return
    raise AssertionError("the start does not end")


class NoDescriptorForEpochs(MemoryDisk):
    """No epoch file can be written while `is_short`."""

    is_short = False

    def open(self, path: str, *, create: bool = False) -> File:
        if self.is_short and "leader-epoch" in path:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().open(path, create=create)


async def test_deleted_segments_stay_until_the_epoch_file_is_written() -> None:
    disk = NoDescriptorForEpochs()
    world = ManagerWorld(disk=disk)
    manager = await world.start()
    log = await world.open(manager, retention_bytes="0", file_delete_delay_ms="0")
    append(log, b"a", epoch=3)
    log.roll()
    append(log, b"b", epoch=3)
    await settle()
    await manager.write_history(1)
    await manager.checkpoint_all_offsets()
    await manager.checkpoint_high_watermarks()
    disk.is_short = True
    assert log.delete_old_segments(NOW) == 2
    await settle()
    disk.is_short = False
    disk.crash(keep_unflushed=True)
    again = (await world.start()).get(TopicPartition("t", 0))
    assert again is not None
    assert (again.log_start_offset, again.misses_batches) == (2, False)
