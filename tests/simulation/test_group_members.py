"""Members of a group against a scripted coordinator, on virtual time."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import barnabas.group.member as group_member
import pytest
from barnabas import CommitFailedError, Consumer, OffsetAndMetadata, RebalanceListener
from barnabas_common.errors import (
    ClientError,
    FencedInstanceIdError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    InvalidArgumentError,
    InvalidGroupIdError,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run

from tests.support.scripted_group import GroupBrokers

PARTITIONS = [TopicPartition("flights", number) for number in range(4)]


def story(scenario: Callable[[GroupBrokers], Awaitable[None]]) -> None:
    async def tell() -> None:
        async with GroupBrokers() as brokers:
            await scenario(brokers)

    run(tell(), seed=1, max_time=3600.0)


def member(brokers: GroupBrokers, name: str = "c", *topics: str, **options: Any) -> Consumer:
    return Consumer(
        *(topics or ("flights",)),
        bootstrap_servers=brokers.bootstrap,
        runtime=brokers.runtime_of(name),
        **{"group_id": "g", "client_id": name, "auto_offset_reset": "earliest", **options},
    )


def write(brokers: GroupBrokers, count: int) -> None:
    for partition in range(len(brokers.logs)):
        builder = BatchBuilder()
        for number in range(count):
            builder.append(number, None, b"%d" % number, [])
        brokers.log(partition).append(builder.build())
    brokers.changed()


async def settle(*consumers: Consumer, rounds: int = 200) -> None:
    """Poll all of them until together they have every partition, and nothing is due."""
    for _ in range(rounds):
        for consumer in consumers:
            await consumer.poll(timeout_ms=50)
        held = [tp for consumer in consumers for tp in consumer.assignment()]
        if sorted(held) == PARTITIONS and all("reads" in c.health()[0] for c in consumers):
            return
    raise AssertionError([c.health() for c in consumers])


class Noted(RebalanceListener):
    def __init__(self) -> None:
        self.calls: list[tuple[str, list[int]]] = []

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(("assigned", [tp.partition for tp in partitions]))

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        await asyncio.sleep(0.01)
        self.calls.append(("revoked", [tp.partition for tp in partitions]))

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append(("lost", [tp.partition for tp in partitions]))


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
        ({"isolation_level": "read_committed"}, InvalidArgumentError),
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
