"""Retention deletes segments that nothing has flushed yet, while the log is flushed."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pytest
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.runtime import InlineOffload
from barnabas_common.topic_partition import TopicPartition

from tests.support.log_manager_world import ManagerWorld, append
from tests.support.log_world import NOW

RECOVERY_POINTS = "/data/recovery-point-offset-checkpoint"
P = ParamSpec("P")
T = TypeVar("T")


class SlowRenames(InlineOffload):
    """Other work overtakes the renaming of deleted segments."""

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(30 if function.__name__ == "_mark_deleted" else 0):
            await asyncio.sleep(0)
        return await super().run(function, *args, **kwargs)


async def deleted(world: ManagerWorld) -> tuple[LogManager, UnifiedLog]:
    """A log whose records retention is about to delete, all of them; none was flushed."""
    manager = await world.start()
    manager.directories[0].write_history(17)
    log = await world.open(manager)
    await manager.flush(log)  # the name of the first segment is durable
    await manager.checkpoint_all_offsets()
    for value in (b"a", b"b", b"c"):
        append(log, value)
    assert log.delete_old_segments(NOW) == 1
    return manager, log


def a_world(flush_messages: int = 1000) -> ManagerWorld:
    settings = {"log.retention.bytes": "0", "log.flush.interval.messages": f"{flush_messages}"}
    return ManagerWorld(settings, offload=SlowRenames())


@pytest.mark.parametrize("flushes_at_append", [False, True])
@pytest.mark.parametrize("steps", range(20))
async def test_a_power_loss_finds_no_segment_that_was_not_flushed_below_the_recovery_point(
    steps: int, flushes_at_append: bool
) -> None:
    """Its replica would count as damaged."""
    world = a_world(4 if flushes_at_append else 1000)
    manager, log = await deleted(world)
    if flushes_at_append:
        append(log, b"d")
    for _ in range(steps):
        await asyncio.sleep(0)
    await manager.checkpoint_high_watermarks()
    await manager.checkpoint_all_offsets()
    stored_recovery_point = int(world.text(RECOVERY_POINTS).split()[-1])
    world.disk.crash(keep_unflushed=False)
    manager = await world.start()
    log = await world.open(manager)
    assert TopicPartition("t", 0) not in manager.lost
    assert log.damage is None
    assert log.log_end_offset >= stored_recovery_point
    await manager.stop()


async def test_the_recovery_point_rises_when_the_segments_have_their_new_names() -> None:
    world = a_world()
    manager, log = await deleted(world)
    for _ in range(50):
        await asyncio.sleep(0)
    assert log.recovery_point == 3
    await manager.stop()


async def test_a_clean_stop_in_the_middle_of_a_deletion_leaves_no_deleted_segment() -> None:
    world = a_world()
    manager, _ = await deleted(world)
    manager = await world.restart(manager)
    log = await world.open(manager)
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)
    await manager.stop()
