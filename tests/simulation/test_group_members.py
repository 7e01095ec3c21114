"""Members of a group against a scripted coordinator, on virtual time."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import barnabas.group.member as group_member
import pytest
from barnabas import CommitFailedError, Consumer, RebalanceListener
from barnabas_common.errors import (
    ClientError,
    FencedInstanceIdError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    InvalidArgumentError,
    InvalidGroupIdError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from barnabas_common.topic_partition import TopicPartition

from tests.support.group_stories import PARTITIONS, Noted, member, settle, story, write
from tests.support.scripted_group import GroupBrokers


def test_one_member_reads_everything_and_commits_what_it_returned() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 10)
        async with member(brokers) as consumer:
            records = []
            while len(records) < 40:
                records += await consumer.poll()
            assert consumer.assignment() == PARTITIONS
        assert len(records) == 40
        group = brokers.groups["g"]
        assert group.offsets == dict.fromkeys(PARTITIONS, (10, 1, ""))
        assert not group.members

    story(scenario)


def test_two_members_share_and_each_record_is_read_once() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers, "a") as a, member(brokers, "b") as b:
            await settle(a, b)
            assert len(a.assignment()) == len(b.assignment()) == 2
            write(brokers, 5)
            read = [r for c in (a, b) for _ in range(6) for r in await c.poll(timeout_ms=100)]
            assert sorted((r.partition, r.offset) for r in read) == [
                (p, o) for p in range(4) for o in range(5)
            ]

    story(scenario)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_the_listener_is_told_what_changes(strategy: str) -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        options = {"partition_assignment_strategy": [strategy]}
        noted = Noted()
        async with member(brokers, "a", **options) as a:
            a.subscribe(["flights"], noted)
            await settle(a)
            async with member(brokers, "b", **options) as b:
                await settle(a, b)
            await settle(a)
        if strategy == "range":
            assert noted.calls == [
                ("assigned", [0, 1, 2, 3]), ("revoked", [0, 1, 2, 3]), ("assigned", [0, 1]),
                ("revoked", [0, 1]), ("assigned", [0, 1, 2, 3]), ("revoked", [0, 1, 2, 3]),
            ]  # fmt: skip
        else:
            first, *rest = noted.calls
            assert first == ("assigned", [0, 1, 2, 3])
            assert [call for call in rest if call != ("assigned", [])] == [
                ("revoked", [2, 3]), ("assigned", [2, 3]), ("revoked", [0, 1, 2, 3]),
            ]  # fmt: skip

    story(scenario)


def test_a_sticky_member_keeps_what_it_had_although_all_is_given_up() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        options = {"partition_assignment_strategy": ["sticky"]}
        async with member(brokers, "a", **options) as a:
            await settle(a)
            async with member(brokers, "b", **options) as b:
                await settle(a, b)
                assert (a.assignment(), b.assignment()) == (PARTITIONS[:2], PARTITIONS[2:])
                async with member(brokers, "c", **options) as c:
                    await settle(a, b, c)
                    assert a.assignment() == PARTITIONS[:2]
                    assert {*b.assignment(), *c.assignment()} == {*PARTITIONS[2:]}

    story(scenario)


def test_a_cooperative_join_stops_no_partition_that_stays() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        options = {"partition_assignment_strategy": ["cooperative-sticky"]}
        async with member(brokers, "a", **options) as a:
            await settle(a)
            b = member(brokers, "b", **options)
            await b.start()
            joining = asyncio.create_task(b.poll(timeout_ms=60_000))
            while not any(s.joining for s in brokers.groups["g"].members.values()):
                await asyncio.sleep(0.01)
            # b waits in its join; a has not noticed, then notices, and reads on.
            for _ in range(50):
                write(brokers, 1)
                read = {r.partition for _ in range(4) for r in await a.poll(timeout_ms=100)}
                assert read >= {0, 1}
            assert a.assignment() == PARTITIONS[:2]
            await joining
            await settle(a, b)
            await b.close()

    story(scenario)


def test_a_member_that_polls_too_late_leaves_and_loses_its_partitions() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        noted = Noted()
        async with member(brokers, "a", max_poll_interval_ms=10_000) as consumer:
            consumer.subscribe(["flights"], noted)
            await settle(consumer)
            await asyncio.sleep(13)
            assert brokers.requests(LeaveGroupRequest)[0].members[0].reason == "no poll for 10 s"
            assert any("last poll was 13 s ago" in line for line in consumer.health())
            with pytest.raises(CommitFailedError):
                await consumer.commit({PARTITIONS[0]: 1})
            await settle(consumer)
            assert noted.calls[1:3] == [("lost", [0, 1, 2, 3]), ("assigned", [0, 1, 2, 3])]

    story(scenario)


def test_waiting_in_a_poll_is_not_late() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers, "a", max_poll_interval_ms=10_000) as consumer:
            assert await consumer.poll(timeout_ms=60_000) == []
            assert not brokers.requests(LeaveGroupRequest)

    story(scenario)


def test_heartbeats_go_on_while_the_application_works() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers, "a", heartbeat_interval_ms=1_000) as consumer:
            await settle(consumer)
            before = len(brokers.requests(HeartbeatRequest))
            await asyncio.sleep(20)
            assert len(brokers.requests(HeartbeatRequest)) - before in (19, 20, 21)

    story(scenario)


PASSING = [
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
]


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        *((kind, code) for kind in (JoinGroupRequest, SyncGroupRequest) for code in PASSING),
        *((HeartbeatRequest, code) for code in PASSING),
        (SyncGroupRequest, ErrorCode.ILLEGAL_GENERATION),
        (HeartbeatRequest, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_after_any_passing_error_the_group_settles_again(kind: type, code: ErrorCode) -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        brokers.refusals[kind] = [code, code]
        async with member(brokers, "a") as a, member(brokers, "b") as b:
            await settle(a, b)
            for _ in range(50):
                await a.poll(timeout_ms=100)
                await b.poll(timeout_ms=100)
            await settle(a, b)
        assert not brokers.refusals[kind]

    story(scenario)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.GROUP_MAX_SIZE_REACHED, GroupMaxSizeReachedError),
        (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, InconsistentGroupProtocolError),
    ],
)
def test_what_only_the_application_can_mend_is_raised(code: int, error: type[Exception]) -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        brokers.refusals[JoinGroupRequest] = [code]
        async with member(brokers) as consumer:
            with pytest.raises(error):
                await consumer.poll()
            await settle(consumer)

    story(scenario)


def test_a_mistake_in_an_assignor_is_raised_and_not_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = group_member.assign

    async def broken(*arguments: Any) -> Any:
        monkeypatch.setattr(group_member, "assign", real)
        raise ZeroDivisionError("planted")

    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers) as consumer:
            with pytest.raises(ClientError, match="planted"):
                await consumer.poll()
            await settle(consumer)

    monkeypatch.setattr(group_member, "assign", broken)
    story(scenario)


def test_a_fenced_instance_stays_out() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers, "a", group_instance_id="one") as consumer:
            await settle(consumer)
            brokers.refusals[HeartbeatRequest] = [ErrorCode.FENCED_INSTANCE_ID]
            for _ in range(2):
                with pytest.raises(FencedInstanceIdError):
                    await consumer.poll(timeout_ms=10_000)
            assert consumer.assignment() == []
        assert not brokers.requests(LeaveGroupRequest)

    story(scenario)


def test_a_coordinator_that_dies_is_found_again_elsewhere() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers, "a") as a, member(brokers, "b") as b:
            await settle(a, b)
            for tp in PARTITIONS:
                if brokers.logs[tp].leader == 1:
                    brokers.elect(tp.partition, 2)
            brokers.kill(1)
            for _ in range(20):
                await a.poll(timeout_ms=500)
            assert any("coordinator is unknown" in line for line in a.health())
            brokers.coordinator = 2
            await settle(a, b)
            await a.commit()

    story(scenario)


def test_a_listener_that_raises_harms_no_state() -> None:
    class Broken(RebalanceListener):
        def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            raise ValueError("broken")

    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 1)
        async with member(brokers) as consumer:
            consumer.subscribe("flights", Broken())
            with pytest.raises(ClientError, match="broken"):
                await consumer.poll()
            assert consumer.assignment() == PARTITIONS
            assert len(await consumer.poll()) > 0

    story(scenario)


def test_a_listener_may_seek_and_commit_but_not_poll() -> None:
    class Busy(RebalanceListener):
        consumer: Consumer

        async def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            for tp in partitions:
                self.consumer.seek(tp, 7)
            await self.consumer.commit({partitions[0]: 7})
            with pytest.raises(ClientError, match="must not poll"):
                await self.consumer.poll()

    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 10)
        async with member(brokers) as consumer:
            busy = Busy()
            busy.consumer = consumer
            consumer.subscribe("flights", busy)
            records: list[Any] = []
            while len(records) < 12:
                records += await consumer.poll()
            assert sorted({r.offset for r in records}) == [7, 8, 9]

    story(scenario)


def test_a_cancelled_poll_loses_nothing() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 10)
        async with member(brokers, "a") as a, member(brokers, "b") as b:
            seen: list[tuple[int, int]] = []
            for _ in range(400):
                for consumer in (a, b):
                    try:
                        async with asyncio.timeout(0.013):
                            seen += [(r.partition, r.offset) for r in await consumer.poll()]
                    except TimeoutError:
                        pass
            assert sorted(set(seen)) == [(p, o) for p in range(4) for o in range(10)]

    story(scenario)


def test_new_partitions_make_the_leader_rebalance() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers, "a", metadata_max_age_ms=1_000) as consumer:
            await settle(consumer)
            brokers.grow(6)
            for _ in range(40):
                await consumer.poll(timeout_ms=100)
            assert len(consumer.assignment()) == 6

    story(scenario)


def test_the_leader_notices_partitions_that_came_while_it_waited_for_its_assignment() -> None:
    """It looked again only when it refreshed metadata again, after 5 minutes."""

    async def scenario(brokers: GroupBrokers) -> None:
        held = brokers.hold(SyncGroupRequest, lambda request: True)
        async with member(brokers) as consumer:
            polling = asyncio.create_task(consumer.poll(timeout_ms=1_000))
            await held.reached.wait()
            brokers.grow(6)
            assert await consumer.list_topics(["flights"])
            held.release.set()
            await polling
            async with asyncio.timeout(30):
                while len(consumer.assignment()) < 6:
                    await consumer.poll(timeout_ms=100)

    story(scenario)


def test_a_pattern_matches_whole_names_and_may_match_nothing() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers, "a", metadata_max_age_ms=1_000) as consumer:
            consumer.subscribe(re.compile("fl.*s"))
            await settle(consumer)
            consumer.subscribe(re.compile("light"))
            for _ in range(20):
                await consumer.poll(timeout_ms=100)
            assert consumer.assignment() == []
            assert any("no topic matches" in line for line in consumer.health())

    story(scenario)


def test_pause_and_resume_in_a_group() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 10)
        async with member(brokers, max_poll_records=3) as consumer:
            await settle(consumer)
            seen = [
                (tp.partition, o) for tp in PARTITIONS for o in range(await consumer.position(tp))
            ]
            consumer.pause(PARTITIONS[0])
            paused_at = await consumer.position(PARTITIONS[0])
            for _ in range(30):
                seen += [(r.partition, r.offset) for r in await consumer.poll(timeout_ms=100)]
            assert consumer.paused() == [PARTITIONS[0]]
            assert await consumer.position(PARTITIONS[0]) == paused_at
            consumer.resume()
            for _ in range(30):
                seen += [(r.partition, r.offset) for r in await consumer.poll(timeout_ms=100)]
            assert sorted(seen) == [(p, o) for p in range(4) for o in range(10)]

    story(scenario)


def test_partitions_assigned_by_hand_start_at_the_committed_offset() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        write(brokers, 10)
        brokers.groups["g"].offsets[PARTITIONS[0]] = (4, 1, "")
        brokers.refusals[OffsetFetchRequest] = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 4
        async with Consumer(
            bootstrap_servers=brokers.bootstrap, runtime=brokers.runtime_of("c"), group_id="g",
            auto_offset_reset="earliest", enable_auto_commit=False,
        ) as consumer:  # fmt: skip
            consumer.assign(PARTITIONS[:2])
            assert await consumer.position(PARTITIONS[0]) == 4
            assert await consumer.position(PARTITIONS[1]) == 0
            await consumer.commit({PARTITIONS[0]: 6})
        assert brokers.groups["g"].offsets[PARTITIONS[0]][0] == 6
        assert not brokers.requests(JoinGroupRequest)

    story(scenario)


def test_a_static_member_comes_back_as_itself() -> None:
    async def scenario(brokers: GroupBrokers) -> None:
        async with member(brokers, "a", group_instance_id="one") as consumer:
            await settle(consumer)
        assert not brokers.requests(LeaveGroupRequest)
        assert brokers.requests(JoinGroupRequest)[0].group_instance_id == "one"

    story(scenario)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"group_id": ""}, InvalidGroupIdError),
        ({"group_id": None, "group_instance_id": "x"}, InvalidArgumentError),
        ({"partition_assignment_strategy": []}, InvalidArgumentError),
        ({"partition_assignment_strategy": ["fair"]}, InvalidArgumentError),
        ({"heartbeat_interval_ms": 45_000}, InvalidArgumentError),
        ({"isolation_level": "committed"}, InvalidArgumentError),
        ({"offsets_storage": "file"}, InvalidArgumentError),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Consumer("flights", **{"group_id": "g", **options})


def test_without_a_group_there_is_nothing_to_subscribe_or_commit() -> None:
    consumer = Consumer("flights")
    with pytest.raises(InvalidGroupIdError):
        consumer.subscribe("flights")
    with pytest.raises(InvalidGroupIdError):
        consumer.commit_async()
