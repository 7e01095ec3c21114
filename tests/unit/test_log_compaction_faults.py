"""Compaction with damaged files, full disks and logs that change under a pass."""

import asyncio
import errno
from typing import Any

import pytest
from barnabas_broker.log.manager.compaction_pass import Pass
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.topic_partition import TopicPartition

from tests.support.compacted import KeyedRecord, compact, newest, put, records_in, seal
from tests.support.log_manager_world import ManagerWorld, settle
from tests.support.log_world import NOW

SETTINGS = {
    "log.cleaner.enable": "false",
    "log.cleaner.min.cleanable.ratio": "0",
    "log.segment.delete.delay.ms": "0",
    "log.segment.bytes": "300",
    "log.initial.task.delay.ms": "100000000",
}
FIRST = "/data/t-0/00000000000000000000"
CHECKPOINT = "/data/cleaner-offset-checkpoint"


@pytest.fixture
def world() -> ManagerWorld:
    return ManagerWorld(SETTINGS)


async def opened(world: ManagerWorld, name: str = "t") -> tuple[LogManager, UnifiedLog]:
    manager = await world.start()
    return manager, await filled(world, manager, name)


async def filled(world: ManagerWorld, manager: LogManager, name: str = "t") -> UnifiedLog:
    log = await world.open(manager, name, cleanup_policy="compact")
    for number in range(20):
        put(log, (b"%d" % (number % 3), b"%d" % number))
    seal(log)
    return log


async def killed(world: ManagerWorld, manager: LogManager) -> None:
    await manager.checkpoint_all_offsets()
    world.disk.crash(keep_unflushed=True)


async def reopened(world: ManagerWorld) -> UnifiedLog:
    manager = await world.start()
    return await world.open(manager, cleanup_policy="compact")


def write(world: ManagerWorld, path: str, data: bytes) -> None:
    world.disk.remove(path)
    world.disk.write_file(path, data)


# ---- files found at the start


@pytest.mark.parametrize("torn", [b"", b"\0" * 100, b"nonsense"])
async def test_a_torn_cleaned_segment_is_removed(world: ManagerWorld, torn: bytes) -> None:
    manager, log = await opened(world)
    written = records_in(log)
    await killed(world, manager)
    for suffix in (".log.cleaned", ".index.cleaned"):
        write(world, FIRST + suffix, torn)
    assert records_in(await reopened(world)) == written
    assert not [name for name in world.disk.list("/data/t-0") if "cleaned" in name]


@pytest.mark.parametrize("cut", [1, 40])
async def test_a_torn_swap_segment_gives_way_to_the_old_ones(world: ManagerWorld, cut: int) -> None:
    manager, log = await opened(world)
    written = records_in(log)
    await killed(world, manager)
    whole = world.disk.read_file(FIRST + ".log")
    write(world, FIRST + ".log.swap", whole[:-cut])
    assert records_in(await reopened(world)) == written
    assert not [name for name in world.disk.list("/data/t-0") if "swap" in name]


async def test_a_whole_swap_segment_takes_the_place_of_the_old_ones(world: ManagerWorld) -> None:
    manager, log = await opened(world)
    before = {n: world.disk.read_file(f"/data/t-0/{n}") for n in world.disk.list("/data/t-0")}
    expected = newest(records_in(log))
    await compact(manager, log, world.passes)
    await killed(world, manager)
    await asyncio.sleep(0.01)
    cleaned = world.disk.read_file(FIRST + ".log")
    for name, data in before.items():
        write(world, f"/data/t-0/{name}", data)
    write(world, FIRST + ".log.swap", cleaned)
    log = await reopened(world)
    assert not log.cut_at_start
    assert set(expected) <= set(records_in(log))
    assert len(records_in(log)) < 20


async def test_gaps_are_no_fault_when_the_recovery_points_are_lost(world: ManagerWorld) -> None:
    """The next start reads every segment, and must not mistake the gaps for lost records."""
    manager, log = await opened(world)
    await compact(manager, log, world.passes)
    for number in range(20):
        put(log, (b"%d" % (number % 3), b"new"))
    seal(log)
    await compact(manager, log, world.passes)
    expected = records_in(log)
    await killed(world, manager)
    world.disk.spoil("/data/recovery-point-offset-checkpoint")
    log = await reopened(world)
    assert not log.cut_at_start
    assert records_in(log) == expected


