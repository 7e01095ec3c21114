"""A checkpointed high watermark never counts for records that a log has received since it was cut.

Otherwise a log with a torn end would seem to have lost committed records, and be refused.
"""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pytest
from barnabas_broker.log.checkpoint.checkpoint_file import encode_offsets
from barnabas_broker.log.errors import OutOfDescriptorsError
from barnabas_broker.log.manager import log_background_work
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_broker.log.manager.offset_checkpoints import RECOVERY_POINTS, OffsetCheckpoints
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk

from tests.support.log_manager_world import TOPIC_ID, ManagerWorld, append, settle
from tests.support.log_world import NOW, produced
from tests.support.scarce_disk import ScarceDisk

TP = TopicPartition("t", 0)
P = ParamSpec("P")
T = TypeVar("T")
HIGH_WATERMARKS = "/data/replication-offset-checkpoint"


async def _start(world: ManagerWorld) -> LogManager:
    """Start as a broker does that has registered."""
    manager = await world.start()
    await manager.write_history(unbroken_since=1)
    return manager


async def _with_five_committed(world: ManagerWorld, manager: LogManager) -> UnifiedLog:
    """Return a log of five committed batches, two of them flushed, and a checkpoint that says 5."""
    log = await world.open(manager)
    for number in range(5):
        append(log, b"%d" % number)
        if number == 1:
            log.flush()
    await settle()  # the epoch file is written
    await manager.checkpoint_high_watermarks()
    return log


