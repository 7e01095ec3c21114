"""What a leader answers a follower, and what it knows about it then: one fetch at a time."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace

import pytest
from barnabas_broker.replica.leader.leadership import Leadership
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.fetch import FetchedPartition, FetchPartition, FetchRequest
from barnabas_common.messages.offsets import (
    MAX_TIMESTAMP,
    EpochPartition,
    ListOffsetsPartition,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run

from tests.support.replication_world import TP, ReplicationWorld

FOLLOWER = 2


class FetchedByHand:
    """A leader, broker 1, whose only follower does not run: the test sends its fetches."""

    def __init__(self, world: ReplicationWorld) -> None:
        self.world = world
        self._session_id = self._session_epoch = 0

    @property
    def leadership(self) -> Leadership:
        return self.world.partition(1).lead()

    async def fetch(self, position: FetchPartition, max_wait_ms: int = 0) -> FetchedPartition:
        request = FetchRequest(
            max_wait_ms,
            1,
            1 << 20,
            replica_id=FOLLOWER,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            partitions=[position],
        )
        fetches = self.world.incarnations[1].manager.follower_fetches
        response = await self.world.on(1, fetches.fetch(request))
        self._session_id, self._session_epoch = response.session_id, self._session_epoch + 1
        (fetched,) = response.partitions
        return fetched


def story(scenario: Callable[[FetchedByHand], Awaitable[None]]) -> None:
    async def told() -> None:
        world = ReplicationWorld()
        await world.start(1)
        await world.create(1, FOLLOWER)
        await scenario(FetchedByHand(world))

    run(told())


def test_an_answer_carries_the_high_watermark_from_before_its_fetch() -> None:
    async def scenario(leader: FetchedByHand) -> None:
        await leader.world.produce(b"a", acks=1)
        first = await leader.fetch(FetchPartition(*TP, 0))
        assert first.records and first.high_watermark == 0
        second = await leader.fetch(FetchPartition(*TP, 1))
        assert leader.world.log(1).high_watermark == 1, "the fetch has committed the record"
        assert second.high_watermark == 0
        third = await leader.fetch(FetchPartition(*TP, 1))
        assert third.high_watermark == 1

    story(scenario)


def test_a_diverging_fetch_is_told_where_and_has_no_other_effect() -> None:
    async def scenario(leader: FetchedByHand) -> None:
        await leader.world.produce(b"a", acks=1)
        await leader.world.elect(1)
        await leader.world.produce(b"b", b"c", acks=1)
        started = asyncio.get_running_loop().time()
        position = FetchPartition(*TP, 2, last_fetched_epoch=0)
        answer = await leader.fetch(position, max_wait_ms=60_000)
        assert asyncio.get_running_loop().time() - started < 0.1, "it is not parked"
        assert (answer.diverging_epoch, answer.diverging_end_offset) == (0, 1)
        assert answer.records == b""
        follower = leader.leadership.followers[FOLLOWER]
        assert follower.log_end_offset == -1
        assert leader.world.log(1).high_watermark == 0

    story(scenario)


def test_a_parked_fetch_is_answered_when_data_comes_and_is_still_one_fetch() -> None:
    async def scenario(leader: FetchedByHand) -> None:
        now = asyncio.get_running_loop().time
        parked = asyncio.ensure_future(leader.fetch(FetchPartition(*TP, 0), max_wait_ms=60_000))
        await asyncio.sleep(0.1)
        began = leader.leadership.followers[FOLLOWER].last_fetch_time
        await asyncio.sleep(2.0)
        appended = now()
        await leader.world.produce(b"a", acks=1)
        assert (await parked).records
        assert now() - appended < 0.1
        assert leader.leadership.followers[FOLLOWER].last_fetch_time == began

    story(scenario)


def test_where_an_epoch_ends_is_told_under_the_present_leader_epoch_only() -> None:
    async def scenario(leader: FetchedByHand) -> None:
        await leader.world.elect(1)
        offsets = leader.world.incarnations[1].manager.offsets
        for leader_epoch, expected in (
            (0, ErrorCode.FENCED_LEADER_EPOCH),
            (1, ErrorCode.NONE),
            (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ):
            question = EpochPartition(*TP, leader_epoch=0, current_leader_epoch=leader_epoch)
            request = OffsetForLeaderEpochRequest(FOLLOWER, [question])
            (answer,) = (await leader.world.on(1, offsets.for_leader_epoch(request))).partitions
            assert answer.error_code == expected

    story(scenario)


@pytest.mark.parametrize("leader_epoch", [-1, 0, 7])
def test_another_topic_id_is_refused_before_any_epoch_is_compared(leader_epoch: int) -> None:
    async def scenario(leader: FetchedByHand) -> None:
        other = FetchPartition(*TP, 0, leader_epoch, topic_id="another".ljust(22, "x"))
        answer = await leader.fetch(other)
        assert answer.error_code == ErrorCode.INCONSISTENT_TOPIC_ID

    story(scenario)


def test_a_fetch_that_a_later_one_of_its_session_has_overtaken_gets_no_data() -> None:
    """Its connection is gone: the later one would wait until its time is over."""

    async def scenario(leader: FetchedByHand) -> None:
        fetches = leader.world.incarnations[1].manager.follower_fetches
        first = FetchRequest(
            0, 1, 1 << 20, replica_id=FOLLOWER, session_epoch=0, partitions=[FetchPartition(*TP, 0)]
        )
        session_id = (await leader.world.on(1, fetches.fetch(first))).session_id
        parked = []
        for epoch in (1, 2):
            request = replace(first, max_wait_ms=60_000, session_id=session_id, session_epoch=epoch)
            parked.append(asyncio.ensure_future(leader.world.on(1, fetches.fetch(request))))
            await asyncio.sleep(0.1)
        assert (await parked[0]).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        appended = asyncio.get_running_loop().time()
        await leader.world.produce(b"a", acks=1)
        (answer,) = (await parked[1]).partitions
        assert answer.records and asyncio.get_running_loop().time() - appended < 0.1

    story(scenario)


def test_the_partitions_of_an_answer_share_its_largest_size() -> None:
    """For a follower as for a consumer; the first partition has its turn in any case."""

    async def told() -> None:
        world = ReplicationWorld()
        await world.start(1)
        keys = [TopicPartition("flights", number) for number in range(4)]
        for key in keys:
            await world.create(1, FOLLOWER, key=key)
            await world.produce(b"x" * 1_000, acks=1, key=key)
        manager = world.incarnations[1].manager
        request = FetchRequest(
            0,
            1,
            2_500,
            replica_id=FOLLOWER,
            session_epoch=0,
            partitions=[FetchPartition(*key, 0) for key in keys],
        )
        at_the_end = replace(request, partitions=[FetchPartition(*key, 1) for key in keys])
        followers = await world.on(1, manager.follower_fetches.fetch(request))
        await world.on(1, manager.follower_fetches.fetch(at_the_end))  # commits the records
        consumers = await world.on(
            1, manager.consumer_fetches.fetch(replace(request, replica_id=-1))
        )
        for response in (followers, consumers):
            sizes = [len(fetched.records) for fetched in response.partitions]
            assert 1_000 < sum(sizes) <= 2_500 and sum(map(bool, sizes)) == 2

    run(told())


def test_no_timestamp_leads_a_consumer_to_a_record_that_is_not_committed() -> None:
    async def scenario(leader: FetchedByHand) -> None:
        await leader.world.produce(b"a", acks=1)
        offsets = leader.world.incarnations[1].manager.offsets

        async def listed(timestamp: int, replica_id: int = -1) -> int:
            wanted = [ListOffsetsPartition(*TP, timestamp)]
            request = ListOffsetsRequest(replica_id=replica_id, partitions=wanted)
            (found,) = (await leader.world.on(1, offsets.list_offsets(request))).partitions
            return found.offset

        assert [await listed(0), await listed(MAX_TIMESTAMP), await listed(0, FOLLOWER)] == [
            -1, -1, 0
        ]  # fmt: skip
        await leader.fetch(FetchPartition(*TP, 1))
        assert [await listed(0), await listed(MAX_TIMESTAMP)] == [0, 0]

    story(scenario)


def test_records_that_a_follower_asks_for_again_are_looked_at() -> None:
    """It may have refused them: the leader's copy is damaged, and another replica should lead."""

    async def scenario(leader: FetchedByHand) -> None:
        await leader.world.produce(b"value", acks=1)
        assert (await leader.fetch(FetchPartition(*TP, 0))).records
        disk, log = leader.world.disks[1], leader.world.log(1)
        path = f"{log.directory}/{0:020}.log"
        data = bytearray(disk.read_file(path))
        data[-2] ^= 1
        with closing(disk.open(path)) as file:
            file.truncate(0)
            file.append([bytes(data)])
        again = await leader.fetch(FetchPartition(*TP, 0))
        assert again.error_code == ErrorCode.CORRUPT_MESSAGE and not again.records

    story(scenario)
