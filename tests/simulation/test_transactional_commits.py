"""Offsets that a group commits in transactions, on a whole cluster."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from barnabas import Admin, Producer
from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_broker.replica.serve.coordinator_reads import CoordinatorReads
from barnabas_broker.replica.serve.verification import TransactionVerification, Verified
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import DeleteGroupsRequest
from barnabas_common.messages.produce import ProduceRequest
from barnabas_common.messages.transactions import (
    AddOffsetsToTxnRequest,
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
)
from barnabas_common.topic_name import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster

from tests.support.raw_groups import RawMember, settle
from tests.support.raw_transactions import (
    PARTITIONS,
    RawTransaction,
    TransactionCoordinators,
    in_cluster,
)
from tests.support.transactional_data import Sender

E = ErrorCode
FIRST = PARTITIONS[0]


async def begin(coordinators: TransactionCoordinators) -> RawTransaction:
    """An open transaction; the group `g` has a coordinator."""
    one = RawTransaction(coordinators)
    await one.init()
    await one.add(FIRST)
    await coordinators.find("g")
    return one


async def commit_offset(
    coordinators: TransactionCoordinators,
    one: RawTransaction,
    offset: int,
    member: RawMember | None = None,
    of: TopicPartition = FIRST,
) -> ErrorCode:
    """Commit an offset of the group `g` in the transaction."""
    offsets = TxnOffsetCommitRequest(
        "copy", "g", *one.producer, partitions=[TxnOffsetCommitPartition(*of, offset)]
    )
    if member is not None:
        offsets.generation_id, offsets.member_id = member.generation_id, member.member_id
    while True:
        answer = await coordinators.ask(await coordinators.find("g"), offsets)
        error = ErrorCode(answer.partitions[0].error_code)
        if error not in (E.COORDINATOR_LOAD_IN_PROGRESS, E.CONCURRENT_TRANSACTIONS):
            return error
        await asyncio.sleep(0.1)


async def add_offsets(coordinators: TransactionCoordinators, one: RawTransaction) -> None:
    asked = AddOffsetsToTxnRequest("copy", *one.producer, "g")
    assert (await coordinators.send("copy", asked)).error_code == E.NONE


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_of_a_transaction_count_with_its_marker(commit: bool) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = await begin(coordinators)
        assert await commit_offset(coordinators, one, 7) == E.TRANSACTION_ABORTABLE, "not added"
        await add_offsets(coordinators, one)
        assert await commit_offset(coordinators, one, 7) == E.NONE
        assert await coordinators.committed("g", FIRST) == -1
        await one.end(commit)
        await coordinators.settled("copy")
        assert await coordinators.committed("g", FIRST) == (7 if commit else -1)
        cluster.kill(await coordinators.find("g"))
        await asyncio.sleep(15.0)
        assert await coordinators.committed("g", FIRST) == (7 if commit else -1)

    in_cluster(story, offsets_topic_num_partitions="4")


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_that_comes_while_the_groups_are_read_counts_too(
    monkeypatch: pytest.MonkeyPatch, commit: bool
) -> None:
    marked = asyncio.Event()
    until_committed = CoordinatorReads.until_committed

    async def slowly(self: CoordinatorReads, key: TopicPartition, *arguments: Any) -> None:
        await until_committed(self, key, *arguments)
        if key.topic == GROUP_METADATA_TOPIC:
            await marked.wait()

    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = await begin(coordinators)
        await add_offsets(coordinators, one)
        assert await commit_offset(coordinators, one, 7) == E.NONE
        monkeypatch.setattr(CoordinatorReads, "until_committed", slowly)
        cluster.kill(await coordinators.find("g"))
        await one.end(commit)
        await coordinators.settled("copy")
        marked.set()
        (found,) = await coordinators.fetch("g", FIRST, require_stable=True)
        assert (found.error_code, found.committed_offset) == (E.NONE, 7 if commit else -1)

    in_cluster(story, offsets_topic_num_partitions="4")


def test_offsets_of_unknown_partitions_fail_alone() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = await begin(coordinators)
        await add_offsets(coordinators, one)
        assert await commit_offset(coordinators, one, 7) == E.NONE
        partitions = [
            TxnOffsetCommitPartition(FIRST.topic, 99, 1),
            TxnOffsetCommitPartition("absent", 0, 1),
            TxnOffsetCommitPartition(*FIRST, 8),
            TxnOffsetCommitPartition(*PARTITIONS[1], 1, committed_metadata="x" * 5000),
        ]
        offsets = TxnOffsetCommitRequest("copy", "g", *one.producer, partitions=partitions)
        answer = await coordinators.ask(await coordinators.find("g"), offsets)
        assert [item.error_code for item in answer.partitions] == [
            E.UNKNOWN_TOPIC_OR_PARTITION,
            E.UNKNOWN_TOPIC_OR_PARTITION,
            E.NONE,
            E.OFFSET_METADATA_TOO_LARGE,
        ]
        await one.end(commit=True)
        await coordinators.settled("copy")
        assert await coordinators.committed("g", FIRST) == 8
        assert await coordinators.committed("g", PARTITIONS[1]) == -1

    in_cluster(story, offsets_topic_num_partitions="4")


class SlowVerification:
    """From `install` on, the verification of commits is answered when `go_on` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()
        self._monkeypatch = monkeypatch

    def install(self) -> None:
        verify = TransactionVerification.verify

        async def slowly(slow: TransactionVerification, request: ProduceRequest) -> Verified:
            verified = await verify(slow, request)
            if request.partitions[0].topic == GROUP_METADATA_TOPIC and not self.go_on.is_set():
                self.reached.set()
                await self.go_on.wait()
            return verified

        self._monkeypatch.setattr(TransactionVerification, "verify", slowly)