@pytest.mark.parametrize("line", ["t 0 999", "elsewhere 0 5", "t 7 1"])
async def test_a_checkpoint_that_cannot_be_of_this_log_is_not_used(
    world: ManagerWorld, line: str
) -> None:
    manager, log = await opened(world)
    expected = newest(records_in(log))
    await manager.stop()
    manager.unlock_directories()
    write(world, CHECKPOINT, f"0\n1\n{line}\n".encode())
    manager = await world.start()
    assert CHECKPOINT in manager.damaged_checkpoints()
    log = await world.open(manager, cleanup_policy="compact")
    await compact(manager, log, world.passes)
    assert records_in(log) == expected


async def test_a_wrong_clean_offset_does_not_return_when_the_log_has_grown(
    world: ManagerWorld,
) -> None:
    manager, _ = await opened(world)
    await manager.stop()
    manager.unlock_directories()
    write(world, CHECKPOINT, b"0\n1\nt 0 30\n")
    manager = await world.start()
    log = await world.open(manager, cleanup_policy="compact")
    for number in range(20):
        put(log, (b"new", b"%d" % number))
    manager = await world.restart(manager)
    assert CHECKPOINT not in manager.damaged_checkpoints()
    log = await world.open(manager, cleanup_policy="compact")
    assert manager.cleaner.dirty(log).first_dirty_offset == 0


@pytest.mark.parametrize("clean", [True, False])
async def test_gaps_are_no_fault_without_epochs_and_with_a_damaged_checkpoint(
    world: ManagerWorld, clean: bool
) -> None:
    """Every batch is read again then, and nothing says which logs are compacted."""
    manager, log = await opened(world)
    await compact(manager, log, world.passes)
    for number in range(20):
        put(log, (b"%d" % (number % 3), b"new"))
    seal(log)
    await compact(manager, log, world.passes)
    expected = records_in(log)
    if clean:
        await manager.stop()
        manager.unlock_directories()
    else:
        await killed(world, manager)
    world.disk.spoil(CHECKPOINT)
    world.disk.remove("/data/t-0/leader-epoch-checkpoint")
    log = await reopened(world)
    assert not log.cut_at_start
    assert records_in(log) == expected
    assert log.latest_epoch() == 0


async def test_a_damaged_checkpoint_costs_a_pass_over_everything(world: ManagerWorld) -> None:
    manager, log = await opened(world)
    await compact(manager, log, world.passes)
    await manager.stop()
    manager.unlock_directories()
    world.disk.spoil(CHECKPOINT)
    manager = await world.start()
    assert CHECKPOINT in manager.damaged_checkpoints()
    log = await world.open(manager, cleanup_policy="compact")
    assert manager.cleaner.dirty(log).first_dirty_offset == 0


# ---- faults in the middle of a pass


async def test_a_log_with_a_damaged_batch_is_left_out_and_the_others_go_on(
    world: ManagerWorld,
) -> None:
    manager, log = await opened(world)
    other = await filled(world, manager, "u")
    inode = world.disk._find(FIRST + ".log")
    inode.data[90] ^= 1  # type: ignore[union-attr]
    for _ in range(4):
        await manager.cleaner.clean_filthiest()
    assert len(records_in(other)) < 20
    assert [(r.topic_partition, r.will_retry) for r in world.passes if r.fault] == [
        (TopicPartition("t", 0), False)
    ]
    assert "CRC" in next(r.fault for r in world.passes if r.fault)
    assert not world.failures
    assert not log.is_failed


@pytest.mark.parametrize("free", [0, 50, 150])
async def test_a_full_disk_ends_the_pass_and_nothing_else(world: ManagerWorld, free: int) -> None:
    manager, log = await opened(world)
    written = records_in(log)
    await manager.checkpoint_all_offsets()
    world.disk.free_bytes = free
    assert not await manager.cleaner.clean(log)
    world.disk.repair()
    report = world.passes[-1]
    assert "space" in report.fault
    assert report.will_retry
    assert not world.failures
    found = records_in(log)
    assert set(newest(written)) <= set(found) <= set(written)
    assert not [name for name in world.disk.list("/data/t-0") if "cleaned" in name]
    put(log, (b"0", b"more"))
    seal(log)
    await compact(manager, log, world.passes)
    assert records_in(log) == newest([*written, (20, b"0", b"more")])


