"""Offsets in a transaction: what they count for, and what their refusals lead to."""

import pytest
from barnabas import (
    CommitFailedError,
    ConsumerGroupMetadata,
    OffsetAndMetadata,
)
from barnabas_common.errors import (
    BarnabasError,
    ClientError,
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    InvalidGroupIdError,
    OffsetMetadataTooLargeError,
    ProducerFencedError,
    RequestTimedOutError,
    TransactionFailedError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import OffsetFetchRequest
from barnabas_common.messages.transactions import (
    AddOffsetsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)
from barnabas_common.topic_partition import TopicPartition

from tests.support.copying import committed_offset, consumer_of, fill
from tests.support.scripted_transactions import TransactionBrokers
from tests.support.transactional_producer import producer_of, story

E = ErrorCode
TP = TopicPartition("flights", 0)
PARTITIONS = 4
"""Of the topic: the input is in 0 to 2, the output goes to 3."""


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
