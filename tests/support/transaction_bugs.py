"""Bugs of transactions, put back in the same way as `seeded_bugs`."""

import asyncio
from typing import Any

from barnabas_broker.coordinator.group.committed.committed import Committed
from barnabas_broker.coordinator.group.committed.transactional import PendingCommit
from barnabas_broker.coordinator.transaction import coordinator
from barnabas_broker.coordinator.transaction.admission import Producer, add_to_transaction
from barnabas_broker.coordinator.transaction.ending import end_transaction
from barnabas_broker.coordinator.transaction.metadata import Transaction
from barnabas_broker.coordinator.transaction.transaction_log import TransactionLog
from barnabas_broker.log.index.index_file import IndexFile
from barnabas_broker.log.index.transaction_index import TransactionIndex
from barnabas_broker.log.producers.verification import NOT_NEEDED
from barnabas_broker.log.readable_log import ReadableLog
from barnabas_broker.replica.serve.verification import TransactionVerification, Verified
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.topic_partition import TopicPartition

from tests.support.seeded_bugs import Patch, SeededBug


def _stable_beyond_the_high_watermark() -> list[Patch]:
    """M9: without an open transaction readers of committed records get all that is in the log."""

    def last_stable_offset(log: Any) -> int:
        unstable = log.producers.transactions.first_unstable_offset
        return int(log.log_end_offset if unstable is None else max(unstable, log.log_start_offset))

    return [(ReadableLog, "last_stable_offset", property(last_stable_offset))]


def _keep_the_index_of_what_was_truncated() -> list[Patch]:
    """M10: the index of aborted transactions is not truncated with its log."""
    truncate_to = IndexFile.truncate_to

    def truncate(index: IndexFile, offset: int) -> None:
        if not isinstance(index, TransactionIndex):
            truncate_to(index, offset)

    return [(IndexFile, "truncate_to", truncate)]


def _answer_before_the_state_is_committed() -> list[Patch]:
    """M14: the coordinator answers, and sends markers, while the record is on its way."""
    append = TransactionLog._append

    async def start(log: TransactionLog, transaction: Transaction, record: Any) -> ErrorCode:
        asyncio.ensure_future(append(log, transaction, record))  # noqa: RUF006
        return ErrorCode.NONE

    return [(TransactionLog, "_append", start)]


def _verify_nothing() -> list[Patch]:
    """T1: a leader asks no coordinator before a transaction's first batch (KIP-890)."""
    verify = TransactionVerification.verify

    async def unverified(verification: TransactionVerification, request: Any) -> Verified:
        found = await verify(verification, request)
        return Verified(dict.fromkeys(found.guards, NOT_NEEDED), {})

    return [(TransactionVerification, "verify", unverified)]


def _count_offsets_without_a_marker() -> list[Patch]:
    """T2: offsets of a transaction count as soon as they are written."""

    def put(
        committed: Committed, _producer_id: int, key: TopicPartition, pending: PendingCommit
    ) -> None:
        committed.put(key, pending.value, pending.at)

    return [(Committed, "put_in_transaction", put)]


def _ask_for_no_epoch() -> list[Patch]:
    """T3: a coordinator serves a producer under any epoch of its id."""
    end, add = end_transaction, add_to_transaction

    def current(transaction: Transaction | None, producer: Producer) -> Producer:
        known = producer if transaction is None else transaction.metadata
        return Producer(producer.producer_id, getattr(known, "producer_epoch", producer.epoch))

    def end_any(transaction: Transaction | None, producer: Producer, *others: Any) -> Any:
        return end(transaction, current(transaction, producer), *others)

    def add_any(transaction: Transaction | None, producer: Producer, *others: Any) -> Any:
        return add(transaction, current(transaction, producer), *others)

    return [(coordinator, "end_transaction", end_any), (coordinator, "add_to_transaction", add_any)]


TRANSACTION_BUGS = {
    bug.name: bug
    for bug in (
        SeededBug("M9", "the last stable offset", _stable_beyond_the_high_watermark),
        SeededBug("M10", "truncation of indexes", _keep_the_index_of_what_was_truncated),
        SeededBug("M14", "decisions are written first", _answer_before_the_state_is_committed),
        SeededBug("T1", "KIP-890", _verify_nothing),
        SeededBug("T2", "offsets wait for the marker", _count_offsets_without_a_marker),
        SeededBug("T3", "the epoch of each producer", _ask_for_no_epoch),
    )
}