class Interrupting:
    """An offload that runs an action on the log before its n-th call."""

    def __init__(self, call: int, act: Any) -> None:
        self._left = call
        self._act = act

    async def run(self, function: Any, *arguments: Any) -> Any:
        await asyncio.sleep(0)
        self._left -= 1
        if self._left == 0:
            self._act()
        return function(*arguments)


def interrupted(manager: LogManager, call: int, act: Any) -> None:
    runtime = manager.cleaner._runtime
    object.__setattr__(runtime, "offload", Interrupting(call, act))


@pytest.mark.parametrize("call", range(1, 30, 2))
async def test_a_truncation_in_the_middle_of_a_pass_ends_it(world: ManagerWorld, call: int) -> None:
    """The truncated records never return."""
    manager, log = await opened(world)
    written = records_in(log)
    await manager.checkpoint_all_offsets()
    truncated: list[KeyedRecord] = []

    def truncate() -> None:
        log.truncate_to(7)
        truncated.extend(one for one in written if one[0] < 7)

    interrupted(manager, call, truncate)
    await manager.cleaner.clean(log)
    if not truncated:
        return
    new = [(log.log_end_offset + number, b"x", b"%d" % number) for number in range(5)]
    for _, key, value in new:
        put(log, (key, value))
    await settle()  # the truncated segments have their new names
    seal(log)
    left = records_in(log)
    assert set(new) <= set(left) <= {*truncated, *new}
    await manager.cleaner.clean(log)
    assert records_in(log) == newest(left)


@pytest.mark.parametrize("call", range(1, 30, 3))
async def test_a_deletion_in_the_middle_of_a_pass_ends_it(world: ManagerWorld, call: int) -> None:
    manager, log = await opened(world)
    await manager.checkpoint_all_offsets()
    deletion: list[asyncio.Task[None]] = []
    interrupted(
        manager,
        call,
        lambda: deletion.append(
            asyncio.get_running_loop().create_task(manager.delete(TopicPartition("t", 0)))
        ),
    )
    await manager.cleaner.clean(log)
    await asyncio.gather(*deletion)
    assert not world.failures
    assert not [report for report in world.passes if report.fault]
    log = await world.open(manager, cleanup_policy="compact")
    if deletion:
        assert records_in(log) == []


@pytest.mark.parametrize("call", range(1, 40))
async def test_old_segments_deleted_in_the_middle_of_a_pass_are_no_failed_disk(
    world: ManagerWorld, call: int
) -> None:
    manager, log = await opened(world)
    written = records_in(log)
    await manager.checkpoint_all_offsets()

    def delete() -> None:
        log.maybe_increment_log_start_offset(9)
        log.delete_old_segments(NOW)

    interrupted(manager, call, delete)
    await manager.cleaner.clean(log)
    await asyncio.sleep(0.01)  # the files go after their delay of 0 ms
    await manager.cleaner.clean(log)
    assert not world.failures and not log.is_failed
    assert not [report for report in world.passes if report.fault]
    assert set(newest(written)) <= set(records_in(log)) <= set(written)


async def test_a_log_with_a_damaged_header_is_left_out_and_the_others_go_on(
    world: ManagerWorld,
) -> None:
    manager, _ = await opened(world)
    await filled(world, manager, "u")
    manager = await world.restart(manager)
    log = await world.open(manager, cleanup_policy="compact")
    other = await world.open(manager, "u", cleanup_policy="compact")
    world.disk._find(FIRST + ".log").data[16] ^= 0xFF  # type: ignore[union-attr]
    for _ in range(4):
        await manager.cleaner.clean_filthiest()
    assert len(records_in(other)) < 20
    assert [(r.topic_partition.topic, r.will_retry) for r in world.passes if r.fault] == [
        ("t", False)
    ]
    assert not world.failures and not log.is_failed