def test_offsets_are_not_committed_for_a_generation_that_ends_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The record of the old generation's commit would follow the record of the next one."""
    verification = SlowVerification(monkeypatch)

    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = await begin(coordinators)
        await add_offsets(coordinators, one)
        coordinator = await coordinators.find("g")
        first, second = (RawMember(coordinators, coordinator, "g") for _ in range(2))
        await settle([first])
        old_generation = replace(first)
        verification.install()
        committing = asyncio.create_task(commit_offset(coordinators, one, 7, old_generation))
        await verification.reached.wait()
        await settle([second, first])
        assert first.generation_id > old_generation.generation_id
        verification.go_on.set()
        assert await committing == E.ILLEGAL_GENERATION
        assert await commit_offset(coordinators, one, 8, first) == E.NONE
        await one.end(commit=True)
        await coordinators.settled("copy")
        assert await coordinators.committed("g", FIRST) == 8

    in_cluster(story, offsets_topic_num_partitions="4")


def test_offsets_are_not_committed_for_a_group_that_is_deleted_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verification = SlowVerification(monkeypatch)

    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = await begin(coordinators)
        await add_offsets(coordinators, one)
        await coordinators.describe("g")
        verification.install()
        committing = asyncio.create_task(commit_offset(coordinators, one, 7))
        await verification.reached.wait()
        answer = await coordinators.ask(await coordinators.find("g"), DeleteGroupsRequest(["g"]))
        assert answer.results[0].error_code == E.NONE
        verification.go_on.set()
        assert await committing == E.NOT_COORDINATOR
        assert await commit_offset(coordinators, one, 8) == E.NONE
        await one.end(commit=True)
        await coordinators.settled("copy")
        assert await coordinators.committed("g", FIRST) == 8

    in_cluster(story, offsets_topic_num_partitions="4")


@pytest.mark.parametrize("ticks", range(4))
def test_offsets_that_follow_the_deletion_of_their_group_outlive_it(ticks: int) -> None:
    """They were written before the tombstones: the next coordinator was without them."""

    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = await begin(coordinators)
        await add_offsets(coordinators, one)
        assert await commit_offset(coordinators, one, 7) == E.NONE
        groups = cluster.broker(await coordinators.find("g")).groups
        deletion = asyncio.create_task(groups.admin.delete("g", "admin"))
        while groups._groups.get("g") is not None:
            await asyncio.sleep(0)
        for _ in range(ticks):
            await asyncio.sleep(0)
        offsets = [TxnOffsetCommitPartition(*FIRST, 8)]
        request = TxnOffsetCommitRequest("copy", "g", *one.producer, partitions=offsets)
        answer = await groups.txn_offsets.commit(request)
        assert (answer.partitions[0].error_code, (await deletion).error_code) == (E.NONE, E.NONE)
        await one.end(commit=True)
        await coordinators.settled("copy")
        assert await coordinators.committed("g", FIRST) == 8
        cluster.kill(await coordinators.find("g"))
        await asyncio.sleep(15.0)
        assert await coordinators.committed("g", FIRST) == 8

    in_cluster(story, offsets_topic_num_partitions="4")


def test_offsets_are_not_committed_for_a_topic_that_is_deleted_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next topic of that name would be read from there on."""
    verification = SlowVerification(monkeypatch)
    other, unknown = TopicPartition("other", 0), E.UNKNOWN_TOPIC_OR_PARTITION

    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(other.topic, 1, 3)
            one = await begin(coordinators)
            await add_offsets(coordinators, one)
            await coordinators.describe("g")
            verification.install()
            committing = asyncio.create_task(commit_offset(coordinators, one, 7, of=other))
            await verification.reached.wait()
            await admin.delete_topics([other.topic])
            verification.go_on.set()
            assert await committing == E.COORDINATOR_NOT_AVAILABLE, "and asked again:"
            assert await commit_offset(coordinators, one, 7, of=other) == unknown
            await one.end(commit=True)
            await coordinators.settled("copy")
            await admin.create_topic(other.topic, 1, 3)
        assert await coordinators.committed("g", other) == -1

    in_cluster(story, offsets_topic_num_partitions="4")


def test_a_partition_without_a_state_changes_no_key_of_the_others() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        await coordinators.find("g")
        sender = Sender(cluster, RawTransaction(coordinators))
        one = sender.transaction
        await one.init()
        await coordinators.describe("g")
        held = {
            TRANSACTION_STATE_TOPIC: partition_of_key("copy", 4),
            GROUP_METADATA_TOPIC: partition_of_key("g", 4),
        }
        for broker_id in cluster.broker_ids:
            topics = cluster.broker(broker_id).metadata_cache._topics
            for topic, partition in held.items():
                del topics[topic][(partition + 1) % 4]
        async with asyncio.timeout(30.0):
            await one.add(FIRST)
            await sender.produce(FIRST, b"0")
            await add_offsets(coordinators, one)
            assert await commit_offset(coordinators, one, 7) == E.NONE
            assert await one.end(commit=True) == E.NONE
        await coordinators.settled("copy")
        assert await coordinators.committed("g", FIRST) == 7

    in_cluster(story, offsets_topic_num_partitions="4")


def test_the_first_offsets_of_a_cluster_may_be_those_of_a_transaction() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        async with Producer(
            cluster.bootstrap,
            runtime=cluster.client_runtime("p"),
            transactional_id="copy",
            max_block_ms=20_000,
        ) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send_offsets_to_transaction({FIRST: 7}, "g")
        await coordinators.settled("copy")
        assert await coordinators.committed("g", FIRST) == 7

    in_cluster(story, offsets_topic_num_partitions="4")
