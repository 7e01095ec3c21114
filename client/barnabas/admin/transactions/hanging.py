"""Which open transactions hang: no coordinator will ever end them (KIP-664, pure).

A leader learns from batches that a transaction is open, and from a marker that it has ended. The
coordinator writes markers for the transactions that it knows. One that it does not know stays open
in the log, and no read_committed reader gets past it.
"""

from collections.abc import Iterable, Mapping, Sequence

from barnabas_common.messages.transactions import ActiveProducer
from barnabas_common.topic_partition import TopicPartition

from barnabas.admin.transactions.descriptions import (
    OpenTransaction,
    TransactionDescription,
    TransactionListing,
)

DEFAULT_MAX_TIMEOUT_MS = 15 * 60 * 1000
"""Kafka's default of `transaction.max.timeout.ms`."""


def candidates(
    producers: Mapping[TopicPartition, Sequence[ActiveProducer]],
    max_timeout_ms: int,
    now_ms: int,
) -> list[OpenTransaction]:
    """The open transactions whose last batch is older than any transaction may be."""
    return [
        OpenTransaction(partition, producer)
        for partition, found in sorted(producers.items())
        for producer in found
        if producer.current_txn_start_offset >= 0
        and now_ms - producer.last_timestamp > max_timeout_ms
    ]


def hanging(
    opened: Iterable[OpenTransaction],
    listed: Iterable[TransactionListing],
    described: Mapping[str, TransactionDescription],
) -> list[OpenTransaction]:
    """Those of `opened` that no coordinator will end.

    `listed` has the transactional id of each known producer id; `described` what the coordinator
    knows of it, unless it has expired meanwhile.
    """
    names = {listing.producer_id: listing.transactional_id for listing in listed}
    found = []
    for transaction in opened:
        name = names.get(transaction.producer.producer_id)
        known = described.get(name) if name is not None else None
        if known is None or not known.will_end(transaction.topic_partition):
            found.append(transaction)
    return found


def still_open(
    found: Iterable[OpenTransaction],
    producers: Mapping[TopicPartition, Sequence[ActiveProducer]],
) -> list[OpenTransaction]:
    """Those of `found` that are open in a later look at the leaders too. One that ended before its
    coordinator was asked seemed to be unknown there."""
    opened = {
        (partition, one.producer_id, one.current_txn_start_offset)
        for partition, some in producers.items()
        for one in some
    }
    return [
        transaction
        for transaction in found
        if (
            transaction.topic_partition,
            transaction.producer.producer_id,
            transaction.producer.current_txn_start_offset,
        )
        in opened
    ]
