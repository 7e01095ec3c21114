"""A fault affects one place only: bad batches, failed disks, lost sessions, restarts."""

import asyncio

from barnabas_broker.disk.page_cache import CachedFile
from barnabas_broker.log.checkpoint.checkpoint_file import decode_offsets
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run

from tests.support.raw import batch
from tests.support.replication_world import TP, ReplicationWorld

OTHER = TopicPartition("flights", 1)


async def two_partitions(*brokers: int) -> ReplicationWorld:
    world = ReplicationWorld()
    await world.start(*brokers)
    await world.create(*brokers)
    await world.create(*brokers, key=OTHER)
    for key in (TP, OTHER):
        assert (await world.produce(b"a", key=key)).error_code == ErrorCode.NONE
        await world.until_equal(*brokers, key=key)
    return world


def flip_last_bit(world: ReplicationWorld, broker_id: int) -> None:
    """Change the last byte of the first segment on a broker's disk."""
    path = f"/data/{TP}/00000000000000000000.log"
    file = world.disks[broker_id].open(path)
    assert isinstance(file, CachedFile)
    file.inode.data[-1] ^= 1


def test_a_corrupt_batch_holds_up_its_own_partition_only_and_is_fetched_again() -> None:
    async def scenario() -> None:
        world = await two_partitions(1, 2)
        world.kill(2)
        await world.elect(1, isr=(1,))
        await world.produce(b"b")
        flip_last_bit(world, 1)
        await world.start(2)
        for key in (TP, OTHER):
            await world.announce(key, only=2)
        started = asyncio.get_running_loop().time()
        for number in range(5):
            result = await world.produce(b"%d" % number, key=OTHER)
            assert result.error_code == ErrorCode.NONE
        assert asyncio.get_running_loop().time() - started < 0.5
        await asyncio.sleep(3.0)
        assert world.values(2) == [b"a"]
        flip_last_bit(world, 1)
        await world.until_equal(1, 2)
        assert world.values(2) == [b"a", b"b"]

    run(scenario())


def test_a_followers_failed_disk_takes_it_out_of_the_isr_and_the_leader_goes_on() -> None:
    async def scenario() -> None:
        world = await two_partitions(1, 2, 3)
        world.disks[3].broken = True
        first = await world.produce(b"b", timeout_ms=120_000)
        assert first.error_code == ErrorCode.NONE
        assert world.isr() == (1, 2)
        assert world.partition(3).offline
        response = await world.on(
            3, world.incarnations[3].manager.become_leader_or_follower(world.leader_and_isr())
        )
        assert response.partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR

    run(scenario())


