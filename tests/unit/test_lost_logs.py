"""Which logs count as lost: a checkpoint names them, and no folder explains their absence."""

import asyncio

import pytest
from barnabas_broker.log.errors import LostLogError
from barnabas_broker.log.manager.log_manager import LogManager
from barnabas_common.topic_partition import TopicPartition

from tests.support.log_manager_world import TOPIC_ID, ManagerWorld, append

TP = TopicPartition("t", 0)
HIGH_WATERMARKS = "/data/replication-offset-checkpoint"
RECOVERY_POINTS = "/data/recovery-point-offset-checkpoint"


async def _had_clean_shutdown() -> ManagerWorld:
    """Return a world with one log of two committed records, after a clean shutdown."""
    world = ManagerWorld()
    manager = await world.start()
    append(await world.open(manager), b"a", b"b")
    await manager.stop()
    manager.unlock_directories()
    return world


async def test_a_log_in_the_isr_is_not_replaced_by_an_empty_one() -> None:
    world = await _had_clean_shutdown()
    world.disk.remove_tree("/data/t-0")
    manager = await world.start()
    assert manager.lost.describe() == {
        TP: "its folder is missing from /data; its high watermark was 2"
    }
    config = world.config.log_config()
    with pytest.raises(LostLogError, match="its folder is missing"):
        await manager.get_or_create(TP, TOPIC_ID, config, is_new=False, in_sync=True)
    assert not world.disk.exists("/data/t-0")
    log = await manager.get_or_create(TP, TOPIC_ID, config, is_new=False, in_sync=False)
    assert log.log_end_offset == 0
    assert TP not in manager.lost
    await manager.stop()


@pytest.mark.parametrize("in_order", [True, False])
async def test_it_is_remembered_until_there_is_a_log_again(in_order: bool) -> None:
    world = await _had_clean_shutdown()
    world.disk.remove_tree("/data/t-0")
    for _ in range(3):
        manager = await world.start()
        assert TP in manager.lost
        await manager.checkpoint_high_watermarks()
        if in_order:
            await manager.stop()
            manager.unlock_directories()
        else:
            world.disk.crash(keep_unflushed=True)
    assert "t 0 2" in world.text(HIGH_WATERMARKS)


async def _with_a_deleted_record() -> ManagerWorld:
    """Return a world with one log, whose first of two records is deleted, after a clean stop."""
    world = ManagerWorld()
    manager = await world.start()
    log = await world.open(manager)
    append(log, b"deleted", b"kept")
    log.maybe_increment_log_start_offset(1)
    await manager.stop()
    manager.unlock_directories()
    return world


async def _comes_back(world: ManagerWorld, in_order: bool) -> LogManager:
    """Start without the folder of t-0, write the checkpoints, and start with it again."""
    world.disk.rename("/data/t-0", "/elsewhere")
    manager = await world.start()
    assert TP in manager.lost
    for directory in manager.directories:
        await manager.checkpoint_offsets(directory)
    if in_order:
        await manager.stop()
        manager.unlock_directories()
    else:
        world.disk.crash(keep_unflushed=True)
    world.disk.rename("/elsewhere", "/data/t-0")
    return await world.start()


@pytest.mark.parametrize("in_order", [True, False])
async def test_deleted_records_stay_deleted_when_a_lost_log_comes_back(in_order: bool) -> None:
    manager = await _comes_back(await _with_a_deleted_record(), in_order)
    found = manager.get(TP)
    assert found is not None and (found.log_start_offset, found.log_end_offset) == (1, 2)
    await manager.stop()


async def test_the_start_of_a_lost_log_does_not_count_for_the_one_that_replaces_it() -> None:
    world = await _with_a_deleted_record()
    world.disk.remove_tree("/data/t-0")
    manager = await world.restart(await world.start())
    append(await world.open(manager), b"a", b"b")
    manager = await world.restart(manager)
    found = manager.get(TP)
    assert found is not None and (found.log_start_offset, found.log_end_offset) == (0, 2)
    await manager.stop()


async def test_a_deleted_replica_is_lost_no_more() -> None:
    world = await _had_clean_shutdown()
    world.disk.remove_tree("/data/t-0")
    manager = await world.start()
    await manager.delete(TP)
    manager = await world.restart(manager)
    assert TP not in manager.lost
    await manager.stop()


async def test_the_recovery_points_name_it_too() -> None:
    world = await _had_clean_shutdown()
    world.disk.remove(HIGH_WATERMARKS)
    world.disk.remove_tree("/data/t-0")
    manager = await world.start()
    assert TP in manager.lost
    await manager.stop()


async def test_a_folder_on_its_way_out_is_no_loss() -> None:
    """The broker died between the rename and the checkpoint."""
    world = await _had_clean_shutdown()
    world.disk.rename("/data/t-0", f"/data/t-0.{'ab' * 16}-delete")
    manager = await world.start()
    assert TP not in manager.lost
    await manager.stop()


async def test_a_folder_that_was_on_its_way_out_is_no_loss_after_a_second_crash() -> None:
    """The crash came before the next checkpoint."""
    world = await _had_clean_shutdown()
    world.disk.rename("/data/t-0", f"/data/t-0.{'ab' * 16}-delete")
    await world.start()
    async with asyncio.timeout(5):
        while world.disk.exists(f"/data/t-0.{'ab' * 16}-delete"):
            await asyncio.sleep(0)
    world.disk.crash(keep_unflushed=True)
    manager = await world.start()
    assert not manager.lost
    await manager.stop()


async def test_a_log_that_moved_to_another_directory_is_no_loss() -> None:
    world = await _had_clean_shutdown()
    world.settings["log.dirs"] = "/data,/more"
    world.disk.make_directory("/more")
    world.disk.rename("/data/t-0", "/more/t-0")
    manager = await world.start()
    assert TP not in manager.lost
    assert manager.get(TP) is not None
    await manager.stop()


async def test_the_recovery_point_of_a_lost_log_does_not_count_for_the_one_that_replaces_it() -> (
    None
):
    """Another log is truncated before the next checkpoint, which writes all recovery points."""
    world = await _had_clean_shutdown()
    manager = await world.start()
    other = await world.open(manager, "other")
    append(other, b"c")
    append(other, b"d")
    await manager.stop()
    manager.unlock_directories()
    world.disk.remove_tree("/data/t-0")
    manager = await world.start()
    config = world.config.log_config()
    await manager.get_or_create(TP, TOPIC_ID, config, is_new=False, in_sync=False)
    kept = manager.get(TopicPartition("other", 0))
    assert kept is not None
    kept.truncate_to(1)
    assert "t 0 0" in world.text(RECOVERY_POINTS) and "other 0 1" in world.text(RECOVERY_POINTS)
    await manager.stop()


async def test_after_a_power_loss_a_log_that_ends_below_what_was_flushed_is_damaged() -> None:
    """What is below the recovery point and the high watermark in the checkpoints was flushed."""
    world = ManagerWorld()
    manager = await world.start()
    manager.directories[0].write_history(17)  # so that the disk is not a new one at the next start
    log = await world.open(manager)
    append(log, b"a")
    size = log.size_bytes
    append(log, b"b")
    log.flush()
    await manager.checkpoint_all_offsets()
    await manager.checkpoint_high_watermarks()
    world.disk.crash(keep_unflushed=False)
    path = "/data/t-0/00000000000000000000.log"
    world.disk.write_file(path, world.disk.read_file(path)[:size])
    manager = await world.start()
    assert TP in manager.lost
    await manager.stop()
