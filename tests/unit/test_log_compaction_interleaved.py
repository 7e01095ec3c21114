"""A pass, and what happens beside it: checkpoints, truncations, other logs, its own end."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from barnabas_broker.config import LogConfig
from barnabas_broker.disk.page_cache import CachedFile
from barnabas_broker.log.compaction.cleanable import Cleanable, filthiest
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.topic_partition import TopicPartition

from tests.support import compacted
from tests.support.compacted import KeyedRecord, newest, put, records_in
from tests.support.log_manager_world import ManagerWorld
from tests.support.log_world import FakeClock
from tests.support.mortal_disk import Killed, MortalDisk

SETTINGS = {
    "log.cleaner.enable": "false",
    "log.cleaner.min.cleanable.ratio": "0",
    "log.segment.delete.delay.ms": "0",
    "log.segment.bytes": "300",
    "log.initial.task.delay.ms": "100000000",
}
NAME = TopicPartition("t", 0)


class WatchedDisk(MortalDisk):
    """`changes`: the renames and directory flushes, each with whether it ran off the event loop.
    `opened`: the `.cleaned` files."""

    def __init__(self) -> None:
        super().__init__()
        self.is_off_loop = False
        self.changes: list[tuple[str, bool]] = []
        self.opened: list[CachedFile] = []

    def rename(self, old: str, new: str, *, sync: bool = True) -> None:
        self.changes.append((f"{old} to {new}", self.is_off_loop))
        super().rename(old, new, sync=sync)

    def sync_directory(self, path: str) -> None:
        self.changes.append(("sync", self.is_off_loop))
        super().sync_directory(path)

    def _open(self, path: str, create: bool = False) -> CachedFile:
        file = super()._open(path, create)
        if path.endswith(".log.cleaned"):
            self.opened.append(file)
        return file


class Steps:
    """An offload that calls `before(number, function)` for each piece of work."""

    def __init__(self, disk: WatchedDisk, before: Callable[[int, Any], Any]) -> None:
        self._disk = disk
        self._before = before
        self._number = 0

    async def run(self, function: Any, *arguments: Any) -> Any:
        await asyncio.sleep(0)
        self._number += 1
        is_watched = getattr(function, "__name__", "") == "watched"
        result = self._before(self._number, arguments[0] if is_watched else function)
        if asyncio.iscoroutine(result):
            await result
        self._disk.is_off_loop = True
        try:
            return function(*arguments)
        finally:
            self._disk.is_off_loop = False


@pytest.fixture
def world() -> ManagerWorld:
    return ManagerWorld(SETTINGS, WatchedDisk())


def watch(world: ManagerWorld, manager: LogManager, before: Callable[[int, Any], Any]) -> None:
    assert isinstance(world.disk, WatchedDisk)
    offload = Steps(world.disk, before)
    object.__setattr__(manager.cleaner._runtime, "offload", offload)
    manager._background._offload = offload


async def filled(world: ManagerWorld, manager: LogManager, name: str = "t") -> UnifiedLog:
    log = await world.open(manager, name, cleanup_policy="compact")
    for number in range(20):
        put(log, (b"%d" % (number % 3), b"%d" % number))
    compacted.seal(log)
    return log


def named(function: Any) -> str:
    return str(getattr(function, "__name__", ""))


# ---- checkpoints


async def test_no_segment_is_replaced_before_the_recovery_point_is_on_the_disk(
    world: ManagerWorld,
) -> None:
    """A checkpoint that is being written says what it will hold, but a crash could come first."""
    manager = await world.start()
    log = await filled(world, manager)
    await manager.cleaner._note_new({log: manager.cleaner.dirty(log)})
    written = records_in(log)
    may_write = asyncio.Event()
    watch(world, manager, lambda _, f: may_write.wait() if named(f) == "_stage" else None)
    checkpoint = asyncio.create_task(manager.checkpoint_all_offsets())
    await asyncio.sleep(0)
    cleaning = asyncio.create_task(manager.cleaner.clean(log))
    for _ in range(500):
        await asyncio.sleep(0)
    assert records_in(log) == written
    may_write.set()
    await asyncio.gather(checkpoint, cleaning)
    assert records_in(log) == newest(written)


# ---- other logs


async def test_a_log_that_gives_up_every_time_does_not_keep_the_others_dirty(
    world: ManagerWorld,
) -> None:
    manager = await world.start()
    stuck = await filled(world, manager, "a")
    other = await filled(world, manager)
    assert manager.cleaner.dirty(stuck).dirty_ratio == manager.cleaner.dirty(other).dirty_ratio

    def truncate_at_every_step(_step: int, _function: Any) -> None:
        stuck.truncations += 1

    watch(world, manager, truncate_at_every_step)
    for _ in range(3):
        await manager.cleaner.clean_filthiest()
    assert len(records_in(stuck)) == 20, "it was truncated under each pass"
    assert len(records_in(other)) < 20


@pytest.mark.parametrize(
    ("failed_at", "chosen"),
    [
        ({}, "dirtiest"),
        ({"dirtiest": 1.0}, "dirty"),
        ({"dirtiest": 1.0, "dirty": 2.0}, "dirtiest"),
        ({"dirtiest": 3.0, "dirty": 2.0}, "dirty"),
        ({"clean": 1.0}, "dirtiest"),
    ],
)
def test_logs_whose_last_pass_failed_follow_the_others(
    failed_at: dict[str, float], chosen: str
) -> None:
    def facts(dirty: int) -> tuple[Cleanable, LogConfig]:
        return Cleanable(0, 10, 100 - dirty, dirty, False, ""), LogConfig()

    logs = {"clean": facts(0), "dirty": facts(80), "dirtiest": facts(90)}
    assert filthiest(logs, failed_at) == chosen


# ---- the event loop


class BusyClock(FakeClock):
    """Every turn of the event loop takes `turn` seconds."""

    turn = 0.0
    seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += self.turn
        return self.seconds


@pytest.mark.parametrize("turn", [0.0, 0.25])
async def test_a_pass_rests_while_the_event_loop_is_busy(
    turn: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = BusyClock()
    world = ManagerWorld(SETTINGS | {"log.cleaner.io.max.bytes.per.second": "1e300"}, clock=clock)
    manager = await world.start()
    log = await filled(world, manager)
    await manager.checkpoint_all_offsets()
    rests: list[float] = []
    sleep = asyncio.sleep

    async def no_sleep(seconds: float) -> None:
        rests.append(seconds)
        await sleep(0)

    clock.turn = turn
    monkeypatch.setattr("barnabas_broker.log.manager.log_cleaner.asyncio.sleep", no_sleep)
    assert await manager.cleaner.clean(log)
    assert max(rests) == pytest.approx(4 * turn)
    assert rests.count(4 * turn) > 5


# ---- the replacement


async def test_what_may_block_runs_off_the_event_loop(world: ManagerWorld) -> None:
    manager = await world.start()
    log = await filled(world, manager)
    await manager.checkpoint_all_offsets()
    watch(world, manager, lambda *_: None)
    disk = world.disk
    assert isinstance(disk, WatchedDisk)
    disk.changes.clear()
    await manager.cleaner.clean(log)
    on_loop = [what for what, off_loop in disk.changes if not off_loop]
    assert [one for one in on_loop if not one.endswith("-checkpoint")] == [
        one for one in on_loop if ".swap to " in one
    ], "only the last names are given on the loop, together with the switch"
    assert sum(".deleted" in what for what, _ in disk.changes) > 10


@pytest.mark.parametrize("power_loss", [False, True])
async def test_what_a_truncation_removed_in_the_middle_of_a_pass_is_not_back_after_a_crash(
    world: ManagerWorld, power_loss: bool
) -> None:
    """At every step. The old segments must not return, nor a `.swap` made of them."""
    step = 1
    while await one_truncation(ManagerWorld(SETTINGS, WatchedDisk()), step, power_loss):
        step += 1
    assert step > 20


async def one_truncation(world: ManagerWorld, step: int, power_loss: bool) -> bool:
    disk = world.disk
    assert isinstance(disk, MortalDisk)
    manager = await world.start()
    log = await filled(world, manager)
    await manager.checkpoint_all_offsets()
    written = records_in(log)
    new: list[KeyedRecord] = []

    def truncate(number: int, _: Any) -> None:
        if number != step:
            return
        log.truncate_to(8)
        for value in range(3):
            new.append((log.log_end_offset, b"new", b"%d" % value))
            put(log, (b"new", b"%d" % value))
        log.flush()
        disk.is_dead = True

    watch(world, manager, truncate)
    tasks = asyncio.all_tasks()
    with suppress(Killed):
        await manager.cleaner.clean(log)
    for task in asyncio.all_tasks() - tasks:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    if not new:
        return False
    disk.crash(keep_unflushed=not power_loss)
    manager = await world.start()
    log = await world.open(manager, cleanup_policy="compact")
    found = records_in(log)
    before = [one for one in written if one[0] < 8]
    assert set(found) <= {*before, *new}, "a truncated record is back"
    assert set(new) <= set(found), "a new record is lost"
    assert {one for one in found if one[0] < 8} >= {one for one in newest(written) if one[0] < 8}
    await manager.stop()
    return True


# ---- the end


@pytest.mark.parametrize("name", ["next", "open_segment", "prepare", "put_aside"])
async def test_a_pass_that_is_stopped_leaves_no_descriptor_and_no_file(
    world: ManagerWorld, name: str
) -> None:
    manager = await world.start()
    log = await filled(world, manager)
    await manager.checkpoint_all_offsets()
    expected = newest(records_in(log)), records_in(log)
    reached, may_go_on = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        reached.set()
        await may_go_on.wait()

    watch(world, manager, lambda _, function: wait() if named(function) == name else None)
    cleaning = asyncio.create_task(manager.cleaner.clean(log))
    async with asyncio.timeout(10):
        await reached.wait()
    cleaning.cancel()
    await asyncio.sleep(0)
    may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await cleaning
    assert set(expected[0]) <= set(records_in(log)) <= set(expected[1])
    names = world.disk.list("/data/t-0")
    assert not [one for one in names if one.endswith((".cleaned", ".swap"))]
    in_use = [segment.log for segment in log.segments()]
    assert isinstance(world.disk, WatchedDisk)
    left = [f for f in world.disk.opened if f._incarnation >= 0 and f not in in_use]
    assert not left
    await manager.stop()
    manager.unlock_directories()
    manager = await world.start()
    log = await world.open(manager, cleanup_policy="compact")
    assert set(expected[0]) <= set(records_in(log)) <= set(expected[1])
