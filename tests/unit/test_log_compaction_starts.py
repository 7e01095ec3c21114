"""What is clean begins at the log start: a start that falls back makes what is below it dirty."""

import errno

import pytest
from barnabas_broker.disk.disk import Disk
from barnabas_broker.log.checkpoint import checkpoint_file
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog

from tests.support.compacted import compact, newest, put, records_in, seal
from tests.support.log_manager_world import ManagerWorld

SETTINGS = {
    "log.segment.delete.delay.ms": "0",
    "log.segment.bytes": "300",
    "log.initial.task.delay.ms": "100000000",
}
LOG_STARTS = "/data/log-start-offset-checkpoint"
LOG_START = 14  # in the middle of a segment, whose first records have newer ones below 14


async def with_a_raised_start(world: ManagerWorld) -> tuple[LogManager, UnifiedLog]:
    """A log of 30 records, whose start is 14; only the checkpoint does not have it yet."""
    manager = await world.start()
    log = await world.open(manager, cleanup_policy="compact")
    for number in range(30):
        put(log, (b"%d" % (number // 2), b"%d" % number))
    seal(log)
    await manager.checkpoint_all_offsets()
    log.maybe_increment_log_start_offset(LOG_START)
    return manager, log


async def compacted_from_its_start(world: ManagerWorld) -> tuple[LogManager, UnifiedLog]:
    """The same log after its first pass."""
    manager, log = await with_a_raised_start(world)
    await compact(manager, log, world.passes)
    assert world.passes[-1].first_dirty_offset == LOG_START
    assert log.segment_offsets[0] < LOG_START
    return manager, log


async def reopened(world: ManagerWorld) -> tuple[LogManager, UnifiedLog]:
    manager = await world.start()
    return manager, await world.open(manager, cleanup_policy="compact")


async def test_the_log_start_is_durable_before_what_is_above_it_counts_as_clean() -> None:
    world = ManagerWorld(SETTINGS)
    await compacted_from_its_start(world)
    world.disk.crash(keep_unflushed=False)
    _, log = await reopened(world)
    assert log.log_start_offset == LOG_START


async def test_so_it_is_before_the_first_pass() -> None:
    """A log that is found to be compacted counts as clean up to its start."""
    world = ManagerWorld(SETTINGS)
    manager = await world.start()
    log = await world.open(manager, cleanup_policy="compact", min_cleanable_dirty_ratio="1")
    for number in range(30):
        put(log, (b"%d" % (number // 2), b"%d" % number))
    log.maybe_increment_log_start_offset(LOG_START)
    log.flush()
    await manager.cleaner.clean_filthiest()
    assert not world.passes
    world.disk.crash(keep_unflushed=False)
    manager, log = await reopened(world)
    assert manager.cleaner.dirty(log).first_dirty_offset == log.log_start_offset == LOG_START


@pytest.mark.parametrize("is_clean", [True, False])
async def test_where_the_log_start_is_lost_everything_is_compacted_again(is_clean: bool) -> None:
    world = ManagerWorld(SETTINGS)
    manager, log = await compacted_from_its_start(world)
    if is_clean:
        await manager.stop()
        manager.unlock_directories()
    else:
        await manager.checkpoint_all_offsets()
        world.disk.crash(keep_unflushed=True)
    world.disk.spoil(LOG_STARTS)
    manager, log = await reopened(world)
    assert LOG_STARTS in manager.damaged_checkpoints()
    assert log.log_start_offset < LOG_START
    written = records_in(log)
    assert written != newest(written)
    await manager.checkpoint_all_offsets()  # the file is no longer damaged
    world.disk.crash(keep_unflushed=True)
    manager, log = await reopened(world)
    assert not log.cut_at_start
    assert records_in(log) == written
    assert manager.cleaner.dirty(log).first_dirty_offset == log.log_start_offset
    log.update_high_watermark(log.log_end_offset)
    log.flush()
    await compact(manager, log, world.passes)
    assert records_in(log) == newest(written)


@pytest.mark.parametrize(
    "also", ["recovery-point-offset-checkpoint", "t-0/leader-epoch-checkpoint"]
)
@pytest.mark.parametrize("keep_unflushed", [True, False])
async def test_gaps_of_compaction_stay_known_if_more_than_the_log_start_is_lost(
    keep_unflushed: bool, also: str
) -> None:
    """The recovery point is lost too; then only the clean offset shows that nothing is missing."""
    world = ManagerWorld(SETTINGS)
    manager = await world.start()
    log = await world.open(manager, cleanup_policy="compact")
    for number in range(30):  # the last record of each segment goes
        put(log, (b"%d" % ((number + 1) // 2), b"%d" % number))
    seal(log)
    await manager.checkpoint_all_offsets()
    await compact(manager, log, world.passes)
    manager.directories[0].write_history(17)
    await manager.checkpoint_high_watermarks()
    await manager.checkpoint_all_offsets()
    world.disk.crash(keep_unflushed=True)
    world.disk.spoil(f"/data/{also}")
    world.disk.spoil(LOG_STARTS)
    manager, log = await reopened(world)
    written = records_in(log)
    await manager.checkpoint_all_offsets()
    world.disk.crash(keep_unflushed=keep_unflushed)
    manager, log = await reopened(world)
    assert log.damage is None and not log.cut_at_start
    assert records_in(log) == written


async def test_no_pass_runs_while_the_log_start_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = ManagerWorld(SETTINGS)
    manager, log = await with_a_raised_start(world)
    stage = checkpoint_file._stage

    def without_descriptors(disk: Disk, path: str, data: bytes) -> str:
        if "log-start" in path:
            raise OSError(errno.EMFILE, "too many open files")
        return stage(disk, path, data)

    monkeypatch.setattr(checkpoint_file, "_stage", without_descriptors)
    await manager.cleaner.clean(log)
    monkeypatch.undo()
    world.disk.crash(keep_unflushed=True)
    manager, log = await reopened(world)
    assert manager.cleaner.dirty(log).first_dirty_offset == log.log_start_offset
