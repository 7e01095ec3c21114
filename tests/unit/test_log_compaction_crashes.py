"""A pass that ends at any change of the disk: no record is lost, none comes back.

The process dies, or the power is lost; the next start may die too, at any of its own changes. At
the end a start always finds a log that a pass compacts correctly.
"""

import asyncio
import random
from contextlib import suppress

import pytest
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog

from tests.support.compacted import KeyedRecord, compact, newest, put, records_in
from tests.support.log_manager_world import ManagerWorld
from tests.support.mortal_disk import Killed, MortalDisk

SETTINGS = {
    "log.cleaner.enable": "false",
    "log.segment.delete.delay.ms": "0",
    "log.segment.bytes": "400",
    "log.index.interval.bytes": "100",
    "log.initial.task.delay.ms": "100000000",
}
TOPIC = {"cleanup_policy": "compact"}


async def prepared(seed: int) -> tuple[ManagerWorld, LogManager, UnifiedLog]:
    """Return a durable log of a dozen segments, a part of which was compacted before."""
    world = ManagerWorld(SETTINGS, MortalDisk(seed))
    manager = await world.start()
    log = await world.open(manager, **TOPIC)
    chance = random.Random(seed)
    for number in range(50):
        key = b"key-%d" % chance.randrange(8)
        put(log, (key, None if number % 9 == 8 else b"%d" % number), epoch=number // 10)
        if number == 20:
            log.roll()
            await manager.flush(log)
            await compact(manager, log, world.passes)
    log.roll()
    await manager.flush(log)
    await asyncio.sleep(0)
    return world, manager, log


async def died(world: ManagerWorld, power_loss: bool, tasks: set[asyncio.Task[None]]) -> None:
    left = asyncio.all_tasks() - tasks - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    assert isinstance(world.disk, MortalDisk)
    world.disk.crash(keep_unflushed=not power_loss)


def check(found: list[KeyedRecord], written: list[KeyedRecord]) -> None:
    assert set(found) <= set(written), "a record came back, or at another offset"
    assert set(newest(written)) <= set(found), "a record is lost"


async def one_life(seed: int, deadline: int, power_loss: bool) -> bool:
    """Run a pass that dies at change `deadline`; returns whether it died before its end."""
    tasks = asyncio.all_tasks()
    world, manager, log = await prepared(seed)
    written = records_in(log)
    disk = world.disk
    assert isinstance(disk, MortalDisk)
    disk.changes_left = deadline
    with suppress(Killed):
        await manager.cleaner.clean(log)
        await asyncio.sleep(0.001)  # the old segments are deleted in the background
    was_killed = disk.is_dead
    await died(world, power_loss, tasks)
    chance = random.Random(deadline)
    for _ in range(2):
        disk.changes_left = chance.randrange(12)
        with suppress(Killed):
            await world.start()
        await died(world, power_loss, tasks)
    manager = await world.start()
    log = await world.open(manager, **TOPIC)
    assert not log.cut_at_start
    assert not [name for name in disk.list("/data/t-0") if name.endswith((".cleaned", ".swap"))]
    check(records_in(log), written)
    assert (log.log_start_offset, log.log_end_offset) == (0, 50)
    log.update_high_watermark(50)
    log.flush()
    await manager.cleaner.clean(log)
    assert records_in(log) == newest(written)
    await manager.stop()
    return was_killed


@pytest.mark.lengthy
async def test_a_death_at_any_change_of_the_disk() -> None:
    """Every second death is a power loss, and each has its own place and seed."""
    deadline = 0
    while await one_life(deadline % 7, deadline, power_loss=deadline % 2 == 1):
        deadline += 1
    assert deadline > 60, "the pass should have more changes of the disk than that"


async def one_failure(seed: int, deadline: int) -> bool:
    """Run a pass in which change `deadline` fails; returns whether there were that many changes."""
    tasks = asyncio.all_tasks()
    world, manager, log = await prepared(seed)
    written = records_in(log)
    disk = world.disk
    assert isinstance(disk, MortalDisk)
    disk.changes_left, disk.only_fails = deadline, True
    await manager.cleaner.clean(log)
    await asyncio.sleep(0.001)
    has_failed = disk.changes_left < 0
    await died(world, False, tasks)
    manager = await world.start()
    log = await world.open(manager, **TOPIC)
    check(records_in(log), written)
    await manager.stop()
    return has_failed


@pytest.mark.lengthy
async def test_any_change_of_the_disk_may_fail_and_nothing_is_lost() -> None:
    deadline = 0
    while await one_failure(deadline % 7, deadline):
        deadline += 1
    assert deadline > 60
