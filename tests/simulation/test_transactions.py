"""The transaction coordinator on a whole cluster: answers, markers, time, and what outlives it."""

import asyncio

import pytest
from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_broker.coordinator.transaction.admission import Producer
from barnabas_broker.coordinator.transaction.states import TransactionState, is_decided
from barnabas_broker.log.append_origin import AppendOrigin
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.messages.producer_ids import InitProducerIdRequest
from barnabas_common.messages.transactions import EndTxnRequest, ListTransactionsRequest
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.topic_name import TRANSACTION_STATE_TOPIC
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster

from tests.support.raw_transactions import (
    PARTITIONS,
    SETTINGS,
    MarkerLeaders,
    RawTransaction,
    TransactionCoordinators,
    in_cluster,
    same_everywhere,
)

E = ErrorCode


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_of_a_client_of_kafka_3_9(leaders: MarkerLeaders, commit: bool) -> None:
    async def story(_: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = RawTransaction(coordinators)
        producer = await one.init()
        assert producer.epoch == 0
        for _ in range(2):
            await one.add(*PARTITIONS[:2])
            await one.add(PARTITIONS[2])
            found = await coordinators.describe_transaction("copy")
            assert (found.transaction_state, len(found.partitions)) == ("Ongoing", 3)
            answer = await one.try_end(commit)
            assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, -1, -1)
            found = await coordinators.settled("copy")
            end = "CompleteCommit" if commit else "CompleteAbort"
            assert (found.transaction_state, found.partitions) == (end, [])
            assert same_everywhere(leaders, PARTITIONS) == {(*producer, commit)}
        assert (await one.try_end(commit)).error_code == E.NONE, "taken for a retry"
        assert (await one.try_end(not commit)).error_code == E.INVALID_TXN_STATE

    in_cluster(story)


