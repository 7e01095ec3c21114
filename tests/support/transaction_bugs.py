"""Bugs of transactions, put back in the same way as `seeded_bugs`."""

import asyncio
from typing import Any

from barnabas_broker.coordinator.transaction import admission, coordinator, metadata
from barnabas_broker.coordinator.transaction.marker_channel import MarkerChannel
from barnabas_broker.coordinator.transaction.markers import PendingMarkers
from barnabas_broker.coordinator.transaction.metadata import Transaction, TransactionMetadata
from barnabas_broker.coordinator.transaction.transaction_log import TransactionLog
from barnabas_broker.log.index.index_file import IndexFile
from barnabas_broker.log.index.transaction_index import TransactionIndex
from barnabas_broker.log.producers.verification import NOT_NEEDED, Verifications
from barnabas_broker.log.readable_log import ReadableLog
from barnabas_common.errors.error_code import ErrorCode

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
        task = asyncio.ensure_future(append(log, transaction, record))
        await asyncio.sleep(0)
        del task
        return ErrorCode.NONE

    return [(TransactionLog, "_append", start)]


def _verify_nothing() -> list[Patch]:
    """T1: a leader asks no coordinator before a transaction's first batch (KIP-890)."""

    def holds(_self: Any, _producer_id: int, _guard: Any) -> bool:
        return True

    return [(Verifications, "holds", holds)]


def _keep_the_epoch_of_a_fenced_producer() -> list[Patch]:
    """T2: a producer that takes over a transactional id gets the epoch that is there."""
    increment = metadata.increment_epoch

    def same(known: TransactionMetadata, *arguments: Any) -> TransactionMetadata:
        found = increment(known, *arguments)
        if known.producer_epoch < 0:
            return found
        from dataclasses import replace

        return replace(found, producer_epoch=known.producer_epoch)

    return [(admission, "increment_epoch", same)]


def _complete_without_markers() -> list[Patch]:
    """T3: a coordinator that takes over counts decided transactions as complete."""

    def add(channel: MarkerChannel, pending: PendingMarkers) -> None:
        pending.missing.clear()
        channel._pending[pending.decided.transactional_id] = pending
        channel._send_what_can_be_sent()

    return [(MarkerChannel, "add", add)]


TRANSACTION_BUGS = {
    bug.name: bug
    for bug in (
        SeededBug("M9", "the last stable offset", _stable_beyond_the_high_watermark),
        SeededBug("M10", "truncation of indexes", _keep_the_index_of_what_was_truncated),
        SeededBug("M14", "decisions are written first", _answer_before_the_state_is_committed),
    )
}
