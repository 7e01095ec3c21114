"""Each kind of checkpoint, shortened or overwritten: reported exactly, and no record is lost."""

from collections.abc import Callable

import pytest
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.topic_partition import TopicPartition

from tests.support.log_manager_world import ManagerWorld, append
from tests.support.log_world import FOLDER, LogWorld, read_all

Damage = Callable[[bytes], bytes]

DAMAGES: dict[str, Damage] = {
    "cut in the middle of a line": lambda data: data[: len(data) - 3],
    "cut in the middle of a number": lambda data: data[:-1],
    "one line short": lambda data: b"\n".join(data.splitlines()[:-1]) + b"\n",
    "of another version": lambda data: b"7" + data[1:],
    "zeros, as after a power loss": lambda data: bytes(len(data)),
    "garbage": lambda _: b"\x80\xff garbage \n\n 12 x",
    "a negative number": lambda data: data[:-2] + b"-" + data[-2:],
}
OFFSET_FILES = (
    "replication-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
)
EPOCHS = "t-0/leader-epoch-checkpoint"


async def _world() -> ManagerWorld:
    """Return one log with offsets 2 to 5 and epochs 3 and 4, closed cleanly."""
    world = ManagerWorld()
    manager = await world.start()
    log = await world.open(manager)
    append(log, b"a", b"b", b"c", epoch=3)
    append(log, b"d", epoch=4)
    append(log, b"e", epoch=4)
    log.maybe_increment_log_start_offset(2)
    await manager.stop()
    manager.unlock_directories()
    return world


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", OFFSET_FILES)
async def test_a_damaged_offset_checkpoint_costs_no_record(name: str, damage: str) -> None:
    world = await _world()
    path = f"/data/{name}"
    world.disk.write_file(path, DAMAGES[damage](world.disk.read_file(path)))
    manager = await world.start()
    log = manager.get(TopicPartition("t", 0))
    assert log is not None
    assert list(manager.damaged_checkpoints()) == [path], "said once, and of that file alone"
    assert log.log_end_offset == 5
    assert log.leader_epochs.entries[-1] == (4, 3)
    # The content of a damaged file counts as never written: the lowest valid value applies.
    assert log.log_start_offset == (0 if name == "log-start-offset-checkpoint" else 2)
    expected = log.log_start_offset if name == "replication-offset-checkpoint" else 5
    assert log.high_watermark == expected
    await manager.stop()


@pytest.mark.parametrize("damage", DAMAGES)
async def test_damaged_epochs_are_read_from_the_batches_again(damage: str) -> None:
    world = await _world()
    path = f"/data/{EPOCHS}"
    before = world.disk.read_file(path)
    world.disk.write_file(path, DAMAGES[damage](before))
    manager = await world.start()
    log = manager.get(TopicPartition("t", 0))
    assert log is not None
    assert log.damaged_epochs
    assert [tuple(entry) for entry in log.leader_epochs.entries] == [(3, 2), (4, 3)]
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (2, 5, 5)
    await manager.stop()
    assert world.disk.read_file(path) == before


@pytest.mark.parametrize("content", [b"0\n1\n3 2\n", b"0\n1\n2 0\n", b"0\n2\n2 0\n3 2\n"])
async def test_so_are_epochs_from_before_the_last_one(content: bytes) -> None:
    world = await _world()
    path = f"/data/{EPOCHS}"
    before = world.disk.read_file(path)
    world.disk.write_file(path, content)
    manager = await world.start()
    log = manager.get(TopicPartition("t", 0))
    assert log is not None
    assert log.damaged_epochs.endswith("the batch at offset 4 has epoch 4")
    assert [tuple(entry) for entry in log.leader_epochs.entries] == [(3, 2), (4, 3)]
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (2, 5, 5)
    manager = await world.restart(manager)
    again = manager.get(TopicPartition("t", 0))
    assert again is not None and not again.damaged_epochs
    await manager.stop()
    assert world.disk.read_file(path) == before


async def test_epochs_that_one_batch_contradicts_are_believed() -> None:
    """They may be older, but the batch may also have a wrong epoch, and seem newer than it is."""
    world = await _world()
    manager = await world.start()
    await manager.write_history(unbroken_since=1)
    log = manager.get(TopicPartition("t", 0))
    assert log is not None
    before = world.disk.read_file(f"/data/{EPOCHS}")
    append(log, b"f", epoch=5)
    await manager.stop()
    manager.unlock_directories()
    world.disk.write_file(f"/data/{EPOCHS}", before)
    for _ in range(2):
        manager = await world.start()
        assert "leader epoch 5 at offset 5, and 4 in the file" in str(manager.lost.describe())
        await manager.stop()
        manager.unlock_directories()
    world.disk.remove(f"/data/{EPOCHS}")  # the operator knows better
    manager = await world.start()
    log = manager.get(TopicPartition("t", 0))
    assert log is not None and log.log_end_offset == 6
    assert [tuple(entry) for entry in log.leader_epochs.entries[1:]] == [(4, 3), (5, 5)]
    await manager.stop()


