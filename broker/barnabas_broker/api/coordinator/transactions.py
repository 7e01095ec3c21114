"""AddPartitionsToTxn, AddOffsetsToTxn, DescribeTransactions and ListTransactions."""

from collections.abc import Sequence

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionPartition,
    TransactionPartitionResult,
)
from barnabas_common.runtime import Peer
from barnabas_common.topic_name import GROUP_METADATA_TOPIC, INTERNAL_TOPICS
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.api.coordinator.internal_topics import create_internal_topic
from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_broker.coordinator.record_fields import fits
from barnabas_broker.coordinator.transaction.admission import Producer


async def handle_add_partitions_to_txn(
    parts: BrokerParts, request: AddPartitionsToTxnRequest, _peer: Peer
) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        [
            AddPartitionsToTxnResult(item.transactional_id, await _one(parts, item))
            for item in request.transactions
        ]
    )


async def _one(
    parts: BrokerParts, item: AddPartitionsToTxnTransaction
) -> list[TransactionPartitionResult]:
    """If one of the partitions cannot be added, none is."""
    producer = Producer(item.producer_id, item.producer_epoch)
    keys = [TopicPartition(asked.topic, asked.partition) for asked in item.partitions]
    refused = {key: error for key in keys if (error := _refusal(parts, item, key))}
    if refused:
        others = ErrorCode.OPERATION_NOT_ATTEMPTED
        return [
            _result(asked, refused.get(key, others))
            for asked, key in zip(item.partitions, keys, strict=True)
        ]
    name = item.transactional_id
    if item.verify_only:
        return [
            _result(asked, parts.transactions.verify(name, producer, key))
            for asked, key in zip(item.partitions, keys, strict=True)
        ]
    version = item.transaction_version
    error = await parts.transactions.add_partitions(name, producer, frozenset(keys), version)
    return _results(item.partitions, error)


def _refusal(
    parts: BrokerParts, item: AddPartitionsToTxnTransaction, key: TopicPartition
) -> ErrorCode:
    """Why the partition cannot be added. No client writes to an internal topic; leaders of
    `__consumer_offsets` verify what AddOffsetsToTxn has added."""
    if key.topic in INTERNAL_TOPICS and not item.verify_only:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if parts.metadata_cache.partition(*key) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _results(
    partitions: Sequence[TransactionPartition], error: ErrorCode
) -> list[TransactionPartitionResult]:
    return [_result(asked, error) for asked in partitions]


def _result(asked: TransactionPartition, error: ErrorCode) -> TransactionPartitionResult:
    return TransactionPartitionResult(asked.topic, asked.partition, error)


async def handle_add_offsets_to_txn(
    parts: BrokerParts, request: AddOffsetsToTxnRequest, _peer: Peer
) -> AddOffsetsToTxnResponse:
    if not request.group_id or not fits(request.group_id):
        return AddOffsetsToTxnResponse(ErrorCode.INVALID_GROUP_ID)
    topic = parts.groups.topic
    count = await topic.learned_partition_count()
    if not count:
        if not topic.exists:  # a producer may know the group before any consumer asks for it
            await create_internal_topic(parts, topic.name)
        return AddOffsetsToTxnResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = partition_of_key(request.group_id, count)
    error = await parts.transactions.add_partitions(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        frozenset({TopicPartition(GROUP_METADATA_TOPIC, partition)}),
        request.transaction_version,
    )
    return AddOffsetsToTxnResponse(error)


async def handle_describe_transactions(
    parts: BrokerParts, request: DescribeTransactionsRequest, _peer: Peer
) -> DescribeTransactionsResponse:
    admin = parts.transactions.admin
    names = dict.fromkeys(request.transactional_ids)
    return DescribeTransactionsResponse([admin.describe(name) for name in names])


async def handle_list_transactions(
    parts: BrokerParts, request: ListTransactionsRequest, _peer: Peer
) -> ListTransactionsResponse:
    return parts.transactions.admin.list(request)
