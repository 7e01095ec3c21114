"""A compaction ends where the durable part of its log ends."""

from tests.support.idempotent import sent
from tests.support.log_manager_world import ManagerWorld
from tests.support.log_world import NOW


async def test_nothing_is_compacted_that_a_power_loss_could_remove() -> None:
    world = ManagerWorld()
    manager = await world.start()
    log = await world.open(manager, cleanup_policy="compact")
    for sequence in range(2):
        log.roll()
        log.append_as_leader(sent(b"a", sequence=sequence, key=b"k"), 0, NOW)
    log.update_high_watermark(2)
    assert log.last_stable_offset == 2 and log.recovery_point == 0
    assert manager.cleaner.dirty(log).first_uncleanable_offset == 0
    await manager.flush(log)
    assert manager.cleaner.dirty(log).first_uncleanable_offset == 1
    await manager.stop()