async def test_a_log_whose_passes_come_to_their_ends_has_its_turn_by_what_is_dirty(
    world: ManagerWorld,
) -> None:
    manager, other = await opened(world, "u")
    log = await filled(world, manager)
    for one in (other, log):
        await compact(manager, one, world.passes)
        world.clock.now_ms += 5_000
    put(other, (b"0", b"little"))
    for number in range(20):
        put(log, (b"0", b"%d" % number))
    seal(other)
    seal(log)
    assert await manager.cleaner.clean_filthiest()
    assert world.passes[-1].topic_partition.topic == "t"


async def test_the_checkpoint_names_a_compacted_log_before_its_first_pass(
    world: ManagerWorld,
) -> None:
    """A follower has the gaps of its leader."""
    manager = await world.start()
    log = await world.open(manager, cleanup_policy="compact")
    put(log, (b"0", b"in the active segment"))
    assert not await manager.cleaner.clean_filthiest()
    assert world.text(CHECKPOINT) == "0\n1\nt 0 0\n"


async def test_what_an_earlier_pass_could_not_remove_is_written_over(world: ManagerWorld) -> None:
    manager, log = await opened(world)
    written = records_in(log)
    world.disk.write_file(FIRST + ".log.cleaned", b"left over")
    await compact(manager, log, world.passes)
    assert records_in(log) == newest(written)


async def test_the_clean_offset_of_a_lost_log_does_not_count_for_the_one_that_replaces_it(
    world: ManagerWorld,
) -> None:
    manager, log = await opened(world)
    await compact(manager, log, world.passes)
    await killed(world, manager)
    world.disk.remove_tree("/data/t-0")
    manager = await world.start()
    await manager.checkpoint_all_offsets()
    log = await filled(world, manager)
    assert manager.cleaner.dirty(log).first_dirty_offset == 0


async def test_the_cleaner_runs_by_itself(world: ManagerWorld) -> None:
    world.settings |= {"log.cleaner.enable": "true", "log.cleaner.backoff.ms": "1"}
    manager, log = await opened(world)
    expected = newest(records_in(log))
    async with asyncio.timeout(10):
        while records_in(log) != expected:
            await asyncio.sleep(0.001)
    assert world.clock.now_ms == NOW
    await manager.stop()


async def test_a_pass_may_end_when_another_cleaner_has_seen_that_the_log_is_compacted_no_more(
    world: ManagerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its topic's settings changed, or its directory failed, while the pass came to its end."""
    manager, log = await opened(world)
    finish = manager.cleaner._clean

    async def then_changed(work: Pass) -> bool:
        has_ended = await finish(work)
        manager.configure("t", lambda _: world.config.log_config({}))
        await manager.cleaner.clean_filthiest()
        return has_ended

    monkeypatch.setattr(manager.cleaner, "_clean", then_changed)
    assert await manager.cleaner.clean(log)
    await manager.stop()


@pytest.mark.parametrize("what", ["rename", "sync_directory"])
@pytest.mark.parametrize("number", range(1, 17))
async def test_a_full_disk_at_any_step_leaves_a_sound_log(
    world: ManagerWorld, monkeypatch: pytest.MonkeyPatch, what: str, number: int
) -> None:
    """Either the directory is out of use, or the log is as if there had been no pass."""
    manager, log = await opened(world)
    expected, real, calls = newest(records_in(log)), getattr(world.disk, what), iter(range(1, 100))

    def full(*args: object, **kwargs: object) -> None:
        if next(calls) == number:
            raise OSError(errno.ENOSPC, "no space left on device")
        real(*args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(world.disk, what, full)
        await manager.cleaner.clean(log)
    if not log.is_failed:
        for offset in range(3):
            put(log, (b"%d" % offset, b"new"))
        seal(log)
        await manager.cleaner.clean(log)
        log.truncate_to(10)
        put(log, (b"after", b"the truncation"))
        expected = records_in(log)
        await killed(world, manager)
    else:
        assert world.failures == [("/data", errno.ENOSPC)]
        await manager.stop()
        manager.unlock_directories()
    again = await reopened(world)
    assert set(expected) <= set(records_in(again))
    if not log.is_failed:
        assert records_in(again) == expected