def _append_and_die(world: ManagerWorld, log: UnifiedLog) -> None:
    """Append a batch that is not committed, and half of another; then the process is killed."""
    batch = produced(b"not committed")
    log.append_as_leader(batch, 1, NOW)
    base = log.active_segment_offset
    world.disk.open(f"{log.directory}/{base:020}.log").append([batch[: len(batch) // 2]])
    world.disk.crash(keep_unflushed=True)


async def _check_opened(world: ManagerWorld, end: int, high_watermark: int) -> None:
    manager = await _start(world)
    assert manager.lost.describe() == {}
    log = manager.get(TP)
    assert log is not None and log.log_end_offset == end
    assert log.high_watermark == high_watermark
    await manager.stop()


async def test_a_log_that_was_truncated_opens_with_a_torn_end() -> None:
    world = ManagerWorld()
    log = await _with_five_committed(world, await _start(world))
    log.truncate_to(2)
    _append_and_die(world, log)
    await _check_opened(world, end=3, high_watermark=2)


@pytest.mark.parametrize("end", [3, 1])
async def test_so_does_one_that_receives_nothing_before_the_death(end: int) -> None:
    world = ManagerWorld()
    log = await _with_five_committed(world, await _start(world))
    log.truncate_to(end)
    world.disk.crash(keep_unflushed=True)
    await _check_opened(world, end, high_watermark=end)


@pytest.mark.parametrize("seed", range(4))
async def test_so_does_one_that_is_truncated_before_a_power_loss(seed: int) -> None:
    world = ManagerWorld(disk=MemoryDisk(seed))
    manager = await _start(world)
    log = await _with_five_committed(world, manager)
    log.flush()
    await manager.checkpoint_all_offsets()
    log.truncate_to(1)
    world.disk.crash(keep_unflushed=False)
    manager = await _start(world)
    assert manager.lost.describe() == {}
    world.disk.crash(keep_unflushed=True)
    await _check_opened(world, end=1, high_watermark=1)


async def test_so_does_one_that_was_started_over_below_its_end() -> None:
    world = ManagerWorld()
    log = await _with_five_committed(world, await _start(world))
    log.truncate_fully_and_start_at(1)
    _append_and_die(world, log)
    await _check_opened(world, end=2, high_watermark=1)


@pytest.mark.parametrize("seed", range(4))
async def test_so_does_one_whose_end_was_lost_with_the_power(seed: int) -> None:
    world = ManagerWorld(disk=MemoryDisk(seed))
    await _with_five_committed(world, await _start(world))
    world.disk.crash(keep_unflushed=False)
    manager = await _start(world)
    log = manager.get(TP)
    assert log is not None
    end = log.log_end_offset
    _append_and_die(world, log)
    await _check_opened(world, end=end + 1, high_watermark=end)


async def test_so_does_one_that_the_power_loss_ended_at_a_batch() -> None:
    """Nothing is torn, so nothing is truncated."""
    world = ManagerWorld()
    log = await _with_five_committed(world, await _start(world))
    size = len(log.read(0, 1 << 20, 2))
    world.disk.crash(keep_unflushed=False)
    world.disk.open(f"{log.directory}/{0:020}.log").truncate(size)
    log = await world.open(await _start(world))
    assert log.log_end_offset == 2
    _append_and_die(world, log)
    await _check_opened(world, end=3, high_watermark=2)


async def test_so_does_one_that_replaces_a_lost_log() -> None:
    world = ManagerWorld()
    manager = await _start(world)
    await _with_five_committed(world, manager)
    await manager.stop()
    manager.unlock_directories()
    world.disk.remove_tree("/data/t-0")
    manager = await _start(world)
    config = world.config.log_config()
    log = await manager.get_or_create(TP, TOPIC_ID, config, is_new=False, in_sync=False)
    _append_and_die(world, log)
    await _check_opened(world, end=1, high_watermark=0)


async def test_what_is_damaged_below_the_truncation_is_still_refused() -> None:
    world = ManagerWorld()
    log = await _with_five_committed(world, await _start(world))
    log.truncate_to(2)
    path = f"{log.directory}/{0:020}.log"
    _append_and_die(world, log)
    data = bytearray(world.disk.read_file(path))
    data[len(produced(b"0")) - 1] ^= 1
    world.disk.write_file(path, bytes(data))
    manager = await _start(world)
    assert "damaged at offset 0, below its high watermark 2" in manager.lost.describe()[TP]
    await manager.stop()


async def test_the_checkpoint_is_made_durable_once_for_all_logs_truncated_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = ManagerWorld()
    manager = await _start(world)
    logs = [await world.open(manager, "many", number) for number in range(20)]
    for log in logs:
        append(log, b"a", epoch=0)
        append(log, b"b", epoch=0)
    await settle()  # the epoch files are written
    await manager.checkpoint_high_watermarks()
    durable: list[str] = []
    write_file = world.disk.write_file

    def noted(path: str, data: bytes, *, private: bool = False) -> None:
        durable.append(path)
        write_file(path, data, private=private)

    monkeypatch.setattr(world.disk, "write_file", noted)
    for log in logs:
        log.truncate_to(1)
    for log in logs:
        log.append_as_leader(produced(b"c"), 1, NOW)
    assert durable.count(HIGH_WATERMARKS) == 1
    assert "many 0 1\n" in world.text(HIGH_WATERMARKS)
    await manager.stop()


async def test_a_truncation_of_uncommitted_records_writes_nothing() -> None:
    world = ManagerWorld()
    log = await _with_five_committed(world, await _start(world))
    log.append_as_leader(produced(b"not committed"), 0, NOW)
    renamed: list[str] = []
    world.disk.on_rename = renamed.append
    log.truncate_to(5)
    log.append_as_leader(produced(b"again"), 1, NOW)
    assert HIGH_WATERMARKS not in renamed


class _Meanwhile:
    """An offload that is so slow that `meanwhile` comes between the write and the rename."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self._meanwhile: list[Callable[[], None]] = [meanwhile]

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        result = function(*args, **kwargs)
        while self._meanwhile:
            self._meanwhile.pop()()
        return result


async def test_a_write_in_progress_does_not_bring_back_what_was_lowered() -> None:
    disk = MemoryDisk()
    disk.make_directory("/data")
    checkpoints = OffsetCheckpoints(disk, "/data")
    live = {TP: 5}
    await checkpoints.write_high_watermarks(lambda: dict(live), _Meanwhile(lambda: None))

    def truncated_and_appended() -> None:
        checkpoints.lower(TP, 2)
        live[TP] = 2
        checkpoints.before_first_append(TP)
        assert checkpoints.read().high_watermarks == {TP: 2}

    await checkpoints.write_high_watermarks(lambda: dict(live), _Meanwhile(truncated_and_appended))
    assert checkpoints.read().high_watermarks == {TP: 2}


async def test_a_write_while_a_lost_log_is_replaced_lowers_its_line_later() -> None:
    disk = MemoryDisk()
    disk.make_directory("/data")
    checkpoints = OffsetCheckpoints(disk, "/data")
    offload = _Meanwhile(lambda: None)
    await checkpoints.write_high_watermarks(lambda: {TP: 5}, offload)
    checkpoints.begin(TP)
    await checkpoints.write_high_watermarks(lambda: {TP: 5}, offload)
    checkpoints.before_first_append(TP)
    assert checkpoints.read().high_watermarks == {TP: 0}


async def test_what_a_truncation_lowered_is_neither_raised_nor_lowered_again() -> None:
    disk = MemoryDisk()
    disk.make_directory("/data")
    checkpoints = OffsetCheckpoints(disk, "/data")
    offload = _Meanwhile(lambda: None)

    async def write(high_watermark: int) -> None:
        await checkpoints.write_high_watermarks(lambda: {TP: high_watermark}, offload)

    await write(50)
    checkpoints.log_ends_at(TP, 10)
    checkpoints.before_first_append(TP)
    checkpoints.log_ends_at(TP, 20)  # what was appended was not committed
    checkpoints.before_first_append(TP)
    assert checkpoints.read().high_watermarks == {TP: 10}
    await write(20)
    checkpoints.log_ends_at(TP, 15)
    await write(15)
    await write(30)
    checkpoints.before_first_append(TP)
    assert checkpoints.read().high_watermarks == {TP: 30}


async def test_what_was_truncated_does_not_count_as_flushed() -> None:
    """Else compaction would remove records because of later ones that a power loss takes."""
    disk = MemoryDisk()
    disk.make_directory("/data")
    disk.write_file(f"/data/{RECOVERY_POINTS}", encode_offsets({TP: 8}))
    checkpoints = OffsetCheckpoints(disk, "/data")
    checkpoints.read()
    assert checkpoints.durable_recovery_point(TP) == 8
    checkpoints.lower(TP, 3)
    assert checkpoints.durable_recovery_point(TP) == 3
    checkpoints.lower(TP, 5)
    assert checkpoints.durable_recovery_point(TP) == 3


async def test_without_a_file_descriptor_to_lower_it_nothing_is_appended() -> None:
    disk = ScarceDisk(MemoryDisk())
    world = ManagerWorld(disk=disk)  # type: ignore[arg-type]
    manager = await _start(world)
    log = await _with_five_committed(world, manager)
    disk.left = 0
    with pytest.raises(OutOfDescriptorsError):
        log.truncate_to(2)
    disk.left = None
    assert log.log_end_offset == 5 and "t 0 5\n" in world.text(HIGH_WATERMARKS)
    log.truncate_to(2)
    disk.left = 0
    for _ in range(2):
        with pytest.raises(OutOfDescriptorsError):
            log.append_as_leader(produced(b"a"), 1, NOW)
    disk.left = None
    assert log.log_end_offset == 2 and "t 0 2\n" in world.text(HIGH_WATERMARKS)
    log.append_as_leader(produced(b"a"), 1, NOW)
    assert log.log_end_offset == 3 and "t 0 2\n" in world.text(HIGH_WATERMARKS)
    await manager.stop()


async def test_a_log_deleted_after_its_truncation_is_not_named_again() -> None:
    world = ManagerWorld()
    manager = await _start(world)
    log = await _with_five_committed(world, manager)
    other = await world.open(manager, "other")
    append(other, b"a")
    append(other, b"b")
    await manager.checkpoint_high_watermarks()
    log.truncate_to(2)
    await manager.delete(TP)
    other.truncate_to(1)
    append(other, b"c")
    assert world.text(HIGH_WATERMARKS) == "0\n1\nother 0 1\n"
    await manager.stop()


async def test_a_line_is_not_raised_as_long_as_the_epoch_file_lacks_an_epoch() -> None:
    """Recovery relies on it: below the line every batch has the epoch that the file says."""
    world = ManagerWorld()
    manager = await _start(world)
    log = await _with_five_committed(world, manager)
    assert "t 0 5\n" in world.text(HIGH_WATERMARKS)
    append(log, b"5", epoch=9)
    await manager.checkpoint_high_watermarks()
    assert "t 0 5\n" in world.text(HIGH_WATERMARKS)
    await settle()  # the epoch file is written
    assert "9 5\n" in world.text(log.epoch_file.path)
    await manager.checkpoint_high_watermarks()
    assert "t 0 6\n" in world.text(HIGH_WATERMARKS)
    await manager.stop()


async def test_nor_does_a_lowered_line_rise_again_meanwhile() -> None:
    world = ManagerWorld()
    manager = await _start(world)
    log = await _with_five_committed(world, manager)
    log.truncate_to(3)
    append(log, b"new", b"new", epoch=9)
    await manager.checkpoint_high_watermarks()
    assert "t 0 3\n" in world.text(HIGH_WATERMARKS)
    await settle()
    await manager.checkpoint_high_watermarks()
    assert "t 0 5\n" in world.text(HIGH_WATERMARKS)
    await manager.stop()


async def test_an_epoch_file_that_could_not_be_written_holds_it_back_for_a_short_time_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_background_work, "RETRY_SECONDS", 0.01)
    disk = ScarceDisk(MemoryDisk())
    world = ManagerWorld(disk=disk)  # type: ignore[arg-type]
    manager = await _start(world)
    log = await _with_five_committed(world, manager)
    disk.left = 0
    append(log, b"5", epoch=9)
    await settle()
    assert disk.refused and not log.epoch_file.is_durable
    disk.left = None
    async with asyncio.timeout(10):
        while not log.epoch_file.is_durable:
            await asyncio.sleep(0.01)
    await manager.checkpoint_high_watermarks()
    assert "t 0 6\n" in world.text(HIGH_WATERMARKS)
    await manager.stop()


async def test_a_clean_stop_writes_what_was_held_back() -> None:
    """The stop comes before the background has written the new epoch."""
    world = ManagerWorld()
    manager = await _start(world)
    log = await _with_five_committed(world, manager)
    append(log, b"5", epoch=9)
    await manager.stop()
    assert "t 0 6\n" in world.text(HIGH_WATERMARKS)
    assert "9 5\n" in world.text(log.epoch_file.path)


async def test_the_line_of_a_damaged_log_that_was_opened_again_rises_too() -> None:
    """Its epochs are from the batches, and are written to the file."""
    world = ManagerWorld()
    manager = await _start(world)
    log = await _with_five_committed(world, manager)
    world.disk.crash(keep_unflushed=True)
    path = f"{log.directory}/{0:020}.log"
    data = bytearray(world.disk.read_file(path))
    data[-1] ^= 1
    world.disk.write_file(path, bytes(data))
    manager = await _start(world)
    assert TP in manager.lost
    log = await world.open(manager)
    append(log, b"new")
    await settle()
    await manager.checkpoint_high_watermarks()
    assert f"t 0 {log.high_watermark}\n" in world.text(HIGH_WATERMARKS)
    await manager.stop()