def test_a_leaders_failed_disk_is_told_to_producers_and_consumers() -> None:
    async def scenario() -> None:
        world = await two_partitions(1, 2)
        world.cut(1, 2)
        waiting = asyncio.ensure_future(world.produce(b"waiting"))
        await asyncio.sleep(0.1)
        world.disks[1].broken = True
        for _ in range(2):
            assert (await world.produce(b"b")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (await waiting).error_code == ErrorCode.KAFKA_STORAGE_ERROR

    run(scenario())


def test_a_disk_that_fails_in_the_middle_of_a_request_is_told_for_the_appends_before() -> None:
    async def scenario() -> None:
        world = await two_partitions(1, 2)
        world.cut(1, 2)
        records = batch(b"x" * 100)
        world.disks[1].free_bytes = len(records) + 10  # enough for the first append only
        parts = [ProducePartition(*key, records) for key in (TP, OTHER)]
        produces = world.incarnations[1].manager.produces
        started = asyncio.get_running_loop().time()
        response = await world.on(1, produces.produce(ProduceRequest(-1, 5000, parts)))
        assert response is not None
        codes = [ErrorCode(item.error_code) for item in response.partitions]
        assert codes == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
        assert asyncio.get_running_loop().time() - started < 1.0

    run(scenario())


def test_a_full_disk_writes_nothing() -> None:
    async def scenario() -> None:
        world = await two_partitions(1, 2)
        world.disks[1].free_bytes = 10
        assert (await world.produce(b"b")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        world.disks[1].free_bytes = None
        world.kill(1)
        await world.start(1)
        await world.elect(1)
        assert world.values(1) == [b"a"]
        assert (await world.produce(b"b")).error_code == ErrorCode.NONE

    run(scenario())


def test_a_leader_that_restarts_has_lost_the_session_and_gets_a_new_one() -> None:
    async def scenario() -> None:
        world = await two_partitions(1, 2)
        world.kill(1)
        await world.start(1)
        await world.elect(1)
        await world.elect(1, key=OTHER)
        assert (await world.produce(b"b")).error_code == ErrorCode.NONE
        assert (await world.produce(b"b", key=OTHER)).error_code == ErrorCode.NONE

    run(scenario())


def test_a_follower_whose_leader_has_no_address_waits_for_it() -> None:
    async def scenario() -> None:
        world = ReplicationWorld()
        await world.start(1, 2)
        await world.create(1, 2)
        await world.produce(b"a")
        world.kill(2)
        await world.elect(1, isr=(1,))
        await world.start(2)
        request = world.leader_and_isr()
        request.live_leaders = []
        await world.on(2, world.incarnations[2].manager.become_leader_or_follower(request))
        await asyncio.sleep(5.0)
        assert world.values(2) == [b"a"]
        await world.produce(b"b", acks=1)
        await asyncio.sleep(5.0)
        assert world.values(2) == [b"a"]
        await world.update_metadata()
        await world.until_equal(1, 2)
        assert world.values(2) == [b"a", b"b"]

    run(scenario())


def test_a_new_partition_is_fetched_at_once_though_a_fetch_is_parked() -> None:
    async def scenario() -> None:
        world = await two_partitions(1, 2)
        await asyncio.sleep(0.2)  # the follower's fetch is parked for 500 ms
        third = TopicPartition("flights", 2)
        await world.create(1, 2, key=third)
        started = asyncio.get_running_loop().time()
        assert (await world.produce(b"a", key=third)).error_code == ErrorCode.NONE
        assert asyncio.get_running_loop().time() - started < 0.02

    run(scenario())


def test_the_high_watermark_survives_a_clean_stop_and_a_kill_after_its_checkpoint() -> None:
    async def scenario() -> None:
        world = await two_partitions(1, 2)
        await world.produce(b"b")
        incarnation = world.incarnations[1]
        await world.on(1, incarnation.manager.shutdown())
        await world.on(1, incarnation.logs.stop())
        world.kill(1)
        await world.start(1)
        loaded = world.incarnations[1].logs.get(TP)
        assert loaded is not None
        assert loaded.high_watermark == 2
        await world.elect(1)
        await world.produce(b"c")
        await asyncio.sleep(6.0)
        world.kill(1)
        await world.start(1)
        loaded = world.incarnations[1].logs.get(TP)
        assert loaded is not None
        assert loaded.high_watermark == 3

    run(scenario())


def test_a_broker_without_orders_does_not_overwrite_its_checkpoint() -> None:
    """A start itself only lowers the lines of logs that have lost their ends."""

    async def scenario() -> None:
        world = await two_partitions(1, 2)
        await asyncio.sleep(6.0)
        world.kill(2, keep_unflushed=False)
        disk, written = world.disks[2], list[str]()
        before = decode_offsets(disk.read_file("/data/replication-offset-checkpoint"))
        await world.start(2)
        ends = {
            log.topic_partition: log.log_end_offset for log in world.incarnations[2].logs.logs()
        }
        after = decode_offsets(disk.read_file("/data/replication-offset-checkpoint"))
        assert after == {tp: min(offset, ends[tp]) for tp, offset in before.items()} != before
        disk.on_rename = written.append
        await asyncio.sleep(20.0)
        assert "/data/replication-offset-checkpoint" not in written

    run(scenario())


def test_shutdown_answers_the_one_that_waits() -> None:
    async def scenario() -> None:
        world = await two_partitions(1, 2)
        world.cut(1, 2)
        produce = asyncio.ensure_future(world.produce(b"b", timeout_ms=60_000))
        fetch = asyncio.ensure_future(world.consume(1, offset=1, max_wait_ms=60_000))
        await asyncio.sleep(0.1)
        await world.on(1, world.incarnations[1].manager.shutdown())
        assert (await produce).error_code == ErrorCode.REQUEST_TIMED_OUT
        assert await fetch == (1, [])

    run(scenario())