def of_two_epochs(world: LogWorld) -> UnifiedLog:
    """A log with a closed segment, in which epoch 3 begins at 0 and epoch 4 at 2."""
    log = world.open()
    world.append(log, b"a", b"b", epoch=3)
    world.append(log, b"c", b"d", epoch=4)
    log.roll()
    return log


@pytest.mark.parametrize("is_unbroken", [True, False], ids=["a kill", "a power loss"])
@pytest.mark.parametrize("recovery_point", [5, 7, 8])
@pytest.mark.parametrize("older", [b"0\n1\n3 0\n", b"0\n2\n2 0\n3 2\n"])
def test_after_a_kill_older_epochs_are_noticed_too(
    older: bytes, recovery_point: int, is_unbroken: bool
) -> None:
    """Only the last segment is read then, and epoch 4 began before it."""
    world = LogWorld()
    log = of_two_epochs(world)
    world.append(log, b"e", b"f", b"g", epoch=4)
    world.append(log, b"h", epoch=5)
    log.flush()
    path = f"{FOLDER}/leader-epoch-checkpoint"
    before = world.disk.read_file(path)
    world.disk.write_file(path, older)
    checkpoint = LogCheckpoint(recovery_point, 0, 8, is_unbroken=is_unbroken)
    again = world.open(checkpoint)
    assert again.damaged_epochs.endswith("the batch at offset 2 has epoch 4")
    assert [tuple(entry) for entry in again.leader_epochs.entries] == [(3, 0), (4, 2), (5, 7)]
    again.epoch_file.write()
    assert world.disk.read_file(path) == before
    assert not world.open(checkpoint).damaged_epochs


@pytest.mark.parametrize("log_start_offset", [0, 2, 3, 4, 5, 8])
def test_after_a_kill_the_epochs_of_a_log_whose_start_was_raised_are_right(
    log_start_offset: int,
) -> None:
    world = LogWorld()
    log = of_two_epochs(world)
    world.append(log, *[b"e"] * 4, epoch=4)
    log.maybe_increment_log_start_offset(log_start_offset)
    log.flush()
    for stored in (0, log_start_offset):  # the checkpoint lags behind the epochs
        again = world.open(LogCheckpoint(8, stored, 8, is_unbroken=True))
        assert not again.damaged_epochs
        assert again.leader_epochs.entries[-1].epoch == 4


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_log_start_above_the_end_removes_nothing_where_nothing_was_lost(is_clean: bool) -> None:
    world = LogWorld()
    log = world.open()
    for number in range(5):
        world.append(log, b"%d" % number)
    log.flush()
    log.close()
    again = world.open(LogCheckpoint(5, 5_000, 5, is_clean, is_unbroken=True))
    assert (again.log_start_offset, again.log_end_offset) == (0, 5)
    assert len(read_all(again)) == again.size_bytes > 0


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("wrong", [3, 4, 5])
async def test_a_log_start_that_is_too_high_hides_no_record(wrong: int, is_killed: bool) -> None:
    """A changed digit makes another valid number; the leader epochs say where the log starts."""
    world = ManagerWorld()
    manager = await world.start()
    log = await world.open(manager)
    append(log, b"a", b"b", b"c", epoch=3)
    append(log, b"d", epoch=4)
    append(log, b"e", epoch=4)
    log.maybe_increment_log_start_offset(2)
    if is_killed:
        await manager.write_history(1)
        await manager.checkpoint_all_offsets()
        await manager.checkpoint_high_watermarks()
        await manager.flush(log)
        world.disk.crash(keep_unflushed=True)
    else:
        await manager.stop()
        manager.unlock_directories()
    path = "/data/log-start-offset-checkpoint"
    assert world.text(path) == "0\n1\nt 0 2\n"
    world.disk.write_file(path, b"0\n1\nt 0 %d\n" % wrong)
    again = (await world.start()).get(TopicPartition("t", 0))
    assert again is not None
    assert (again.log_start_offset, again.log_end_offset) == (2, 5)
    assert [tuple(entry) for entry in again.leader_epochs.entries] == [(3, 2), (4, 3)]
