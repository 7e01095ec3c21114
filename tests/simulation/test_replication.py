"""Replication as clients see it: three brokers on virtual time, a scripted controller."""

import asyncio

import pytest
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.fetch import FetchPartition, FetchRequest
from barnabas_common.messages.offsets import (
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
)
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.runtime import DropConnection
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run

from tests.support.raw import batch
from tests.support.replication_world import TP, ReplicationWorld


async def three(seed: int = 0, config: dict[str, str] | None = None) -> ReplicationWorld:
    world = ReplicationWorld(seed, config)
    await world.start(1, 2, 3)
    await world.create(1, 2, 3)
    return world


def test_acks_all_waits_for_every_in_sync_follower() -> None:
    async def scenario() -> None:
        world = await three()
        result = await world.produce(b"a", b"b")
        assert result.error_code == ErrorCode.NONE
        assert result.base_offset == 0
        assert all(world.values(broker_id) == [b"a", b"b"] for broker_id in (1, 2, 3))
        world.cut(1, 3)
        waiting = asyncio.ensure_future(world.produce(b"c"))
        await asyncio.sleep(1.0)
        assert world.values(2) == [b"a", b"b", b"c"]
        assert not waiting.done()
        assert (await world.consume(1))[1] == [b"a", b"b"]
        world.heal(1, 3)
        assert (await waiting).error_code == ErrorCode.NONE
        assert (await world.consume(1))[1] == [b"a", b"b", b"c"]

    run(scenario())


def test_acks_one_answers_before_the_followers_have_it() -> None:
    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        world.cut(1, 2)
        world.cut(1, 3)
        result = await world.produce(b"b", acks=1)
        assert (result.error_code, result.base_offset) == (ErrorCode.NONE, 1)
        assert world.values(2) == [b"a"]

    run(scenario())


def test_a_produce_that_is_not_replicated_in_time_times_out_and_stays_in_the_log() -> None:
    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        world.cut(1, 2)
        started = asyncio.get_running_loop().time()
        result = await world.produce(b"b", timeout_ms=2000)
        assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert asyncio.get_running_loop().time() - started == pytest.approx(2.0, abs=0.01)
        assert world.values(1) == [b"a", b"b"]

    run(scenario())


@pytest.mark.parametrize("acks", [2, -2, 17])
def test_acks_that_kafka_does_not_know_are_refused_and_write_nothing(acks: int) -> None:
    async def scenario() -> None:
        world = await three()
        result = await world.produce(b"a", acks=acks)
        assert result.error_code == ErrorCode.INVALID_REQUIRED_ACKS
        assert world.values(1) == []

    run(scenario())


def test_acks_zero_has_no_answer_and_a_failed_append_drops_the_connection() -> None:
    async def scenario() -> None:
        world = await three()
        for broker_id, may_append in ((1, True), (2, False)):
            request = ProduceRequest(0, 5000, [ProducePartition(*TP, batch(b"a"))])
            produce = world.incarnations[broker_id].manager.produces.produce(request)
            if may_append:
                assert await world.on(broker_id, produce) is None
            else:
                with pytest.raises(DropConnection):
                    await world.on(broker_id, produce)
        assert world.values(1) == [b"a"]

    run(scenario())


def test_a_write_to_a_follower_is_refused_and_names_the_leader() -> None:
    async def scenario() -> None:
        world = await three()
        result = await world.produce(b"a", to=2)
        assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (result.current_leader_id, result.current_leader_epoch) == (1, 0)

    run(scenario())


def test_partitions_of_one_request_fail_independently() -> None:
    async def scenario() -> None:
        world = await three()
        other = TopicPartition("flights", 1)
        await world.create(2, 1, 3, key=other)
        corrupt = bytearray(batch(b"x"))
        corrupt[-1] ^= 1
        items = [
            ProducePartition("nowhere", 0, batch(b"a")),
            ProducePartition(*other, batch(b"a")),
            ProducePartition(*TP, bytes(corrupt)),
            ProducePartition(*TP, batch(b"a")),
        ]
        request = ProduceRequest(-1, 5000, items)
        response = await world.on(1, world.incarnations[1].manager.produces.produce(request))
        assert response is not None
        assert [result.error_code for result in response.partitions] == [
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.NONE,
        ]

    run(scenario())


def test_a_follower_learns_of_a_commit_one_fetch_later() -> None:
    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        assert world.log(1).high_watermark == 1
        assert world.log(2).high_watermark == 0
        await world.until_equal(1, 2, 3)
        # An idle follower learns it when its parked fetch is answered.
        assert asyncio.get_running_loop().time() < 1.0

    run(scenario())


def test_consumers_see_nothing_above_the_high_watermark_and_are_woken_by_it() -> None:
    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        world.cut(1, 2)
        appended = await world.produce(b"b", acks=1)
        assert appended.error_code == ErrorCode.NONE
        high_watermark, values = await world.consume(1)
        assert (high_watermark, values) == (1, [b"a"])
        parked = asyncio.ensure_future(world.consume(1, offset=1, max_wait_ms=60_000))
        await asyncio.sleep(2.0)
        assert not parked.done()
        world.heal(1, 2)
        await world.until(lambda: world.log(1).high_watermark == 2)
        await asyncio.sleep(0.1)
        assert parked.done(), "woken by the high watermark, not by the end of its time"
        assert await parked == (2, [b"b"])

    run(scenario())


