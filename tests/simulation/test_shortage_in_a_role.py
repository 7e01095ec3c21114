"""A role that cannot be taken for lack of a file descriptor is taken when it is sent again."""

from barnabas_common.errors.error_code import ErrorCode
from barnabas_simulator.disk import MemoryDisk
from barnabas_simulator.loop import run

from tests.support.replication_world import ReplicationWorld
from tests.support.scarce_disk import ScarceDisk


async def take_role(world: ReplicationWorld, broker_id: int) -> int:
    """Send the present state to a broker; returns the partition's error code."""
    response = await world.on(
        broker_id,
        world.incarnations[broker_id].manager.become_leader_or_follower(world.leader_and_isr()),
    )
    return response.partitions[0].error_code


def test_a_damaged_log_is_truncated_and_followed_at_the_second_attempt() -> None:
    async def scenario() -> None:
        world = ReplicationWorld()
        disk = ScarceDisk(MemoryDisk(7, world.clock.wall_ms))
        world.disks[2] = disk  # type: ignore[assignment]
        await world.start(1, 2)
        await world.create(2, 1)
        for value in (b"a", b"b", b"c"):
            assert (await world.produce(value)).error_code == ErrorCode.NONE
        await world.until_equal(1, 2)
        await world.on(2, world.incarnations[2].logs.flush(world.log(2)))
        await world.on(2, world.incarnations[2].logs.checkpoint_all_offsets())
        leadership = world.partition(2).lead()
        world.incarnations[2].manager.damaged.found(leadership, 1, "CRC")
        await world.elect(1, isr=(1,), but=2)
        disk.left = 0
        assert await take_role(world, 2) == ErrorCode.KAFKA_STORAGE_ERROR
        disk.left = None
        assert await take_role(world, 2) == ErrorCode.NONE
        truncations = [e for e in world.incarnations[2].events.since(0) if "rule" in e.details]
        assert [event.details["to_offset"] for event in truncations] == [1]
        await world.until_equal(1, 2)
        await world.until(lambda: world.isr() == (1, 2))

    run(scenario())
