"""Requests about transactions: to the coordinator of each, to all brokers, to leaders."""

from collections.abc import Iterable, Sequence

from barnabas_common.errors import (
    CoordinatorNotAvailableError,
    InvalidArgumentError,
    LeaderNotAvailableError,
    TransactionalIdNotFoundError,
    TransportError,
    UnknownTopicOrPartitionError,
    raise_for,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import TRANSACTION_KEY
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from barnabas_common.messages.transactions import (
    ActiveProducer,
    DescribedProducers,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    EndTxnRequest,
    EndTxnResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionPartition,
    WritableTxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas_common.prepared_transaction import PreparedTransaction
from barnabas_common.runtime import Service
from barnabas_common.topic_name import TRANSACTION_STATE_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas.admin.repeating import every_broker, repeated
from barnabas.admin.transactions.descriptions import (
    OpenTransaction,
    TransactionDescription,
    TransactionListing,
    described,
)
from barnabas.admin.transactions.hanging import candidates, hanging, still_open
from barnabas.cluster import Cluster
from barnabas.cluster.by_leader import ask_leaders
from barnabas.cluster.coordinator import Coordinator, NextAttempt
from barnabas.cluster.metadata import Leader

_CLIENT = "admin"
_ATTEMPTS = {
    ErrorCode.NOT_COORDINATOR: NextAttempt.FIND,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: NextAttempt.FIND,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: NextAttempt.SAME,
}
# While the open transaction of the fenced producer is aborted, or a decision is being written.
_ATTEMPTS_TO_END = {**_ATTEMPTS, ErrorCode.CONCURRENT_TRANSACTIONS: NextAttempt.SAME}
# A prepared transaction is one of a producer whose epoch rises with each (KIP-890).
_TRANSACTION_VERSION = 2
# What a fenced transactional id is given until its producer says what it wants: no broker's limit
# is lower.
_FENCE_TIMEOUT_MS = 1


# ---- what coordinators know


async def list_transactions(
    cluster: Cluster, request: ListTransactionsRequest, timeout: float
) -> list[TransactionListing]:
    """The transactional ids of all brokers; raises if one of them does not answer in time."""

    async def ask(broker_id: int, seconds: float) -> list[TransactionListing]:
        channel = cluster.channel(broker_id, Service.COORDINATOR)
        answer: ListTransactionsResponse = await channel.call(request, seconds)
        raise_for(answer.error_code, f"broker {broker_id}")
        if answer.unknown_state_filters:
            unknown = ", ".join(answer.unknown_state_filters)
            raise InvalidArgumentError(f"no transaction has such a state: {unknown}")
        return [
            TransactionListing(
                item.transactional_id, broker_id, item.producer_id, item.transaction_state
            )
            for item in answer.transaction_states
        ]

    answers = await every_broker(cluster, ask, timeout, "not every broker listed its transactions")
    found = {listing.transactional_id: listing for answer in answers for listing in answer}
    return [found[name] for name in sorted(found)]


async def describe_transaction(
    cluster: Cluster, transactional_id: str, timeout: float
) -> TransactionDescription:
    """One transactional id; raises `TransactionalIdNotFoundError`."""
    coordinator = Coordinator(cluster, transactional_id, TRANSACTION_KEY, _CLIENT)
    response: DescribeTransactionsResponse = await coordinator.ask_until(
        DescribeTransactionsRequest([transactional_id]),
        timeout,
        lambda answer: [found.error_code for found in answer.transaction_states],
        lambda code: _ATTEMPTS.get(ErrorCode(code), NextAttempt.NONE),
    )
    (found,) = response.transaction_states
    if found.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        raise TransactionalIdNotFoundError(f"there is no transactional id {transactional_id!r}")
    raise_for(found.error_code, f"transactional id {transactional_id!r}")
    return described(coordinator.broker_id, found)


async def fence_producer(
    cluster: Cluster, transactional_id: str, timeout: float
) -> tuple[int, int]:
    """Abort its open transaction and fence its producer; returns the producer id and epoch."""
    coordinator = Coordinator(cluster, transactional_id, TRANSACTION_KEY, _CLIENT)
    response: InitProducerIdResponse = await coordinator.ask_until(
        InitProducerIdRequest(transactional_id, _FENCE_TIMEOUT_MS),
        timeout,
        lambda answer: [answer.error_code],
        lambda code: _ATTEMPTS_TO_END.get(ErrorCode(code), NextAttempt.NONE),
    )
    raise_for(response.error_code, response.error_message or repr(transactional_id))
    return response.producer_id, response.producer_epoch


async def complete_transaction(
    cluster: Cluster, prepared: PreparedTransaction, commit: bool, timeout: float
) -> None:
    """Decide a prepared transaction; a decision that was taken before is confirmed."""
    coordinator = Coordinator(cluster, prepared.transactional_id, TRANSACTION_KEY, _CLIENT)
    response: EndTxnResponse = await coordinator.ask_until(
        EndTxnRequest(*prepared, commit, _TRANSACTION_VERSION),
        timeout,
        lambda answer: [answer.error_code],
        lambda code: _ATTEMPTS_TO_END.get(ErrorCode(code), NextAttempt.NONE),
    )
    raise_for(response.error_code, f"{prepared}")


# ---- what leaders know


async def describe_producers(
    cluster: Cluster, partitions: Iterable[TopicPartition], timeout: float
) -> dict[TopicPartition, list[ActiveProducer]]:
    """The producers that each partition's leader remembers."""

    def build(asked: Sequence[tuple[TopicPartition, Leader]]) -> DescribeProducersRequest:
        return DescribeProducersRequest([TransactionPartition(*tp) for tp, _ in asked])

    found: dict[TopicPartition, DescribedProducers] = await ask_leaders(
        cluster, partitions, build, timeout
    )
    return {tp: answer.active_producers for tp, answer in found.items()}


async def abort_transaction(
    cluster: Cluster, partition: TopicPartition, marker: WritableTxnMarker, timeout: float
) -> None:
    """Have the partition's leader write an abort marker; after a retriable error, ask again."""

    async def attempt() -> None:
        leader = cluster.metadata.leader(partition)
        if leader is None:
            raise LeaderNotAvailableError(f"{partition} has no leader now")
        channel = cluster.channel(leader.broker_id, Service.DATA)
        try:
            answer: WriteTxnMarkersResponse = await channel.call(
                WriteTxnMarkersRequest([marker]), cluster.request_timeout
            )
        except TransportError:
            cluster.note_failure(leader.broker_id)
            raise
        for result in answer.markers:
            for written in result.partitions:
                raise_for(written.error_code, f"abort marker for {partition}")

    info = await cluster.topic(partition.topic, timeout)
    if not 0 <= partition.partition < info.partition_count:
        raise UnknownTopicOrPartitionError(f"there is no partition {partition}")
    await repeated(cluster, attempt, timeout, f"{partition} got no abort marker")


async def find_hanging(
    cluster: Cluster,
    partitions: Iterable[TopicPartition],
    max_timeout_ms: int,
    timeout: float,
) -> list[OpenTransaction]:
    """The open transactions of these partitions that no coordinator will end."""
    producers = await describe_producers(cluster, partitions, timeout)
    opened = candidates(producers, max_timeout_ms, cluster.clock.wall_ms())
    if not opened:
        return []
    await _until_all_are_coordinated(cluster, timeout)
    ids = sorted({transaction.producer.producer_id for transaction in opened})
    request = ListTransactionsRequest(producer_id_filters=ids)
    listed = await list_transactions(cluster, request, timeout)
    known = {}
    for listing in listed:
        try:
            found = await describe_transaction(cluster, listing.transactional_id, timeout)
        except TransactionalIdNotFoundError:
            continue
        known[listing.transactional_id] = found
    found_hanging = hanging(opened, listed, known)
    looked_at = sorted({transaction.topic_partition for transaction in found_hanging})
    return still_open(found_hanging, await describe_producers(cluster, looked_at, timeout))


async def _until_all_are_coordinated(cluster: Cluster, timeout: float) -> None:
    """What a partition of `__transaction_state` without a leader holds would seem unknown."""

    async def attempt() -> None:
        if missing := await without_coordinator(cluster):
            raise CoordinatorNotAvailableError(f"{missing[0]} has no leader now")

    await repeated(cluster, attempt, timeout, "not every transaction has a coordinator")


async def without_coordinator(cluster: Cluster) -> list[TopicPartition]:
    """The partitions of `__transaction_state` that no registered broker leads."""
    metadata = await cluster.refresh(MetadataRequest([TRANSACTION_STATE_TOPIC]))
    live = {broker.broker_id for broker in metadata.brokers}
    return [
        TopicPartition(topic.topic, each.partition)
        for topic in metadata.topics
        for each in topic.partitions
        if each.leader_id not in live
    ]
