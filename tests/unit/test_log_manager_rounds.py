"""The log manager's periodic tasks: retention, checkpoints, flushing."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_simulator.loop import VirtualLoop

from tests.support.log_manager_world import ManagerWorld, append
from tests.support.log_world import NOW


def run(scenario: Callable[[ManagerWorld], Coroutine[Any, Any, None]], **settings: str) -> None:
    """Run a scenario with these broker settings, on a loop whose time is also the clock's."""
    world = ManagerWorld({key.replace("_", "."): value for key, value in settings.items()})
    loop = VirtualLoop()

    async def whole() -> None:
        world.clock = _LoopClock(loop)
        await scenario(world)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(whole())


class _LoopClock:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.start_ms = NOW

    def monotonic(self) -> float:
        return self._loop.time()

    def wall_ms(self) -> int:
        return self.start_ms + int(self._loop.time() * 1000)


async def stopped(manager: LogManager) -> None:
    await manager.stop()
    manager.unlock_directories()


def names(world: ManagerWorld) -> list[str]:
    return [name for name in world.disk.list("/data/t-0") if ".log" in name]


def test_old_segments_are_renamed_at_once_and_removed_after_the_delay() -> None:
    async def scenario(world: ManagerWorld) -> None:
        manager = await world.start()
        log = await world.open(manager, retention_ms="1000", file_delete_delay_ms="60000")
        append(log, b"a", timestamp=NOW)
        log.roll()
        append(log, b"b", timestamp=NOW + 10**9)
        await asyncio.sleep(31)
        assert log.log_start_offset == 1
        assert names(world) == [f"{0:020d}.log.deleted", f"{1:020d}.log"]
        await asyncio.sleep(60)
        assert names(world) == [f"{1:020d}.log"]
        await stopped(manager)

    run(scenario)


def test_a_topic_whose_settings_are_not_known_yet_keeps_everything() -> None:
    async def scenario(world: ManagerWorld) -> None:
        manager = await world.start()
        append(await world.open(manager, retention_ms="-1"), b"a", timestamp=NOW - 10**12)
        await stopped(manager)
        manager = await world.start()
        await asyncio.sleep(400)
        assert manager.logs()[0].log_start_offset == 0
        log = await world.open(manager)
        await asyncio.sleep(400)
        assert log.log_start_offset == 1, "by the default of seven days it is old"
        await stopped(manager)

    run(scenario)


def test_recovery_points_are_written_from_time_to_time_after_a_roll_has_flushed() -> None:
    async def scenario(world: ManagerWorld) -> None:
        manager = await world.start()
        log = await world.open(manager)
        append(log, b"a")
        log.roll()
        append(log, b"b")
        await asyncio.sleep(91)
        assert log.recovery_point == 1
        path = "/data/recovery-point-offset-checkpoint"
        assert world.text(path) == "0\n1\nt 0 1\n"
        world.disk.crash(keep_unflushed=False)
        assert world.text(path) == "0\n1\nt 0 1\n"
        again = await world.start()
        assert again.logs()[0].log_end_offset >= 1

    run(scenario)


@pytest.mark.parametrize("by_topic", [True, False])
def test_flush_ms_bounds_the_age_of_what_is_not_flushed(by_topic: bool) -> None:
    async def scenario(world: ManagerWorld) -> None:
        manager = await world.start()
        await world.open(manager, "other")
        log = await world.open(manager, **({"flush_ms": "500"} if by_topic else {}))
        append(log, b"a")
        await asyncio.sleep(1.1)
        assert log.recovery_point == 1
        append(log, b"b")
        assert log.recovery_point == 1
        await asyncio.sleep(1.1)
        assert log.recovery_point == 2
        await stopped(manager)

    run(scenario, **({} if by_topic else {"log_flush_interval_ms": "500"}))


def test_a_clock_that_is_set_back_puts_off_no_flush() -> None:
    async def scenario(world: ManagerWorld) -> None:
        manager = await world.start()
        log = await world.open(manager, flush_ms="500")
        append(log, b"a")
        assert isinstance(world.clock, _LoopClock)
        world.clock.start_ms -= 3_600_000
        await asyncio.sleep(1.1)
        assert log.recovery_point == 1
        append(log, b"b")
        await asyncio.sleep(1.1)
        assert log.recovery_point == 2
        await stopped(manager)

    run(scenario)


def test_new_partitions_do_not_put_off_the_flushes_of_others() -> None:
    async def scenario(world: ManagerWorld) -> None:
        manager = await world.start()
        log = await world.open(manager, flush_ms="500")
        append(log, b"a")
        for partition in range(10):
            await world.open(manager, "other", partition)
            await asyncio.sleep(0.2)
        assert log.recovery_point == 1
        await stopped(manager)

    run(scenario)


def test_epochs_reach_the_disk_by_themselves() -> None:
    async def scenario(world: ManagerWorld) -> None:
        manager = await world.start()
        log = await world.open(manager)
        log.assign_epoch(4, 0)
        append(log, b"a", epoch=4)
        await asyncio.sleep(0.01)
        world.disk.crash(keep_unflushed=False)
        assert world.text("/data/t-0/leader-epoch-checkpoint") == "0\n1\n4 0\n"

    run(scenario)


def test_a_cut_lowers_the_checkpoints_before_it_happens() -> None:
    async def scenario(world: ManagerWorld) -> None:
        manager = await world.start()
        log = await world.open(manager)
        append(log, b"a")
        append(log, b"b")
        log.flush()
        log.maybe_increment_log_start_offset(2)
        await manager.checkpoint_all_offsets()
        log.truncate_to(1)
        assert world.text("/data/recovery-point-offset-checkpoint") == "0\n1\nt 0 1\n"
        assert world.text("/data/log-start-offset-checkpoint") == "0\n1\nt 0 1\n"
        await stopped(manager)

    run(scenario)
