"""One attempt of one task: it claims a slot, writes in a transaction, and prepares it.

The order keeps every attempt that may have an open transaction in the driver's sight:

    the attempt                              the driver
    1. claim, durable                        1. decision, durable
    2. is the batch decided? then stop       2. read the claims
    3. InitProducerId                        3. abort every claim that is not in the decision,
    4. is the batch decided? then stop          and retire its slot
    5. write, prepare

An attempt that sees no decision in step 2 or 4 has claimed its slot before the driver reads the
claims. So a late attempt of a decided batch either writes nothing or is aborted, and a late
InitProducerId fences no attempt of a later batch: none uses that slot.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa
from barnabas import PreparedTransaction, Producer
from barnabas_common.errors import BarnabasError
from barnabas_common.runtime import Runtime
from pyspark.sql.datasource import WriterCommitMessage

from pyspark_barnabas.writing.columns import Row, rows_of
from pyspark_barnabas.writing.decision_log import Cache, DecisionLog
from pyspark_barnabas.writing.identity import Attempt, Batch
from pyspark_barnabas.writing.options import WriteOptions
from pyspark_barnabas.writing.producing import raise_given_up, send
from pyspark_barnabas.writing.records import JobState, Slot, claim_record, transactional_id


class AbandonedAttempt(RuntimeError):
    """The driver has aborted this run of the batch."""


@dataclass
class Prepared(WriterCommitMessage):
    """What a task tells the driver. `transaction` None: it has written nothing; `decided`: because
    it found that the batch is committed."""

    batch: Batch
    transaction: PreparedTransaction | None = None
    decided: bool = False


@dataclass
class Delivered(WriterCommitMessage):
    """What a task tells the driver with delivery at least once: there is nothing to decide."""

    rows: int


class TaskWriter:
    """`runtime` and `cache` replace those of the process (tests)."""

    def __init__(
        self,
        options: WriteOptions,
        attempt: Attempt,
        runtime: Runtime | None = None,
        cache: Cache | None = None,
    ) -> None:
        self._options = options
        self._attempt = attempt
        self._runtime = runtime
        self._cache = cache
        self._producer: Producer | None = None

    async def open(self) -> bool:
        """Begin a transaction; False if the batch is decided already, and nothing is to be done."""
        batch, options = self._attempt.batch, self._options
        async with DecisionLog(options, batch.job, self._runtime, self._cache) as log:
            state = await log.read()
            if self._is_decided(state):
                return False
            slot = await self._claim(log, state)
            if slot is None:
                return False
            name = transactional_id(options.prefix, batch.job, slot)
            self._producer = Producer(
                options.bootstrap_servers,
                runtime=self._runtime,
                transactional_id=name,
                enable_two_phase_commit=True,
                **options.producer,
            )
            await self._producer.init_transactions()
            if self._is_decided(await log.read()):
                return False
        await self._producer.begin_transaction()
        return True

    async def send_batch(self, batch: pa.RecordBatch) -> None:
        """Deliver the rows. Raises ColumnError for one that cannot be written: one in the topic of
        decisions would hide what is decided, for as long as the transaction is open."""
        await self.send(rows_of(batch, self._options.topic, self._options.decisions_topic))

    async def send(self, rows: Iterable[Row]) -> None:
        assert self._producer is not None
        await send(self._producer, rows)

    async def prepare(self) -> Prepared:
        """Deliver everything, and leave the outcome to the driver."""
        assert self._producer is not None
        transaction = await self._producer.prepare_transaction()
        raise_given_up(self._producer)
        return Prepared(self._attempt.batch, transaction)

    async def close(self) -> None:
        """A transaction that is not prepared is aborted."""
        if self._producer is not None:
            with suppress(BarnabasError):  # the driver aborts what is left
                await self._producer.close(timeout_ms=5_000)

    def _is_decided(self, state: JobState) -> bool:
        batch = self._attempt.batch
        if state.is_given_up(batch):
            raise AbandonedAttempt(f"{batch}: the driver has aborted it")
        return state.is_done(batch)

    async def _claim(self, log: DecisionLog, state: JobState) -> Slot | None:
        """A slot that no other attempt uses; None if the batch is decided by now."""
        options, attempt = self._options, self._attempt
        async with Producer(options.bootstrap_servers, runtime=self._runtime) as producer:
            while True:
                slot = state.free_slot(attempt)
                key, value = claim_record(attempt, slot, options.prefix)
                written = await producer.send_and_wait(
                    log.partition.topic, value, key, log.partition.partition
                )
                state = await log.read(beyond=written.offset)
                if self._is_decided(state):
                    return None
                if state.owns(attempt, slot):
                    return slot
