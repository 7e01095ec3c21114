"""A consumer in a group at the edges: odd commits, listeners that are interrupted, ends."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import pytest
from barnabas import CommitFailedError, Consumer, OffsetAndMetadata, RebalanceListener
from barnabas.consumer import commits
from barnabas_common.errors import (
    BarnabasError,
    ClientError,
    ClosedError,
    FencedInstanceIdError,
    InvalidArgumentError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from barnabas_common.topic_partition import TopicPartition

from tests.support.group_stories import PARTITIONS, Noted, member, settle, story, write
from tests.support.scripted_group import GroupBrokers


def loner(brokers: GroupBrokers, **options: Any) -> Consumer:
    """A consumer of the group that has not subscribed to anything."""
    return Consumer(
        bootstrap_servers=brokers.bootstrap,
        runtime=brokers.runtime_of("loner"),
        group_id="g",
        auto_offset_reset="earliest",
        **options,
    )


def test_metadata_that_no_request_can_carry_are_refused_and_stop_nothing() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers, enable_auto_commit=False) as consumer:
            await settle(consumer)
            with pytest.raises(InvalidArgumentError, match="metadata"):
                await consumer.commit({PARTITIONS[0]: OffsetAndMetadata(1, "\ud800")})
            with pytest.raises(InvalidArgumentError, match="epoch"):
                await consumer.commit({PARTITIONS[0]: OffsetAndMetadata(1, "", 2**31)})
            await consumer.commit({PARTITIONS[0]: 7})
        assert brokers.groups["g"].offsets[PARTITIONS[0]][0] == 7

    story(scenario)


def test_a_commit_that_cannot_be_sent_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers, enable_auto_commit=False) as consumer:
            await settle(consumer)
            monkeypatch.setattr(commits, "commit_once", None)
            failures: list[BarnabasError | None] = []
            consumer.commit_async({PARTITIONS[0]: 1}, lambda _, error: failures.append(error))
            await consumer.commit({PARTITIONS[0]: 7})
            assert len(failures) == 1 and isinstance(failures[0], ClientError)
            assert brokers.groups["g"].offsets[PARTITIONS[0]][0] == 7

    story(scenario)


def test_auto_commit_of_assigned_partitions_keeps_them_from_expiring() -> None:
    """The retention of a group without members counts from each commit (KIP-211)."""

    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 3)
        consumer = loner(brokers, auto_commit_interval_ms=1_000)
        async with consumer:
            consumer.assign(PARTITIONS[:1])
            for _ in range(100):
                await consumer.poll(timeout_ms=100)
            sent = brokers.requests(OffsetCommitRequest)
            assert len(sent) >= 8, "while there is nothing to read too"

    story(scenario)


@pytest.mark.parametrize("how", ["assign", "unsubscribe"])
def test_what_was_read_of_partitions_that_are_no_longer_assigned_is_committed(how: str) -> None:
    """No poll follows that would commit it: whoever reads them next read up to 5 s of it again."""

    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 3)
        async with loner(brokers) as consumer:
            consumer.assign(PARTITIONS[:1])
            assert len(await consumer.poll()) == 3
            if how == "assign":
                consumer.assign(PARTITIONS[1:2])
            else:
                await consumer.unsubscribe()
            offsets = brokers.groups["g"].offsets
            async with asyncio.timeout(1):
                while PARTITIONS[0] not in offsets:
                    await asyncio.sleep(0.01)
            assert offsets[PARTITIONS[0]][0] == 3

    story(scenario)


def test_unsubscribe_gives_up_assigned_partitions_too() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 3)
        consumer = loner(brokers)
        async with consumer:
            consumer.assign(PARTITIONS[:1])
            assert await consumer.poll()
            await consumer.unsubscribe()
            assert consumer.assignment() == []
            consumer.subscribe("flights")
            await settle(consumer)

    story(scenario)


def test_a_member_that_unsubscribes_says_so() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers) as consumer:
            await settle(consumer)
            await consumer.unsubscribe()
            (leave,) = brokers.requests(LeaveGroupRequest)
            assert leave.members[0].reason == "the consumer unsubscribed"

    story(scenario)


def test_a_member_leaves_while_its_coordinator_moves() -> None:
    """Otherwise its partitions would be read by nobody until its session ends."""

    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers) as consumer:
            await settle(consumer)
            assert brokers.groups["g"].members
            brokers.coordinator = 2
            brokers.refusals[LeaveGroupRequest] = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        assert not brokers.groups["g"].members
        assert len(brokers.requests(LeaveGroupRequest)) > 1

    story(scenario)


def test_closing_without_any_broker_takes_seconds() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers, enable_auto_commit=False) as consumer:
            await settle(consumer)
            for broker_id in (1, 2, 3):
                brokers.kill(broker_id)
            before = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - before < 10.0

    story(scenario)


def test_a_subscriber_outside_the_group_cannot_commit_whatever_its_pattern_matches() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        consumer = loner(brokers)
        async with consumer:
            consumer.subscribe(re.compile("nothing.*"))
            with pytest.raises(CommitFailedError):
                await consumer.commit({PARTITIONS[0]: 7})
        assert not brokers.groups["g"].offsets

    story(scenario)


def test_a_fenced_instance_is_told_so_even_while_it_waits_for_its_assignment() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers, "a") as a:
            await settle(a)
            b = member(brokers, "b", group_instance_id="i", heartbeat_interval_ms=500)
            await b.start()
            # a joins again and leads, but its SyncGroup is held up: b waits for its assignment.
            held = brokers.hold(SyncGroupRequest, lambda r: not r.group_instance_id)
            joining = asyncio.create_task(a.poll(timeout_ms=60_000))
            while not held.reached.is_set():
                await b.poll(timeout_ms=100)
            brokers.refusals[HeartbeatRequest] = [ErrorCode.FENCED_INSTANCE_ID]
            while brokers.refusals[HeartbeatRequest]:
                await asyncio.sleep(0.1)
            held.release.set()
            await asyncio.sleep(0.1)
            with pytest.raises(FencedInstanceIdError):
                await b.poll(timeout_ms=1_000)
            joining.cancel()
            await b.close()

    story(scenario)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_commits_in_the_background_come_before_a_rebalance(strategy: str) -> None:
    """Kafka sends them at once, on the connection on which the join follows."""

    async def scenario(brokers: GroupBrokers) -> None:
        options: dict[str, Any] = {
            "enable_auto_commit": False,
            "heartbeat_interval_ms": 500,
            "partition_assignment_strategy": [strategy],
        }
        async with member(brokers, "a", **options) as a, member(brokers, "b", **options) as b:
            await settle(a)
            held = brokers.hold(OffsetCommitRequest, lambda _: True)
            outcomes: list[BarnabasError | None] = []
            for offset in range(1, 6):
                a.commit_async({PARTITIONS[3]: offset}, lambda _, error: outcomes.append(error))
            joining = asyncio.create_task(b.poll(timeout_ms=5_000))
            await asyncio.sleep(2.0)  # a is told that the group rebalances
            polling = asyncio.create_task(a.poll(timeout_ms=5_000))
            await asyncio.sleep(1.0)
            held.release.set()
            await asyncio.gather(joining, polling)
            await settle(a, b)
            assert outcomes == [None] * 5
            assert brokers.groups["g"].offsets[PARTITIONS[3]][0] == 5

    story(scenario)


@pytest.mark.parametrize("end", ["close", "unsubscribe"])
def test_a_member_that_goes_during_a_rebalance_commits_what_it_read(end: str) -> None:
    """With a cooperative protocol it reads on while the others join."""

    async def scenario(brokers: GroupBrokers) -> None:
        options: dict[str, Any] = {
            "heartbeat_interval_ms": 500,
            "auto_commit_interval_ms": 600_000,
            "partition_assignment_strategy": ["cooperative-sticky"],
        }
        async with member(brokers, "b", **options) as b, member(brokers, "a", **options) as a:
            await settle(a, b)
            brokers.hold(JoinGroupRequest, lambda request: request.member_id.startswith("b"))
            joining = asyncio.create_task(b.poll(timeout_ms=60_000))
            async with member(brokers, "c", **options) as c:
                others = asyncio.create_task(c.poll(timeout_ms=60_000))
                while "waits for the others" not in a.health()[0]:
                    await a.poll(timeout_ms=100)
                write(brokers, 5)
                read = 0
                while read < 10:
                    read += len(await a.poll(timeout_ms=100))
                await (a.close() if end == "close" else a.unsubscribe())
                committed = brokers.groups["g"].offsets
                assert sum(offset for offset, *_ in committed.values()) == 10
                for task in (joining, others):
                    task.cancel()

    story(scenario)


class Slow(Noted):
    """Takes a second to give partitions up."""

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(("begins", [tp.partition for tp in partitions]))
        try:
            await asyncio.sleep(1.0)
        finally:
            await asyncio.sleep(0.1)
            self.calls.append(("ends", [tp.partition for tp in partitions]))


@pytest.mark.parametrize("end", ["close", "unsubscribe"])
def test_a_listener_at_work_ends_before_it_is_called_again(end: str) -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        noted = Slow()
        async with member(brokers, "a", heartbeat_interval_ms=500) as a:
            a.subscribe("flights", noted)
            await settle(a)
            async with member(brokers, "b") as b:
                joining = asyncio.create_task(b.poll(timeout_ms=60_000))
                while ("begins", [0, 1, 2, 3]) not in noted.calls:
                    await a.poll(timeout_ms=100)
                if end == "close":
                    await a.close()
                else:
                    await a.unsubscribe()
                joining.cancel()
        kinds = [kind for kind, _ in noted.calls[1:]]
        assert kinds == ["begins", "ends"] * (len(kinds) // 2)

    story(scenario)


def test_an_iteration_ends_in_order_when_the_consumer_is_closed_in_a_rebalance() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        noted = Slow()
        a = member(brokers, "a", heartbeat_interval_ms=500)
        a.subscribe("flights", noted)
        await settle(a)

        async def iterate() -> str:
            async for _ in a:
                pass
            return "ended"

        iterating = asyncio.create_task(iterate())
        async with member(brokers, "b") as b:
            joining = asyncio.create_task(b.poll(timeout_ms=60_000))
            while ("begins", [0, 1, 2, 3]) not in noted.calls:
                await asyncio.sleep(0.1)
            await a.close()
            assert await iterating == "ended"
            joining.cancel()

    story(scenario)


def test_closing_takes_no_longer_than_its_timeout() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 3)
        consumer = member(brokers)
        await consumer.start()
        await settle(consumer)
        assert await consumer.poll(timeout_ms=1_000)
        brokers.refusals[OffsetCommitRequest] = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 10_000
        consumer.commit_async({PARTITIONS[0]: 1})
        waiting = asyncio.create_task(consumer.commit({PARTITIONS[0]: 1}))
        await asyncio.sleep(0.5)
        before = asyncio.get_running_loop().time()
        await consumer.close()
        assert asyncio.get_running_loop().time() - before < 31.0
        with pytest.raises(BarnabasError):
            await waiting

    story(scenario)


def test_a_pause_keeps_the_leader_epoch_of_what_was_read() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 3)
        async with member(brokers, enable_auto_commit=False) as consumer:
            read = 0
            while read < 12:
                read += len(await consumer.poll())
            consumer.pause()
            await consumer.commit()
            assert brokers.groups["g"].offsets == dict.fromkeys(PARTITIONS, (3, 1, ""))

    story(scenario)


def test_a_manual_commit_does_not_hide_what_was_read() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 3)
        async with member(brokers, auto_commit_interval_ms=1_000) as consumer:
            read = 0
            while read < 12:
                read += len(await consumer.poll())
            for _ in range(30):
                await consumer.poll(timeout_ms=100)
            assert brokers.groups["g"].offsets[PARTITIONS[0]][0] == 3
            await consumer.commit({PARTITIONS[0]: 1})
        assert brokers.groups["g"].offsets[PARTITIONS[0]][0] == 3

    story(scenario)


class Committing(RebalanceListener):
    """Commits what was read before partitions go."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        for partition in partitions:
            assert await self.consumer.position(partition) == 3
        await self.consumer.commit()
        assert len(await self.consumer.committed()) == len(partitions)


