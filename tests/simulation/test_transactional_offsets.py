"""Offsets in a transaction, and the loop that consumes, transforms and produces."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from barnabas import (
    CommitFailedError,
    Consumer,
    ConsumerGroupMetadata,
    ConsumerRecord,
    OffsetAndMetadata,
    Producer,
    ProducerRecord,
    exactly_once,
)
from barnabas_common.errors import (
    BarnabasError,
    ClientError,
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    InvalidArgumentError,
    InvalidGroupIdError,
    OffsetMetadataTooLargeError,
    ProducerFencedError,
    RequestTimedOutError,
    TransactionFailedError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import OffsetFetchRequest
from barnabas_common.messages.producer_ids import InitProducerIdRequest
from barnabas_common.messages.transactions import (
    AddOffsetsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run

from tests.support.scripted_brokers import ScriptedLog, refuse
from tests.support.scripted_transactions import TransactionBrokers
from tests.support.transactional_producer import producer_of, story

E = ErrorCode
TP = TopicPartition("flights", 0)
PARTITIONS = 4
"""Of the topic: the input is in 0 to 2, the output goes to 3."""


def consumer_of(brokers: TransactionBrokers, name: str = "c", **options: Any) -> Consumer:
    return Consumer(
        "flights",
        bootstrap_servers=brokers.bootstrap,
        runtime=brokers.runtime_of(name),
        **{
            "group_id": "g",
            "client_id": name,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "isolation_level": "read_committed",
            **options,
        },
    )


def committed_offset(brokers: TransactionBrokers, partition: int = 0) -> int | None:
    found = brokers.groups["g"].offsets.get(TopicPartition("flights", partition))
    return None if found is None else found[0]


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_count_once_the_transaction_is_committed(commit: bool) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            await producer.send_offsets_to_transaction({TP: 5}, "g")
            await producer.send_offsets_to_transaction(
                {TP: OffsetAndMetadata(7, "mine", 3), ("flights", 1): 2}, "g"
            )
            assert committed_offset(brokers) is None
            if commit:
                await producer.commit_transaction()
                assert brokers.groups["g"].offsets[TP] == (7, 3, "mine")
            else:
                await producer.abort_transaction()
                assert committed_offset(brokers) is None
        (request, _) = brokers.requests(TxnOffsetCommitRequest)
        assert (request.generation_id, request.member_id) == (-1, "")
        assert [r.committed for r in brokers.requests(EndTxnRequest)] == [commit]

    story(scenario, PARTITIONS)


def test_no_offsets_ask_no_coordinator() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send_offsets_to_transaction({}, "g")
        assert not brokers.requests(AddOffsetsToTxnRequest) and not brokers.requests(EndTxnRequest)

    story(scenario, PARTITIONS)


def test_a_coordinator_that_does_not_know_the_member_is_not_asked_again() -> None:
    """It was cut off from the cluster before the member joined, and answers its clients still."""

    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send_offsets_to_transaction({TP: 3}, "g")
            first, brokers.coordinator = brokers.coordinator, 3
            brokers.strangers[first] = E.UNKNOWN_MEMBER_ID
            with pytest.raises(CommitFailedError):
                async with producer.transaction():
                    await producer.send_offsets_to_transaction({TP: 5}, "g")
            async with producer.transaction():
                await producer.send_offsets_to_transaction({TP: 5}, "g")
        assert committed_offset(brokers) == 5

    story(scenario)


def test_a_member_that_lost_its_partitions_cannot_commit() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with consumer_of(brokers) as consumer, producer_of(brokers) as producer:
            with pytest.raises(CommitFailedError, match="poll first"):
                consumer.group_metadata()
            fill(brokers, 3)
            await consumer.poll()
            group = consumer.group_metadata()
            assert group == ConsumerGroupMetadata("g", 1, brokers.groups["g"].leader, "")
            await producer.init_transactions()
            brokers.groups["g"].generation += 1  # it has rebalanced without this member
            with pytest.raises(CommitFailedError, match="goes on without this consumer") as caught:
                async with producer.transaction():
                    await producer.send_offsets_to_transaction({TP: 3}, group)
            assert not caught.value.fatal and not caught.value.retriable
            assert committed_offset(brokers) is None
            async with producer.transaction():
                await producer.send("flights", b"next", partition=3)
        assert brokers.committed(3) == [b"next"]

    story(scenario, PARTITIONS)


@pytest.mark.parametrize(
    ("kind", "code", "error"),
    [
        (AddOffsetsToTxnRequest, E.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationFailedError),
        (AddOffsetsToTxnRequest, E.INVALID_GROUP_ID, InvalidGroupIdError),
        (AddOffsetsToTxnRequest, E.PRODUCER_FENCED, ProducerFencedError),
        (AddOffsetsToTxnRequest, E.INVALID_TXN_STATE, TransactionFailedError),
        (TxnOffsetCommitRequest, E.FENCED_INSTANCE_ID, FencedInstanceIdError),
        (TxnOffsetCommitRequest, E.OFFSET_METADATA_TOO_LARGE, OffsetMetadataTooLargeError),
        (TxnOffsetCommitRequest, E.UNKNOWN_MEMBER_ID, CommitFailedError),
        (TxnOffsetCommitRequest, E.INVALID_PRODUCER_EPOCH, ProducerFencedError),
        (TxnOffsetCommitRequest, E.UNSUPPORTED_FOR_MESSAGE_FORMAT, TransactionFailedError),
    ],
)
def test_what_a_refusal_of_offsets_leads_to(
    kind: type, code: ErrorCode, error: type[BarnabasError]
) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            brokers.refusals[kind] += [code]
            with pytest.raises(error):
                await producer.send_offsets_to_transaction({TP: 3}, "g")
            with pytest.raises(error):
                await producer.commit_transaction()
            if error.fatal:
                with pytest.raises(error):
                    await producer.abort_transaction()
            else:
                await producer.abort_transaction()
                async with producer.transaction():
                    await producer.send_offsets_to_transaction({TP: 4}, "g")
        assert committed_offset(brokers) == (None if error.fatal else 4)

    story(scenario, PARTITIONS)


@pytest.mark.parametrize("kind", [AddOffsetsToTxnRequest, TxnOffsetCommitRequest])
def test_refusals_of_offsets_that_pass_are_retried(kind: type) -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        brokers.refusals[kind] += [
            E.COORDINATOR_LOAD_IN_PROGRESS, E.NOT_COORDINATOR, E.REQUEST_TIMED_OUT,
            E.UNKNOWN_TOPIC_OR_PARTITION,
        ]  # fmt: skip
        brokers.silences[kind] = 1
        async with producer_of(brokers, request_timeout_ms=500) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send_offsets_to_transaction({TP: 3}, "g")
        assert committed_offset(brokers) == 3

    story(scenario, PARTITIONS)


def test_offsets_that_take_too_long_are_given_up_by_an_abort() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with producer_of(brokers, max_block_ms=1_000) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            held = brokers.hold(TxnOffsetCommitRequest, lambda _: True)
            with pytest.raises(RequestTimedOutError):
                await producer.send_offsets_to_transaction({TP: 3}, "g")
            with pytest.raises(ClientError, match="send_offsets_to_transaction is not known"):
                await producer.commit_transaction()
            with pytest.raises(ClientError, match="call that again first"):
                await producer.send_offsets_to_transaction({TP: 4}, "g")
            await producer.abort_transaction()
            held.release.set()
            async with producer.transaction():
                await producer.send_offsets_to_transaction({TP: 5}, "g")
        assert committed_offset(brokers) == 5

    story(scenario, PARTITIONS)


def test_offsets_that_take_too_long_are_explained() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        brokers.refusals[AddOffsetsToTxnRequest] += [E.COORDINATOR_LOAD_IN_PROGRESS]
        async with producer_of(brokers, max_block_ms=1_000) as producer:
            await producer.init_transactions()
            await producer.begin_transaction()
            brokers.refusals[TxnOffsetCommitRequest] += [E.UNKNOWN_TOPIC_OR_PARTITION] * 1_000
            with pytest.raises(RequestTimedOutError, match="failure: UNKNOWN_TOPIC_OR_PARTITION"):
                await producer.send_offsets_to_transaction({TP: 3}, "g")
            await producer.abort_transaction()
            await producer.begin_transaction()
            held = brokers.hold(AddOffsetsToTxnRequest, lambda _: True)
            with pytest.raises(RequestTimedOutError, match="last failure: none"):
                await producer.send_offsets_to_transaction({TP: 3}, "g")
            held.release.set()

    story(scenario, PARTITIONS)


def test_a_member_reads_offsets_that_no_transaction_may_still_change() -> None:
    async def scenario(brokers: TransactionBrokers) -> None:
        async with consumer_of(brokers) as consumer:
            fill(brokers, 1)
            await consumer.poll()
        assert all(request.require_stable for request in brokers.requests(OffsetFetchRequest))

    story(scenario, PARTITIONS)


# ---- the loop


def fill(brokers: TransactionBrokers, count: int) -> None:
    for partition in range(3):
        builder = BatchBuilder()
        for number in range(count):
            builder.append(number, None, b"%d-%d" % (partition, number), [])
        brokers.log(partition).append(builder.build())
    brokers.changed()


def every(count: int) -> list[bytes]:
    return sorted(b"%d-%d" % (partition, n) for partition in range(3) for n in range(count))


def copy(record: ConsumerRecord) -> list[ProducerRecord]:
    return [ProducerRecord("copies", record.value)] if record.partition < 3 else []


class Copying(TransactionBrokers):
    """Brokers with a second topic, `copies`, of one partition."""

    def __init__(self) -> None:
        super().__init__(partitions=3)
        self.logs[TopicPartition("copies", 0)] = ScriptedLog(self.brokers[0])

    def metadata(self, request: Any) -> Any:
        from barnabas_common.messages.metadata import PartitionMetadata, TopicMetadata

        response = super().metadata(request)
        topics = []
        for topic in response.topics:
            if topic.topic not in ("flights", "copies"):
                topics.append(topic)
                continue
            found = [
                PartitionMetadata(tp.partition, 0, log.leader, log.epoch, [1, 2, 3], [1, 2, 3])
                for tp, log in self.logs.items()
                if tp.topic == topic.topic
            ]
            topics.append(TopicMetadata(topic.topic, 0, "id-of-" + topic.topic, False, found))
        response.topics = topics
        return response

    def copies(self) -> list[bytes]:
        values = self.committed()
        inputs = sum(len(self.logs[TopicPartition("flights", p)].records()) for p in range(3))
        return sorted(value for value in values[inputs:] if value is not None)


def copying(scenario: Callable[[Copying], Awaitable[None]]) -> None:
    async def tell() -> None:
        async with Copying() as brokers:
            await scenario(brokers)

    run(tell(), seed=1, max_time=300.0)


def test_the_loop_copies_each_record_once_and_commits_where_it_is() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 20)
        async with (
            consumer_of(brokers, max_poll_records=7) as consumer,
            producer_of(brokers) as producer,
        ):
            assert await exactly_once(consumer, producer, copy, idle_ms=5_000) == 60
        assert brokers.copies() == every(20)
        assert [committed_offset(brokers, p) for p in range(3)] == [20, 20, 20]

    copying(scenario)


def test_a_transaction_that_fails_is_repeated_with_the_same_records() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 20)
        brokers.faults += [refuse(E.TRANSACTION_ABORTABLE), refuse(E.OUT_OF_ORDER_SEQUENCE_NUMBER)]
        brokers.refusals[TxnOffsetCommitRequest] += [0, 0, E.ILLEGAL_GENERATION]

        async def slowly(record: ConsumerRecord) -> list[ProducerRecord]:
            await asyncio.sleep(0.001)
            return copy(record)

        async with (
            consumer_of(brokers, max_poll_records=7) as consumer,
            producer_of(brokers) as producer,
        ):
            assert await exactly_once(consumer, producer, slowly, idle_ms=5_000) == 60
        assert brokers.copies() == every(20)
        assert sum(not r.committed for r in brokers.requests(EndTxnRequest)) == 3

    copying(scenario)


def test_an_exception_of_the_transformation_ends_the_loop_where_it_happened() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 4)
        broken = True

        def fragile(record: ConsumerRecord) -> list[ProducerRecord]:
            if broken and record.value == b"1-2":
                raise ZeroDivisionError
            return copy(record)

        async with consumer_of(brokers) as consumer, producer_of(brokers) as producer:
            with pytest.raises(ZeroDivisionError):
                await exactly_once(consumer, producer, fragile, idle_ms=5_000)
            broken = False
            await exactly_once(consumer, producer, fragile, idle_ms=5_000)
        assert brokers.copies() == every(4)

    copying(scenario)


def test_an_output_that_cannot_be_sent_ends_the_loop() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 1)
        async with consumer_of(brokers) as consumer, producer_of(brokers) as producer:
            with pytest.raises(UnknownTopicOrPartitionError):
                await exactly_once(consumer, producer, lambda r: [ProducerRecord("nowhere", b"")])
        assert brokers.copies() == [] and committed_offset(brokers) is None

    copying(scenario)


def test_the_loop_of_a_fenced_producer_ends_and_its_heir_goes_on() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 20)
        async with (
            consumer_of(brokers, max_poll_records=7) as consumer,
            producer_of(brokers) as zombie,
            producer_of(brokers, "heir") as heir,
        ):
            calls = 0

            async def overtaken(record: ConsumerRecord) -> list[ProducerRecord]:
                nonlocal calls
                calls += 1
                if calls == 10:
                    await heir.init_transactions()
                return copy(record)

            with pytest.raises(ProducerFencedError):
                await exactly_once(consumer, zombie, overtaken)
            await exactly_once(consumer, heir, copy, idle_ms=5_000)
        assert brokers.copies() == every(20)

    copying(scenario)


def test_a_loop_that_is_cancelled_while_it_commits_reads_nothing_twice() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 3)
        async with consumer_of(brokers) as consumer, producer_of(brokers) as producer:
            held = brokers.hold(EndTxnRequest, lambda _: True)
            loop = asyncio.create_task(exactly_once(consumer, producer, copy))
            await held.reached.wait()
            loop.cancel()
            await asyncio.sleep(0.1)
            held.release.set()
            with pytest.raises(asyncio.CancelledError):
                await loop
            with contextlib.suppress(ClientError):  # what a begin advises if it does not know
                await producer.commit_transaction()
            await exactly_once(consumer, producer, copy, idle_ms=5_000)
        assert brokers.copies() == every(3)

    copying(scenario)


def test_a_loop_that_is_cancelled_while_its_commit_is_refused_reads_again() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 3)
        async with consumer_of(brokers) as consumer, producer_of(brokers) as producer:
            held = brokers.hold(EndTxnRequest, lambda _: True)
            loop = asyncio.create_task(exactly_once(consumer, producer, copy))
            await held.reached.wait()
            loop.cancel()
            await asyncio.sleep(0.1)
            brokers.refusals[EndTxnRequest] += [E.TRANSACTION_ABORTABLE]
            held.release.set()
            with pytest.raises(asyncio.CancelledError):
                await loop
            await exactly_once(consumer, producer, copy, idle_ms=5_000)
        assert brokers.copies() == every(3)

    copying(scenario)


def test_a_loop_that_is_cancelled_before_it_has_an_id_can_be_started_again() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 3)
        async with consumer_of(brokers) as consumer, producer_of(brokers) as producer:
            held = brokers.hold(InitProducerIdRequest, lambda _: True)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await exactly_once(consumer, producer, copy)
            held.release.set()
            await exactly_once(consumer, producer, copy, idle_ms=5_000)
        assert brokers.copies() == every(3)

    copying(scenario)


def test_two_loops_in_a_group_and_one_that_leaves() -> None:
    async def scenario(brokers: Copying) -> None:
        fill(brokers, 30)

        async def slowly(record: ConsumerRecord) -> list[ProducerRecord]:
            await asyncio.sleep(0.05)
            return copy(record)

        async def copier(name: str, seconds: float | None) -> None:
            async with (
                consumer_of(brokers, name, max_poll_records=5) as consumer,
                producer_of(brokers, name, transactional_id=name) as producer,
            ):
                loop = exactly_once(consumer, producer, slowly, idle_ms=20_000)
                try:
                    async with asyncio.timeout(seconds):
                        await loop
                except TimeoutError:
                    pass

        await asyncio.gather(copier("one", None), copier("two", 1.0))
        assert brokers.copies() == every(30)

    copying(scenario)


def test_the_loop_refuses_a_consumer_that_commits_by_itself_or_has_no_group() -> None:
    async def scenario(brokers: Copying) -> None:
        async with producer_of(brokers) as producer:
            async with consumer_of(brokers, enable_auto_commit=True) as consumer:
                with pytest.raises(InvalidArgumentError, match="enable_auto_commit=False"):
                    await exactly_once(consumer, producer, copy)
            async with consumer_of(brokers, offsets_storage="zookeeper") as consumer:
                with pytest.raises(InvalidArgumentError, match='offsets_storage="kafka"'):
                    await exactly_once(consumer, producer, copy)
                with pytest.raises(ClientError, match="ZooKeeper"):
                    consumer.group_metadata()
            async with consumer_of(brokers, group_id=None) as consumer:
                with pytest.raises(InvalidGroupIdError):
                    await exactly_once(consumer, producer, copy)
        async with (
            consumer_of(brokers) as consumer,
            Producer(brokers.bootstrap, runtime=brokers.runtime_of("plain")) as plain,
        ):
            with pytest.raises(ClientError, match="transactional_id"):
                await exactly_once(consumer, plain, copy)
        assert not brokers.requests(AddOffsetsToTxnRequest)

    copying(scenario)
