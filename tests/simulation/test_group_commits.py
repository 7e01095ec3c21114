"""Commits of a group member against a scripted coordinator, on virtual time."""

import asyncio
from typing import Any

import pytest
from barnabas import CommitFailedError, Consumer, OffsetAndMetadata
from barnabas_common.errors import (
    BarnabasError,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    HeartbeatRequest,
    OffsetCommitRequest,
)

from tests.support.group_stories import PARTITIONS, member, settle, story, write
from tests.support.scripted_group import GroupBrokers


def test_an_iteration_is_not_ahead_of_the_commit_when_partitions_change_hands() -> None:
    """The records polled but not returned are read by the other member."""

    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 100)
        seen: list[tuple[str, int, int]] = []
        stop = asyncio.Event()

        async def work(consumer: Consumer, name: str) -> None:
            async with consumer:
                async for record in consumer:
                    await asyncio.sleep(0.05)
                    seen.append((name, record.partition, record.offset))
                    if stop.is_set() or len({s[1:] for s in seen}) == 400:
                        stop.set()
                        return

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(work(member(brokers, "a"), "a"))
            await asyncio.sleep(2)
            tasks.create_task(work(member(brokers, "b"), "b"))
            await stop.wait()
            write(brokers, 1)
        assert {name for name, *_ in seen} == {"a", "b"}
        counted = [s[1:] for s in seen if s[2] < 100]
        assert len(set(counted)) == 400
        assert len(counted) - 400 <= 1, "nothing is read twice in an orderly rebalance"

    story(scenario)


def test_a_commit_of_an_old_generation_fails_and_says_so() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 5)
        async with member(brokers, "a", enable_auto_commit=False) as consumer:
            await settle(consumer)
            brokers.refusals[OffsetCommitRequest] = [ErrorCode.ILLEGAL_GENERATION]
            with pytest.raises(CommitFailedError):
                await consumer.commit()
            brokers.refusals[OffsetCommitRequest] = [ErrorCode.OFFSET_METADATA_TOO_LARGE]
            await settle(consumer)
            with pytest.raises(OffsetMetadataTooLargeError):
                await consumer.commit({PARTITIONS[0]: OffsetAndMetadata(1, "x" * 5000)})
            brokers.refusals[OffsetCommitRequest] = [ErrorCode.REBALANCE_IN_PROGRESS]
            with pytest.raises(RebalanceInProgressError):
                await consumer.commit()
            await settle(consumer)
            brokers.refusals[OffsetCommitRequest] = [ErrorCode.NOT_COORDINATOR] * 3
            await consumer.commit({PARTITIONS[0]: OffsetAndMetadata(3, "note")})
            assert await consumer.committed([PARTITIONS[0], PARTITIONS[1]]) == {
                PARTITIONS[0]: OffsetAndMetadata(3, "note"),
                PARTITIONS[1]: None,
            }

    story(scenario)


def test_offsets_that_stay_unstable_at_a_deposed_coordinator_are_asked_of_the_next() -> None:
    """It waits for the end of a transaction whose marker another broker was sent."""

    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 5)
        async with member(brokers, "a", enable_auto_commit=False) as consumer:
            await settle(consumer)
            await consumer.commit({PARTITIONS[0]: OffsetAndMetadata(3)})
            beats = brokers.hold(HeartbeatRequest, lambda _: True)  # which would tell
            before, brokers.coordinator = brokers.coordinator, 3
            brokers.strangers[before] = ErrorCode.UNSTABLE_OFFSET_COMMIT
            async with asyncio.timeout(5.0):
                found = await consumer.committed([PARTITIONS[0]])
            assert found == {PARTITIONS[0]: OffsetAndMetadata(3)}
            beats.release.set()

    story(scenario)


def test_a_commit_that_waited_for_another_is_not_sent_in_a_later_generation() -> None:
    """Its partition may be another member's by then."""

    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 5)
        async with member(brokers, "a", enable_auto_commit=False) as consumer:
            await settle(consumer)
            held = brokers.hold(OffsetCommitRequest, lambda request: True)
            outcomes: list[BarnabasError | None] = []
            for offset in (1, 2):
                consumer.commit_async({PARTITIONS[0]: offset}, lambda _, e: outcomes.append(e))
            await held.reached.wait()
            brokers.refusals[HeartbeatRequest] = [ErrorCode.UNKNOWN_MEMBER_ID]
            before = consumer.health()[0]
            while brokers.refusals[HeartbeatRequest] or consumer.health()[0] == before:
                await consumer.poll(timeout_ms=50)
            await settle(consumer)
            held.release.set()
            while len(outcomes) < 2:
                await consumer.poll(timeout_ms=50)
            assert isinstance(outcomes[1], CommitFailedError)
            assert len(brokers.requests(OffsetCommitRequest)) == 1
            await consumer.commit({PARTITIONS[0]: 3})

    story(scenario)


