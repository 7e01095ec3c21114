"""I18, I19, L8 and L9 on planted states: what may be passes, and each thing that may not is found.

The last tests plant the faults in a coordinator that runs.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from barnabas import Admin, Consumer, OffsetAndMetadata, Producer
from barnabas_broker.coordinator.group.committed.committed import Commit
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.records import OffsetValue
from barnabas_common.topic_name import GROUP_METADATA_TOPIC
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import Invariants, InvariantViolation
from barnabas_simulator.invariants.groups import rules
from barnabas_simulator.invariants.groups.model import Committed, GroupState, GroupTruth
from barnabas_simulator.invariants.groups.rules import Sender
from barnabas_simulator.loop import run

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
OFFSETS = TopicPartition(GROUP_METADATA_TOPIC, 0)
SEVEN = OffsetValue(7, 0, "a 1")


# ---- I18


def test_a_partition_has_one_owner_in_a_generation() -> None:
    broken = rules.one_owner.broken
    assert broken("g", 1, {}, [("a", P0), ("b", P1)]) is None
    assert broken("g", 1, {P0: "a"}, [("a", P0), ("b", P1)]) is None
    for known, given in (({}, [("a", P0), ("b", P0)]), ({P0: "a"}, [("b", P0)])):
        assert "orders-0 belongs to a and to b in generation 1 of g" in str(
            broken("g", 1, known, given)
        )


def test_generations_rise() -> None:
    assert rules.generations_rise.broken("g", -1, 1) is None
    assert rules.generations_rise.broken("g", 2, 2) is None
    assert "generation 1 of g follows generation 2" in str(rules.generations_rise.broken("g", 2, 1))


@pytest.mark.parametrize(
    ("senders", "newest", "owners", "states"),
    [
        ([Sender("a", 3)], 3, {3: {P0: "a"}}, None),
        ([Sender("a", 4)], 3, {3: {P0: "b"}}, None),
        ([Sender("a", 3)], 3, {3: {P1: "b"}}, None),
        ([Sender("a", 2), Sender("a", 3)], 3, {3: {P0: "a"}}, None),
        ([], 3, {}, "no member has sent"),
        ([Sender("a", 2)], 3, {}, "of generation 2 of g was accepted after generation 3"),
        ([Sender("a", -1)], 3, {}, "of generation -1 of g was accepted"),
        ([Sender("a", 3)], 3, {3: {P0: "b"}}, "in which b owns it"),
    ],
)
def test_a_commit_is_of_the_newest_generation_and_by_the_owner(
    senders: list[Sender],
    newest: int,
    owners: dict[int, dict[TopicPartition, str]],
    states: str | None,
) -> None:
    broken = rules.commit_is_current.broken("g", P0, SEVEN, senders, newest, owners)
    assert broken is None if states is None else states in str(broken)


# ---- I19


def test_no_commit_is_ahead_of_the_log_or_of_the_work() -> None:
    assert rules.within_the_log.broken("g", P0, SEVEN, 7) is None
    assert "readable up to 6" in str(rules.within_the_log.broken("g", P0, SEVEN, 6))
    assert rules.nothing_skipped.broken("g", P0, SEVEN, 7) is None
    assert "no member has worked on 4" in str(rules.nothing_skipped.broken("g", P0, SEVEN, 4))


def test_what_is_answered_is_written() -> None:
    assert rules.acknowledged_is_written.broken("g", P0, 7, "a 1", [12]) is None
    assert "is not in the log: 7 'a 1'" in str(
        rules.acknowledged_is_written.broken("g", P0, 7, "a 1", [])
    )
    assert rules.assignment_is_written.broken("g", 3, 3) is None
    assert rules.assignment_is_written.broken("g", 3, 4) is None
    assert "of generation 3 was answered, 2" in str(rules.assignment_is_written.broken("g", 3, 2))


def test_what_a_transaction_commits_counts_with_its_marker() -> None:
    assert rules.counted_is_decided.broken("g", P0, SEVEN, False) is None
    assert "is not committed" in str(rules.counted_is_decided.broken("g", P0, SEVEN, True))


def test_a_coordinator_knows_what_was_acknowledged_and_what_the_log_says() -> None:
    assert rules.not_older_than_acknowledged.broken("g", P0, 7, 12, 12) is None
    assert "the one at 12" in str(rules.not_older_than_acknowledged.broken("g", P0, 5, 9, 12))
    known = Committed(SEVEN, 12)
    assert rules.memory_is_of_the_log.broken("g", P0, known, (P0, SEVEN)) is None
    for written in ((P1, SEVEN), (P0, OffsetValue(8, 0, "a 1"))):
        assert rules.memory_is_of_the_log.broken("g", P0, known, written) is not None


def test_a_reload_leads_to_what_the_log_says() -> None:
    written = GroupState(3, {"a": b"1"}, {P0: Committed(SEVEN, 12)})
    assert rules.reload_equals_log.broken("g", written, written) is None
    for loaded in (
        None,
        written._replace(generation=2),
        written._replace(assignments={"a": b"2"}),
        written._replace(offsets={}),
        written._replace(offsets={P0: Committed(SEVEN, 11)}),
    ):
        assert "the log says" in str(rules.reload_equals_log.broken("g", loaded, written))


def test_an_offset_that_is_committed_twice_is_found_twice() -> None:
    truth = GroupTruth(history={3: (P0, SEVEN), 4: (P1, SEVEN), 9: (P0, SEVEN)})
    assert truth.found(P0, 7, "a 1") == [3, 9]
    assert truth.found(P0, 7, "") == []


# ---- L8 and L9


def test_a_group_at_rest_is_stable_and_has_caught_up() -> None:
    assert rules.group_is_stable.broken("g", "Stable", ["b", "a"], ["a", "b"]) is None
    for state, members in (("Stable", ["a"]), ("Stable", ["a", "b", "b"]), ("Empty", ["a", "b"])):
        assert f"g is {state}" in str(rules.group_is_stable.broken("g", state, members, ["a", "b"]))
    assert rules.group_has_caught_up.broken("g", P0, 7, 7) is None
    assert "g has committed 5 of orders-0, which ends at 7: lag 2" in str(
        rules.group_has_caught_up.broken("g", P0, 5, 7)
    )
    assert rules.group_has_caught_up.broken("g", P0, -1, 7) is not None
    assert rules.group_has_caught_up.broken("g", P0, -1, 0) is None


# ---- in a cluster


Tamper = Callable[[SimulatedCluster, Invariants], Awaitable[None]]


def group_of(cluster: SimulatedCluster, checker: Invariants) -> Group:
    broker = cluster.broker(checker.state_of(OFFSETS).leader)
    group = broker.groups.groups.get("g")
    assert group is not None
    return group


async def story(tamper: Tamper | None) -> Invariants:
    """One member reads three records and commits; then the fault is planted, and all must rest."""
    cluster = SimulatedCluster(3, config={"offsets.topic.num.partitions": "1"})
    checker = Invariants(cluster)
    checker.install()
    await cluster.start()
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(P0.topic, 1, 3)
    async with Producer(cluster.bootstrap, runtime=cluster.client_runtime("producer")) as producer:
        for number in range(3):
            await producer.send_and_wait(P0.topic, b"%d" % number, partition=0)
    checker.groups.living("g", ["member"], P0.topic)
    consumer = Consumer(
        P0.topic,
        bootstrap_servers=cluster.bootstrap,
        runtime=cluster.client_runtime("member"),
        group_id="g",
        client_id="member",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with consumer:
        read = 0
        while read < 3:
            for record in await consumer.poll(timeout_ms=1_000):
                checker.groups.worked("g", P0, record.offset)
                read = record.offset + 1
        await consumer.commit({P0: OffsetAndMetadata(2, "member 1")})
        await consumer.commit({P0: OffsetAndMetadata(3, "member 2")})
        if tamper is not None:
            await tamper(cluster, checker)
            await asyncio.sleep(2.0)
        assert await consumer.committed([P0]) == {P0: OffsetAndMetadata(3, "member 2")}
        await checker.at_rest(within=10.0)
    return checker


def test_a_group_in_a_cluster_violates_nothing() -> None:
    checker = run(story(None), seed=1, max_time=300.0)
    assert checker.groups.answers.acknowledged == 2
    assert checker.findings.checks["I18 GroupSafety"] > 4
    assert checker.findings.checks["I19 OffsetsCommitted"] > 8


async def another_value(cluster: SimulatedCluster, checker: Invariants) -> None:
    offsets = group_of(cluster, checker).committed.offsets
    offsets[P0] = Commit(OffsetValue(9), offsets[P0].at)


async def an_older_commit(cluster: SimulatedCluster, checker: Invariants) -> None:
    offsets = group_of(cluster, checker).committed.offsets
    history = checker.groups.groups["g"].history
    at = min(history)
    offsets[P0] = Commit(history[at][1], at)


async def a_member_too_many(cluster: SimulatedCluster, checker: Invariants) -> None:
    checker.groups.living("g", [], P0.topic)


async def a_lag(cluster: SimulatedCluster, checker: Invariants) -> None:
    async with Producer(cluster.bootstrap, runtime=cluster.client_runtime("producer")) as producer:
        await producer.send_and_wait(P0.topic, b"3", partition=0)


async def a_commit_ahead_of_the_work(cluster: SimulatedCluster, checker: Invariants) -> None:
    runtime = cluster.client_runtime("other")
    async with Consumer(
        bootstrap_servers=cluster.bootstrap, runtime=runtime, group_id="h"
    ) as other:
        other.assign([P0])
        checker.groups.worked("h", P0, 1)
        await other.commit({P0: 1})


@pytest.mark.parametrize(
    ("tamper", "name", "states"),
    [
        (another_value, "I19 OffsetsCommitted", "the log has"),
        (an_older_commit, "I19 OffsetsCommitted", "was acknowledged before"),
        (a_member_too_many, "L8 GroupsAreStable", "alive are"),
        (a_lag, "L9 GroupsCatchUp", "lag 1"),
        (a_commit_ahead_of_the_work, "I19 OffsetsCommitted", "no member has worked on 0"),
    ],
)
def test_a_fault_in_a_coordinator_is_found(tamper: Tamper, name: str, states: str) -> None:
    with pytest.raises(InvariantViolation, match=name) as raised:
        run(story(tamper), seed=1, max_time=300.0)
    assert states in raised.value.states
    assert raised.value.partition == OFFSETS