@pytest.mark.parametrize("commit", [True, False])
def test_under_version_2_every_transaction_has_an_epoch(
    leaders: MarkerLeaders, commit: bool
) -> None:
    async def story(_: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = RawTransaction(coordinators, version=2)
        first = await one.init()
        for number in range(3):
            before = one.producer
            assert before == (first.producer_id, number)
            await one.add(*PARTITIONS)
            assert await one.end(commit) is E.NONE
        await one.add(PARTITIONS[0])
        late = await coordinators.send("copy", EndTxnRequest("copy", *before, commit, 2))
        assert late.error_code == E.PRODUCER_FENCED, "it meant the transaction before"
        assert (await coordinators.describe_transaction("copy")).transaction_state == "Ongoing"
        markers = {(first.producer_id, epoch, commit) for epoch in (1, 2, 3)}
        assert same_everywhere(leaders, PARTITIONS) == markers

    in_cluster(story)


def test_a_producer_of_version_2_may_abort_where_nothing_is_open(leaders: MarkerLeaders) -> None:
    async def story(_: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = RawTransaction(coordinators, version=2)
        first = await one.init()
        assert await one.end(False) is E.NONE
        assert one.producer == (first.producer_id, 1)
        assert (await coordinators.settled("copy")).transaction_state == "CompleteAbort"
        await one.add(PARTITIONS[0])
        assert await one.end(True) is E.NONE
        await coordinators.settled("copy")
        assert leaders.outcomes(PARTITIONS[0]) == {(first.producer_id, 2, True)}

    in_cluster(story)


def test_a_new_producer_aborts_the_open_transaction_and_fences_its_producer(
    leaders: MarkerLeaders,
) -> None:
    async def story(_: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        zombie, heir = RawTransaction(coordinators), RawTransaction(coordinators)
        old = await zombie.init()
        await zombie.add(*PARTITIONS)
        assert (await heir.try_init()).error_code == E.CONCURRENT_TRANSACTIONS
        new = await heir.init()
        assert new == (old.producer_id, old.epoch + 2), "one for the abort, one for the heir"
        assert same_everywhere(leaders, PARTITIONS) == {(old.producer_id, old.epoch + 1, False)}
        assert await zombie.try_add(PARTITIONS[0]) == [E.PRODUCER_FENCED]
        assert (await zombie.try_end(True)).error_code == E.PRODUCER_FENCED
        await heir.add(PARTITIONS[0])
        assert await heir.end(True) is E.NONE

    in_cluster(story)


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_that_is_open_for_too_long_is_aborted(
    leaders: MarkerLeaders, version: int
) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = RawTransaction(coordinators, version=version, timeout_ms=5000)
        producer = await one.init()
        await one.add(*PARTITIONS)
        await asyncio.sleep(4.0)
        assert (await coordinators.settled("copy")).transaction_state == "Ongoing"
        await asyncio.sleep(13.0)
        found = await coordinators.settled("copy")
        assert found.transaction_state == "CompleteAbort"
        ((_, epoch, commit),) = same_everywhere(leaders, PARTITIONS)
        assert not commit and epoch > producer.epoch
        assert (await one.try_end(True)).error_code == E.PRODUCER_FENCED
        assert await one.try_add(PARTITIONS[0]) == [E.PRODUCER_FENCED]
        (event,) = [e for e in cluster.events() if e.kind is EventKind.TRANSACTION_FENCED]
        assert "5000 ms" in event.cause

    in_cluster(story)


def test_a_transactional_id_that_is_not_used_is_forgotten(leaders: MarkerLeaders) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = RawTransaction(coordinators)
        old = await one.init()
        await one.add(*PARTITIONS)
        await one.end(True)
        await asyncio.sleep(120.0)
        found = await coordinators.describe_transaction("copy")
        assert found.error_code == E.TRANSACTIONAL_ID_NOT_FOUND
        assert await one.try_add(PARTITIONS[0]) == [E.INVALID_PRODUCER_ID_MAPPING]
        cluster.kill(await coordinators.find_transaction("copy"))
        found = await coordinators.describe_transaction("copy")
        assert found.error_code == E.TRANSACTIONAL_ID_NOT_FOUND, "its tombstone is in the log"
        new = await one.init()
        assert new.producer_id != old.producer_id and new.epoch == 0

    in_cluster(
        story,
        transactional_id_expiration_ms="60000",
        transaction_remove_expired_transaction_cleanup_interval_ms="10000",
    )


@pytest.mark.parametrize("version", [-1, 3, 70_000])
def test_an_unknown_transaction_version_is_refused_and_leaves_the_transactional_id_usable(
    leaders: MarkerLeaders, version: int
) -> None:
    async def story(_: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = RawTransaction(coordinators, version=2)
        await one.init()
        one.version = version
        assert await one.try_add(PARTITIONS[0]) == [E.UNSUPPORTED_VERSION]
        assert (await one.try_end(False)).error_code == E.UNSUPPORTED_VERSION
        one.version = 2
        assert await one.try_add(PARTITIONS[0]) == [E.NONE]
        assert await one.end(True) is E.NONE

    in_cluster(story)


def test_what_is_refused(leaders: MarkerLeaders) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        for timeout_ms in (0, -1, 900_001):
            one = RawTransaction(coordinators, timeout_ms=timeout_ms)
            assert (await one.try_init()).error_code == E.INVALID_TRANSACTION_TIMEOUT
        one = RawTransaction(coordinators)
        assert await one.try_add(PARTITIONS[0]) == [E.INVALID_PRODUCER_ID_MAPPING]
        producer = await one.init()
        absent = TopicPartition("orders", 3)
        assert await one.try_add(PARTITIONS[0], absent) == [
            E.OPERATION_NOT_ATTEMPTED,
            E.UNKNOWN_TOPIC_OR_PARTITION,
        ]
        assert (await one.try_end(True)).error_code == E.INVALID_TXN_STATE, "nothing is open"
        assert await one.try_add(PARTITIONS[0], verify=True) == [E.TRANSACTION_ABORTABLE]
        await one.add(PARTITIONS[0])
        assert await one.try_add(*PARTITIONS[:2], verify=True) == [
            E.NONE,
            E.TRANSACTION_ABORTABLE,
        ]
        one.producer = Producer(producer.producer_id + 1, 0)
        assert (await one.try_end(True)).error_code == E.INVALID_PRODUCER_ID_MAPPING
        one.producer = Producer(producer.producer_id, 1)
        assert (await one.try_end(True)).error_code == E.PRODUCER_FENCED
        at = await coordinators.find_transaction("copy")
        elsewhere = next(broker for broker in cluster.broker_ids if broker != at)
        answer = await coordinators.ask(elsewhere, EndTxnRequest("copy", *producer, True))
        assert answer.error_code == E.NOT_COORDINATOR
        answer = await coordinators.ask(at, EndTxnRequest("", *producer, True))
        assert answer.error_code == E.INVALID_REQUEST
        listed = await coordinators.ask(at, ListTransactionsRequest(["Ongoing", "Odd"]))
        assert [item.transactional_id for item in listed.transaction_states] == ["copy"]
        assert listed.unknown_state_filters == ["Odd"]
        none = await coordinators.ask(at, ListTransactionsRequest(["Empty"]))
        assert none.transaction_states == []

    in_cluster(story)


def test_a_coordinator_that_is_replaced_while_it_waits_for_a_producer_id_says_so() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        at = await coordinators.find_transaction("copy")
        coordinator = cluster.broker(at).transactions
        new_producer_id = coordinator._new_producer_id
        count = int(SETTINGS["transaction.state.log.num.partitions"])
        partition = TopicPartition(TRANSACTION_STATE_TOPIC, partition_of_key("copy", count))

        async def replaced_first() -> int:
            coordinator._transactions.became_follower(partition, 1_000)
            return await new_producer_id()

        coordinator._new_producer_id = replaced_first
        answer = await coordinator.init_producer_id(InitProducerIdRequest("copy", 60_000))
        assert answer.error_code == E.NOT_COORDINATOR
        assert coordinator._transactions.get("copy") is None

    in_cluster(story)


# ---- what outlives a coordinator


class Steps:
    """How far the coordinator at one broker has come with a transaction."""

    def __init__(self, cluster: SimulatedCluster, at: int, leaders: MarkerLeaders) -> None:
        self._broker = cluster.broker(at)
        self._leaders = leaders

    def is_at(self, step: str) -> bool:
        transaction = self._broker.transactions._transactions.get("copy")
        assert transaction is not None
        state, pending = transaction.metadata.state, transaction.pending
        marked = len(self._leaders.markers)
        if is_decided(state):
            markers = {0: "decided", 3: "all markers"}.get(marked, "some markers")
            return step == markers
        if pending is not None and is_decided(pending):
            return step == "deciding"
        return step == ("asked" if state is TransactionState.ONGOING else "complete")


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(
    "step", ["asked", "deciding", "decided", "some markers", "all markers", "complete"]
)
def test_a_transaction_is_completed_wherever_its_coordinator_died(
    leaders: MarkerLeaders, step: str, commit: bool, version: int
) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = RawTransaction(coordinators, version=version)
        producer = await one.init()
        await one.add(*PARTITIONS)
        at = await coordinators.find_transaction("copy")
        steps = Steps(cluster, at, leaders)
        ending = asyncio.ensure_future(one.end(commit))
        async with asyncio.timeout(2.0):
            while not steps.is_at(step):
                await asyncio.sleep(0.0001)
        cluster.kill(at)
        assert await ending is E.NONE
        found = await coordinators.settled("copy")
        assert found.transaction_state == ("CompleteCommit" if commit else "CompleteAbort")
        epoch = producer.epoch + (1 if version else 0)
        assert same_everywhere(leaders, PARTITIONS) == {(producer.producer_id, epoch, commit)}
        assert found.producer_epoch == epoch

    in_cluster(story)


def test_markers_follow_the_leaders_of_the_partitions(leaders: MarkerLeaders) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = RawTransaction(coordinators)
        producer = await one.init()
        await one.add(*PARTITIONS)
        at = await coordinators.find_transaction("copy")
        leaders.refuse = lambda broker_id: E.NONE if broker_id == at else E.NOT_LEADER_OR_FOLLOWER
        assert (await one.try_end(True)).error_code == E.NONE
        await asyncio.sleep(1.0)
        found = await coordinators.describe_transaction("copy")
        assert found.transaction_state == "PrepareCommit"
        assert 0 < len(found.partitions) < 3, "what is not written yet"
        assert await one.try_add(PARTITIONS[0]) == [E.CONCURRENT_TRANSACTIONS]
        leaders.refuse = lambda _: E.NONE
        cluster.kill(next(broker for broker in cluster.broker_ids if broker != at))
        found = await coordinators.settled("copy")
        assert found.transaction_state == "CompleteCommit"
        assert same_everywhere(leaders, PARTITIONS) == {(*producer, True)}

    in_cluster(story)


def test_markers_that_a_leader_refuses_are_told_and_not_asked_for_again(
    leaders: MarkerLeaders,
) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = RawTransaction(coordinators)
        producer = await one.init()
        await one.add(PARTITIONS[0])
        leaders.refuse = lambda _: E.TRANSACTION_COORDINATOR_FENCED
        assert (await one.try_end(True)).error_code == E.NONE
        await asyncio.sleep(5.0)
        (told,) = [e for e in cluster.events() if e.kind is EventKind.TRANSACTION_MARKERS_REFUSED]
        assert told.details["transactional_id"] == "copy"
        assert told.details["producer_id"] == producer.producer_id

    in_cluster(story)


def test_the_next_transaction_waits_until_the_one_before_is_complete(
    leaders: MarkerLeaders,
) -> None:
    """Beyond Kafka, for clients of version 2. It does not wait for long."""

    async def story(_: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        loop = asyncio.get_running_loop()
        one = RawTransaction(coordinators, version=2)
        await one.init()
        await one.add(*PARTITIONS)
        await one.end(True)
        assert await one.try_add(*PARTITIONS) == [E.NONE] * 3, "the markers take milliseconds"
        leaders.refuse = lambda _: E.NOT_LEADER_OR_FOLLOWER
        await one.end(True)
        began = loop.time()
        assert await one.try_add(PARTITIONS[0]) == [E.CONCURRENT_TRANSACTIONS]
        assert 0.5 <= loop.time() - began < 1.0
        adding = asyncio.create_task(one.try_add(PARTITIONS[0]))
        await asyncio.sleep(0.1)
        assert not adding.done()
        leaders.refuse = lambda _: E.NONE
        assert await adding == [E.NONE]
        await one.end(False)
        assert (await coordinators.settled("copy")).transaction_state == "CompleteAbort"

    in_cluster(story)


def test_a_record_that_cannot_be_read_harms_only_its_transactional_id() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = RawTransaction(coordinators)
        await one.init()
        await one.add(*PARTITIONS)
        at = await coordinators.find_transaction("copy")
        builder = BatchBuilder()
        builder.append(1, b"\0\0\0\x05other", b"\0\x00garbage")
        builder.append(1, b"\xff", b"garbage")
        builder.append(1, b"", b"")
        key = partition_of_key("copy", 4)
        item = ProducePartition(TRANSACTION_STATE_TOPIC, key, builder.build())
        request = ProduceRequest(-1, 5000, [item])
        produces = cluster.broker(at).replica_manager.produces
        response = await produces.produce(request, AppendOrigin.COORDINATOR)
        assert response is not None and not response.partitions[0].error_code
        cluster.kill(at)
        await asyncio.sleep(20.0)
        assert (await coordinators.describe_transaction("copy")).transaction_state == "Ongoing"
        kinds = [event.kind for event in cluster.events()]
        assert kinds.count(EventKind.COORDINATOR_RECORD_UNREADABLE) == 3
        assert await one.end(commit=True) == E.NONE
        await coordinators.settled("copy")

    in_cluster(story)
