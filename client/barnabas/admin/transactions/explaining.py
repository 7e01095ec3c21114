"""Asking leaders and coordinators about transactions, to explain them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from barnabas_common.errors import BarnabasError, raise_for
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import in_order
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.messages.transactions import (
    ActiveProducer,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    TransactionPartition,
)
from barnabas_common.runtime import Service
from barnabas_common.topic_name import TRANSACTION_STATE_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas.admin.events import recorded_events
from barnabas.admin.transactions.descriptions import TransactionDescription, described
from barnabas.admin.transactions.requests import describe_transaction, without_coordinator
from barnabas.cluster import Cluster
from barnabas.explain.transactions import TransactionView
from barnabas.explain.view import OpenTransactionView, PartitionView

TIMEOUT = 3.0


async def with_open_transactions(cluster: Cluster, view: PartitionView) -> PartitionView:
    """The view with the transactions that hold the last stable offset back, if any do."""
    if not view.holds_readers_back:
        return view
    key = view.topic_partition
    try:
        before = await _open_at(cluster, view.leader_id, key)
        missing = await without_coordinator(cluster)
        found, silent = await _coordinated(cluster, view.live, list(before))
        # What has ended or begun meanwhile would seem to hang.
        after = await _open_at(cluster, view.leader_id, key)
    except BarnabasError as error:
        return replace(view, errors={**view.errors, view.leader_id: str(error)})
    opened = [
        one
        for producer_id, one in after.items()
        if producer_id in before
        and before[producer_id].current_txn_start_offset == one.current_txn_start_offset
    ]
    return replace(
        view,
        open_transactions=[_open(one, key, found.get(one.producer_id)) for one in opened],
        silent_coordinators=silent,
        without_coordinator=missing,
        now_ms=cluster.clock.wall_ms(),
    )


async def _open_at(
    cluster: Cluster, broker_id: int, partition: TopicPartition
) -> dict[int, ActiveProducer]:
    """The producers with an open transaction, by id."""
    request = DescribeProducersRequest([TransactionPartition(*partition)])
    answer = await _ask(cluster, broker_id, Service.DATA, request)
    (found,) = answer.partitions
    raise_for(found.error_code, found.error_message or str(partition))
    return {
        one.producer_id: one for one in found.active_producers if one.current_txn_start_offset >= 0
    }


def _open(
    producer: ActiveProducer, partition: TopicPartition, known: TransactionDescription | None
) -> OpenTransactionView:
    opened = OpenTransactionView(
        producer.producer_id,
        producer.producer_epoch,
        producer.current_txn_start_offset,
        producer.last_timestamp,
    )
    if known is None:
        return opened
    will_end = known.will_end(partition)
    return replace(
        opened,
        since_ms=known.start_ms if will_end else producer.last_timestamp,
        transactional_id=known.transactional_id,
        will_end=will_end,
        coordinator=known.coordinator,
        state=known.state,
        start_ms=known.start_ms,
        timeout_ms=known.timeout_ms,
    )


async def _coordinated(
    cluster: Cluster, brokers: Sequence[int], producer_ids: list[int]
) -> tuple[dict[int, TransactionDescription], dict[int, str]]:
    """What the coordinators know, by producer id; and which brokers could not be asked."""
    found: dict[int, TransactionDescription] = {}
    silent: dict[int, str] = {}

    async def ask(broker_id: int) -> None:
        try:
            known = await _described_at(cluster, broker_id, producer_ids)
        except BarnabasError as error:
            silent[broker_id] = str(error)
            return
        found.update({item.producer_id: item for item in known})

    await asyncio.gather(*(ask(broker_id) for broker_id in brokers))
    return found, silent


async def _described_at(
    cluster: Cluster, broker_id: int, producer_ids: list[int]
) -> list[TransactionDescription]:
    service = Service.COORDINATOR
    request = ListTransactionsRequest(producer_id_filters=producer_ids)
    listed = await _ask(cluster, broker_id, service, request)
    raise_for(listed.error_code, f"broker {broker_id}")
    names = [item.transactional_id for item in listed.transaction_states]
    answer = await _ask(cluster, broker_id, service, DescribeTransactionsRequest(names))
    found = []
    for item in answer.transaction_states:
        if item.error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:  # it has expired meanwhile
            raise_for(item.error_code, repr(item.transactional_id))
            found.append(described(broker_id, item))
    return found


async def _ask(cluster: Cluster, broker_id: int, service: Service, request: Any) -> Any:
    return await cluster.channel(broker_id, service).call(request, TIMEOUT)


async def view_of_transaction(
    cluster: Cluster, transactional_id: str, timeout: float
) -> TransactionView:
    """What the coordinator knows, and the events of all brokers.

    Raises `TransactionalIdNotFoundError`.
    """
    found = await describe_transaction(cluster, transactional_id, timeout)
    topics = sorted({tp.topic for tp in found.partitions})
    metadata = await cluster.refresh(MetadataRequest(topics))
    answers = await asyncio.gather(
        *(
            recorded_events(cluster, broker.broker_id, [TRANSACTION_STATE_TOPIC])
            for broker in metadata.brokers
        )
    )
    events = in_order(event for answer in answers for event in answer.events)
    return TransactionView(
        transactional_id,
        found.coordinator,
        found.state,
        found.producer_id,
        found.producer_epoch,
        found.timeout_ms,
        found.start_ms,
        found.partitions,
        _leaders(cluster, found.partitions),
        cluster.clock.wall_ms(),
        events,
        {a.broker_id: str(a.error) for a in answers if a.error is not None},
    )


def _leaders(
    cluster: Cluster, partitions: Sequence[TopicPartition]
) -> Mapping[TopicPartition, int]:
    leaders = {tp: cluster.metadata.leader(tp) for tp in partitions}
    return {tp: -1 if leader is None else leader.broker_id for tp, leader in leaders.items()}
