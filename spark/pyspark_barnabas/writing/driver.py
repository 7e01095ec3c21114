"""The driver's part: the decision is durable first, then every transaction follows it.

The decision is a record in the topic of decisions, written in a transaction of the job's own
transactional id: an older driver of the same job, which may still run somewhere, is fenced by that.
A driver that finds a decision of the batch decides nothing. It completes what is left.
"""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from barnabas import Admin, PreparedTransaction, Producer
from barnabas_common.errors import InvalidProducerIdMappingError
from barnabas_common.runtime import Runtime

from pyspark_barnabas.writing.decision_log import Cache, DecisionLog
from pyspark_barnabas.writing.decisions_topic import DecisionsTopicError
from pyspark_barnabas.writing.identity import Batch
from pyspark_barnabas.writing.options import WriteOptions
from pyspark_barnabas.writing.records import (
    Decision,
    Encoded,
    JobState,
    decision_record,
    forgotten_claim,
    retired_claim,
    transactional_id,
)
from pyspark_barnabas.writing.stops import stop_at

logger = logging.getLogger(__name__)

# How long a decision of a driver that was killed may keep the next one from reading it.
_DECISION_TIMEOUT_MS = 10_000
_AT_ONCE = 16
# A decision has 100 bytes for each task, most of them the same: compressed, a topic takes 100,000.
_MOST_BYTES = 16 * 1024 * 1024


class SupersededDriver(RuntimeError):
    """Another driver of the same query has decided a later batch."""


class Driver:
    """Ends one batch. `runtime` and `cache` replace those of the process (tests)."""

    def __init__(
        self,
        options: WriteOptions,
        batch: Batch,
        runtime: Runtime | None = None,
        cache: Cache | None = None,
    ) -> None:
        self._options = options
        self._batch = batch
        self._admin = Admin(options.bootstrap_servers, runtime=runtime)
        self._log = DecisionLog(options, batch.job, runtime, cache)
        self._producer = Producer(
            options.bootstrap_servers,
            runtime=runtime,
            transactional_id=f"{options.prefix}-{batch.job}",
            transaction_timeout_ms=_DECISION_TIMEOUT_MS,
            compression_type="gzip",
            max_request_size=_MOST_BYTES,
        )

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opened:
            await opened.enter_async_context(self._log)
            await opened.enter_async_context(self._admin)
            await opened.enter_async_context(self._producer)
            await self._producer.init_transactions()
            self._opened = opened.pop_all()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._opened.__aexit__(error_type, error, traceback)

    async def commit(
        self, transactions: Iterable[PreparedTransaction], found_decided: bool = False
    ) -> None:
        """Make the batch visible, once, also if another driver has decided it.

        `found_decided`: a task has found the decision, and has written nothing.

        Raises SupersededDriver if a later batch is decided; nothing has changed then.
        """
        state = await self._log.read()
        self._check_current(state)
        decided = state.decision
        if decided is None or not state.is_done(self._batch):
            decided = await self._new_decision(state, tuple(transactions), found_decided)
            stop_at("before-decision")
            state = await self._decide(decided)
            stop_at("after-decision")
        await self._complete(decided.transactions)
        stop_at("before-clean-up")
        await self._clean_up(state, decided)

    async def abort(self) -> None:
        """Abort what this run has written of the batch, unless it is decided already."""
        state = await self._log.read()
        self._check_current(state)
        if state.is_done(self._batch):
            logger.warning("%s: the commit is decided; the next run completes it", self._batch)
            return
        decided = Decision(self._batch, False)
        await self._clean_up(await self._decide(decided), decided)

    def _check_current(self, state: JobState) -> None:
        last = state.decision
        if last is not None and last.batch.batch_id > self._batch.batch_id:
            raise SupersededDriver(f"{self._batch}: batch {last.batch.batch_id} is decided already")

    async def _new_decision(
        self, state: JobState, found: tuple[PreparedTransaction, ...], found_decided: bool
    ) -> Decision:
        """To commit these. Raises DecisionsTopicError if the topic has lost something: without the
        claims it is not known which other attempts are to be aborted, and without the decision the
        rows of a task that found it would be missing."""
        missing = [f"claim of {t.transactional_id}" for t in state.unclaimed(self._batch, found)]
        if found_decided:
            missing.append(f"commit of {self._batch}, which a task has found")
        if missing:
            await self._admin.fence_producers(t.transactional_id for t in found)
            raise DecisionsTopicError(
                f"{self._log.partition} has no {missing[0]}: the topic was deleted, or lost"
                " records, while the batch was written. The batch is aborted; the next run writes"
                " it again"
            )
        return Decision(self._batch, True, found)

    async def _decide(self, decision: Decision) -> JobState:
        """Make it durable; returns the claims of every attempt that may not know of it."""
        return await self._log.read(beyond=await self._write([decision_record(decision)]))

    async def _write(self, records: Iterable[Encoded]) -> int:
        """Write the records together; returns the offset of the last."""
        topic, partition = self._log.partition
        async with self._producer.transaction():
            for key, value in records:
                handle = await self._producer.send(topic, value, key, partition)
        return (await handle).offset

    async def _complete(self, transactions: tuple[PreparedTransaction, ...]) -> None:
        # The first by itself: a test stops here, with one committed and the others open.
        for prepared in transactions[:1]:
            await self._complete_one(prepared)
            stop_at("after-commit-1")
        for start in range(1, len(transactions), _AT_ONCE):
            some = transactions[start : start + _AT_ONCE]
            await asyncio.gather(*(self._complete_one(prepared) for prepared in some))

    async def _complete_one(self, prepared: PreparedTransaction) -> None:
        try:
            await self._admin.complete_transaction(prepared, commit=True)
        except InvalidProducerIdMappingError:
            # An open transaction is never forgotten, so this one was completed long ago.
            logger.info("%s was completed before", prepared)

    async def _clean_up(self, state: JobState, decided: Decision) -> None:
        """Abort every attempt that is not in the decision, and forget what needs no memory."""
        kept = {prepared.transactional_id for prepared in decided.transactions}
        job, run = self._batch.job, self._batch.run
        ended = {
            slot: transactional_id(state.claims[slot].prefix, job, slot)
            for slot in state.open_until(self._batch, decided.commit)
        }
        aborted = [slot for slot, name in ended.items() if name not in kept]
        await self._admin.fence_producers(ended[slot] for slot in aborted)
        # The decision stays: an attempt that comes late must find it. The run that made it may
        # still claim slots.
        records = [
            retired_claim(job, slot, state.claims[slot]) for slot in aborted if slot.run == run
        ]
        records += [
            forgotten_claim(job, slot) for slot in ended if slot.run not in (run, decided.batch.run)
        ]
        if records:
            await self._write(records)


async def commit(
    options: WriteOptions,
    batch: Batch,
    transactions: Iterable[PreparedTransaction],
    found_decided: bool,
) -> None:
    async with Driver(options, batch) as driver:
        await driver.commit(transactions, found_decided)


async def abort(options: WriteOptions, batch: Batch) -> None:
    async with Driver(options, batch) as driver:
        await driver.abort()
