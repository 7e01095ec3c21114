"""The life of a transactional producer, and of a copier: consume, transform, produce."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

from barnabas import ConsumerRecord, ProducerRecord, exactly_once
from barnabas_common.errors import BarnabasError, ClosedError, CorruptMessageError

from barnabas_simulator.campaign.clients.factory import RETRY_SECONDS
from barnabas_simulator.campaign.clients.recording import RecordingListener
from barnabas_simulator.campaign.clients.transactions.recording import (
    RecordingConsumer,
    RecordingProducer,
)
from barnabas_simulator.campaign.clients.transactions.run import (
    MOST_RECORDS,
    TransactionRun,
    until_decided,
)
from barnabas_simulator.campaign.options import COPIERS, COPIES, ORDERS
from barnabas_simulator.labels import copy_of

IDLE_MS = 500
LONG_PAUSES = 0.03
COPYING = 0.2  # a copier is faster than what it reads, so that it catches up


class Aborted(Exception):
    """The application changes its mind."""


class TransactionalClient:
    """One incarnation. `superseded` is set when a later one has been started beside it: from then
    on it is a zombie, and it ends with the error that fences it."""

    def __init__(self, run: TransactionRun, incarnation: str) -> None:
        self.superseded = False
        self.journal = run.journal(incarnation)
        self._run = run
        self._incarnation = incarnation
        self._chance = random.Random(f"{incarnation} {run.options.seed}")

    async def live(self) -> None:
        """Work, with another producer after each error that is fatal."""
        while True:
            try:
                async with self._run.producer(self._incarnation, self.journal) as producer:
                    await until_decided(producer.init_transactions)
                    await self._work(producer)
                return
            except CorruptMessageError:
                raise  # no fault of a run damages written records: this is a violation
            except BarnabasError as error:
                self._run.told(self._incarnation, error)
            if self.superseded:
                return
            await asyncio.sleep(RETRY_SECONDS)

    async def _work(self, producer: RecordingProducer) -> None:
        """Return when there is nothing more to do."""
        raise NotImplementedError

    async def _pause(self, factor: float = 1.0) -> None:
        """Between two records; now and then longer than a transaction may take."""
        longest = 2 * factor * self._run.options.transaction_pause
        if self._chance.random() < LONG_PAUSES and not self._run.stop.is_set():
            longest = 1.5 * self._run.options.transaction_timeout_ms / 1000
        await asyncio.sleep(longest * self._chance.random())

    def _change_of_mind(self, chance: float) -> None:
        """Raise `Aborted`, now and then, as long as faults last."""
        if self._chance.random() < chance and not self._run.stop.is_set():
            raise Aborted


class OrderProducer(TransactionalClient):
    """Writes transactions of a few records each to the topic of orders."""

    _number = 0

    async def _work(self, producer: RecordingProducer) -> None:
        """Until the faults are over, and one more transaction has been committed since."""
        is_over = False
        while not is_over:
            is_last = self._run.stop.is_set()
            with suppress(Aborted):
                try:
                    await self._transaction(producer)
                    is_over = is_last
                except BarnabasError as error:
                    if error.fatal or isinstance(error, ClosedError):
                        raise
                    self._run.told(self._incarnation, error)
            while producer.in_transaction:
                await until_decided(producer.abort_transaction)
            await self._pause()

    async def _transaction(self, producer: RecordingProducer) -> None:
        name = self._incarnation.replace("/", ".")
        async with producer.transaction():
            for _ in range(self._chance.randint(1, MOST_RECORDS)):
                value = b"%s/%d" % (name.encode(), self._number)
                self._number += 1
                await producer.send(*self._chance.choice(self._places(value)))
                await self._pause()
            self._change_of_mind(self._run.options.abort_chance)
            await until_decided(producer.commit_transaction)

    def _places(self, value: bytes) -> Sequence[ProducerRecord]:
        partitions = range(self._run.options.order_partitions)
        return [ProducerRecord(ORDERS, value, partition=number) for number in partitions]


class Copier(TransactionalClient):
    """Copies each order into the partition of the same number; a member of the group of copiers."""

    async def _work(self, producer: RecordingProducer) -> None:
        run = self._run

        async def copy(record: ConsumerRecord) -> Sequence[ProducerRecord]:
            assert record.value is not None
            await self._pause(COPYING)
            self._change_of_mind(run.options.abort_chance / (2 * MOST_RECORDS))
            value = copy_of(producer.current, record.value)
            return [ProducerRecord(COPIES, value, partition=record.partition)]

        async def before_commit() -> None:
            await self._pause(COPYING)
            self._change_of_mind(run.options.abort_chance / 2)

        self.journal.before_commit = before_commit
        async with RecordingConsumer(
            self.journal, run.cluster.bootstrap, **run.member_options(self._incarnation)
        ) as consumer:
            consumer.subscribe([ORDERS], RecordingListener(self.journal.history, COPIERS))
            while not (self.superseded and self._chance.random() < 0.5):
                with suppress(Aborted):
                    await exactly_once(consumer, producer, copy, IDLE_MS)