def test_the_answer_to_a_heartbeat_of_an_earlier_generation_changes_nothing() -> None:
    """Else the member would leave the generation that it has just joined."""

    async def scenario(brokers: GroupBrokers) -> None:
        options: dict[str, Any] = {"enable_auto_commit": False, "heartbeat_interval_ms": 500}
        async with member(brokers, "a", **options) as consumer:
            await settle(consumer)
            group = brokers.groups["g"]
            first = group.generation
            late = brokers.hold(HeartbeatRequest, lambda request: request.generation_id == first)
            await late.reached.wait()
            brokers.refusals[OffsetCommitRequest] = [ErrorCode.REBALANCE_IN_PROGRESS]
            with pytest.raises(RebalanceInProgressError):
                await consumer.commit({PARTITIONS[0]: 1})
            while group.generation == first:
                await consumer.poll(timeout_ms=50)
            await settle(consumer)
            late.release.set()
            for _ in range(40):
                await consumer.poll(timeout_ms=50)
            assert group.generation == first + 1
            await consumer.commit({PARTITIONS[0]: 2})

    story(scenario)


def test_commits_in_the_background_keep_their_order_and_tell_their_outcome() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers, "a", enable_auto_commit=False) as consumer:
            await settle(consumer)
            outcomes: list[Any] = []
            for offset in range(1, 6):
                consumer.commit_async({PARTITIONS[0]: offset}, lambda o, e: outcomes.append((o, e)))
            await consumer.commit({PARTITIONS[1]: 9})
            assert [(o[PARTITIONS[0]].offset, e) for o, e in outcomes] == [
                (number, None) for number in range(1, 6)
            ]
            assert brokers.groups["g"].offsets[PARTITIONS[0]][0] == 5

    story(scenario)


def test_auto_commit_keeps_to_its_interval_and_to_what_was_returned() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 100)
        async with member(brokers, "a", auto_commit_interval_ms=1_000) as consumer:
            count = 0
            async for _record in consumer:
                count += 1
                await asyncio.sleep(0.1)
                committed = sum(offset for offset, *_ in brokers.groups["g"].offsets.values())
                assert committed < count, "the record in work is not committed"
                assert committed >= count - 15
                if count == 60:
                    break
        assert sum(offset for offset, *_ in brokers.groups["g"].offsets.values()) == 60

    story(scenario)


def test_what_an_auto_commit_could_not_store_is_committed_by_the_next() -> None:
    """Nothing else is read meanwhile."""

    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 5)
        brokers.refusals[OffsetCommitRequest] = [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        async with member(brokers, "a", auto_commit_interval_ms=1_000) as consumer:
            async with asyncio.timeout(30):
                while sum(offset for offset, *_ in brokers.groups["g"].offsets.values()) < 5:
                    await consumer.poll(timeout_ms=50)
        assert brokers.refusals[OffsetCommitRequest] == []

    story(scenario)


def test_what_is_committed_counts_from_the_committed_offset_of_each_assignment() -> None:
    """Another member may have committed a lower offset in between."""

    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 5)
        offsets, partition = brokers.groups["g"].offsets, PARTITIONS[0]

        async def read_and_commit(consumer: Consumer) -> None:
            while offsets.get(partition, (0,))[0] < 5:
                await consumer.poll(timeout_ms=50)

        async with member(brokers, "a", auto_commit_interval_ms=5_000) as consumer:
            await settle(consumer)
            await read_and_commit(consumer)
            await consumer.unsubscribe()
            offsets[partition] = (3, *offsets[partition][1:])
            consumer.subscribe(["flights"])
            await settle(consumer)
            async with asyncio.timeout(60):
                await read_and_commit(consumer)

    story(scenario)


def test_a_block_that_fails_commits_nothing_more() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 10)
        with pytest.raises(ZeroDivisionError):
            async with member(brokers) as consumer:
                async for _ in consumer:
                    raise ZeroDivisionError
        assert brokers.groups["g"].offsets == {}
        assert not brokers.groups["g"].members

    story(scenario)