@pytest.mark.parametrize("end", ["close", "unsubscribe"])
def test_a_listener_commits_at_the_end_of_a_membership(end: str) -> None:
    """At `close` it was told that the consumer is closed, and what was read was read again."""

    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 3)
        async with member(brokers, enable_auto_commit=False) as consumer:
            consumer.subscribe("flights", Committing(consumer))
            await settle(consumer)
            while [await consumer.position(tp) for tp in PARTITIONS] != [3] * 4:
                await consumer.poll(timeout_ms=100)
            await (consumer.close() if end == "close" else consumer.unsubscribe())
            assert {o[0] for o in brokers.groups["g"].offsets.values()} == {3}

    story(scenario)


def test_a_poll_that_waits_is_not_late_after_another_has_ended() -> None:
    """Two tasks of one consumer: the member left the group, in the middle of a poll."""

    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers, max_poll_interval_ms=10_000) as consumer:
            await settle(consumer)
            waiting = asyncio.create_task(consumer.poll())
            await consumer.poll(timeout_ms=100)
            await asyncio.sleep(60)
            assert not brokers.requests(LeaveGroupRequest)
            waiting.cancel()

    story(scenario)


def test_a_consumer_that_is_closed_takes_no_commit() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers) as consumer:
            await settle(consumer)
        with pytest.raises(ClosedError):
            consumer.commit_async({PARTITIONS[0]: 1})
        with pytest.raises(ClosedError):
            await consumer.commit({PARTITIONS[0]: 1})
        with pytest.raises(ClosedError):
            await consumer.poll()

    story(scenario)