def test_a_consumers_parked_fetch_ends_empty_after_its_time() -> None:
    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        started = asyncio.get_running_loop().time()
        assert await world.consume(1, offset=1, max_wait_ms=700) == (1, [])
        assert asyncio.get_running_loop().time() - started == pytest.approx(0.7)

    run(scenario())


def test_offsets_out_of_range_wrong_epochs_and_other_brokers_are_refused() -> None:
    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        await world.elect(1)

        async def error(broker_id: int, offset: int, epoch: int = -1) -> int:
            partition = FetchPartition(*TP, offset, epoch)
            request = FetchRequest(1000, 1, 1 << 20, partitions=[partition])
            manager = world.incarnations[broker_id].manager
            response = await world.on(broker_id, manager.consumer_fetches.fetch(request))
            return response.partitions[0].error_code

        assert await error(1, 2) == ErrorCode.OFFSET_OUT_OF_RANGE
        assert await error(1, -1) == ErrorCode.OFFSET_OUT_OF_RANGE
        assert await error(1, 0, epoch=0) == ErrorCode.FENCED_LEADER_EPOCH
        assert await error(1, 0, epoch=2) == ErrorCode.UNKNOWN_LEADER_EPOCH
        assert await error(2, 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await error(2, 0, epoch=0) == ErrorCode.FENCED_LEADER_EPOCH

    run(scenario())


@pytest.mark.parametrize("epoch", [-1, 0])
def test_a_fetch_of_a_broker_without_a_replica_is_refused_and_moves_nothing(epoch: int) -> None:
    async def scenario() -> None:
        world = ReplicationWorld()
        await world.start(1, 2, 4)
        await world.create(1, 2)
        await world.produce(b"a")
        partition = FetchPartition(*TP, 1, epoch)
        request = FetchRequest(0, 1, 1 << 20, replica_id=4, session_epoch=0, partitions=[partition])
        response = await world.on(1, world.incarnations[1].manager.follower_fetches.fetch(request))
        expected = ErrorCode.NOT_LEADER_OR_FOLLOWER if epoch < 0 else ErrorCode.UNKNOWN_LEADER_EPOCH
        assert response.partitions[0].error_code == expected
        assert list(world.partition(1).lead().followers) == [2]

    run(scenario())


def test_producers_and_consumers_are_told_when_their_leader_is_replaced() -> None:
    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        world.cut(1, 2)
        produce = asyncio.ensure_future(world.produce(b"b"))
        request = FetchRequest(60_000, 1, 1 << 20, partitions=[FetchPartition(*TP, 1)])
        fetch = asyncio.ensure_future(
            world.on(1, world.incarnations[1].manager.consumer_fetches.fetch(request))
        )
        await asyncio.sleep(0.5)
        await world.elect(3)
        result = await produce
        assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (result.current_leader_id, result.current_leader_epoch) == (3, 1)
        (fetched,) = (await fetch).partitions
        assert fetched.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert fetched.current_leader_id == 3

    run(scenario())


def test_the_latest_offset_is_not_given_out_before_a_new_leader_has_caught_up_with_it() -> None:
    async def scenario() -> None:
        world = await three()
        await world.produce(b"a")
        world.kill(1)
        world.cut(2, 3)
        await world.elect(2, isr=(2, 3))
        item = ListOffsetsPartition(*TP, LATEST_TIMESTAMP)
        lookups = world.incarnations[2].manager.offsets.list_offsets

        async def latest(replica_id: int) -> tuple[int, int]:
            response = await world.on(2, lookups(ListOffsetsRequest(replica_id, 0, [item])))
            return response.partitions[0].error_code, response.partitions[0].offset

        assert await latest(-1) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
        assert await latest(3) == (ErrorCode.NONE, 1)
        world.heal(2, 3)
        await world.until(lambda: world.log(2).high_watermark == 1)
        assert await latest(-1) == (ErrorCode.NONE, 1)

    run(scenario())


def test_many_partitions_travel_together_and_idle_ones_cost_nothing() -> None:
    async def scenario() -> None:
        world = ReplicationWorld()
        await world.start(1, 2)
        keys = [TopicPartition("many", number) for number in range(40)]
        for key in keys:
            await world.create(1, 2, key=key)
        for key in keys:
            assert (await world.produce(b"a", key=key)).error_code == ErrorCode.NONE
        await world.until_equal(1, 2, key=keys[-1])
        await asyncio.sleep(1.0)
        requests = world.incarnations[1].requests
        del requests[:]
        await world.produce(b"b", key=keys[7])
        await asyncio.sleep(0.4)
        named = [p.partition for request in requests for p in request.partitions]
        assert named == [7]
        assert len(requests) == 1

    run(scenario())


def test_one_seed_is_one_run() -> None:
    async def scenario() -> list[tuple[float, int]]:
        world = await three(seed=5)
        trace = []
        for number in range(20):
            result = await world.produce(b"%d" % number)
            trace.append((asyncio.get_running_loop().time(), result.base_offset))
        return trace

    assert run(scenario(), seed=5) == run(scenario(), seed=5)
