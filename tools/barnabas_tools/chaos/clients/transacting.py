"""A producer that writes in transactions, commits most of them, and records every step."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random

from barnabas import Producer
from barnabas.producer.config import ProducerOptions
from barnabas_common.errors import BarnabasError, RequestTimedOutError
from barnabas_common.history.operations import End, Stage
from barnabas_common.history.recorder import Recorder
from barnabas_common.topic_partition import TopicPartition

from barnabas_tools.chaos.clients.producing import RETRY_SECONDS, at_most
from barnabas_tools.chaos.clients.recorded_send import send

RECORDS_OF_EACH_PARTITION = 10
ABORTED = 0.2


class Transacting:
    """Writes unique values to all partitions in transactions, `rate` records a second in all.

    The transactional id is the client's name, so that the next incarnation of a killed client
    aborts what it left open.
    """

    def __init__(
        self,
        recorder: Recorder,
        bootstrap: str,
        partitions: Sequence[TopicPartition],
        options: ProducerOptions,
        rate: float = 500.0,
    ) -> None:
        self._recorder = recorder
        self._bootstrap = bootstrap
        self._partitions = partitions
        self._options: ProducerOptions = {**options, "transactional_id": recorder.client}
        self._pause = RECORDS_OF_EACH_PARTITION * len(partitions) / rate
        self._process = f"{recorder.client}.{recorder.incarnation}"
        self._random = Random(self._process)
        self._transactions = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Write until `stop` is set and the open transaction has ended."""
        while not stop.is_set():
            try:
                async with Producer(self._bootstrap, **self._options) as producer:
                    await _until_decided(producer.init_transactions)
                    while not stop.is_set():
                        await self._transaction(producer)
                        await at_most(stop, self._pause)
            except BarnabasError:  # it is fenced, or cannot go on for another reason
                await at_most(stop, RETRY_SECONDS)

    async def _transaction(self, producer: Producer) -> None:
        """One transaction; raises what only another producer can go on after."""
        self._transactions += 1
        name = f"{self._process}:{self._transactions}"
        await producer.begin_transaction()
        await self._send_all(producer, name)
        commit = self._random.random() >= ABORTED
        end = self._recorder.begin(End, transaction=name, commit=commit)
        try:
            if not commit or not await _commits(producer):
                await _until_decided(producer.abort_transaction)
                # A commit that was refused has certainly not happened, once it is aborted.
                self._recorder.end(end, Stage.FAIL if commit else Stage.OK)
            else:
                self._recorder.end(end)
        except BarnabasError as error:
            self._recorder.end(end, Stage.INFO, error=type(error).__name__)
            raise

    async def _send_all(self, producer: Producer, name: str) -> None:
        """Send the records; after an error the rest is left out, and the transaction aborted."""
        try:
            for number in range(RECORDS_OF_EACH_PARTITION):
                for partition in self._partitions:
                    value = f"{partition}-{name}-{number}"
                    await send(self._recorder, producer, partition, value, name)
        except BarnabasError as error:
            if error.fatal:
                raise


async def _commits(producer: Producer) -> bool:
    """Whether the transaction is committed; False if it must be aborted. Raises fatal errors."""
    try:
        await _until_decided(producer.commit_transaction)
    except BarnabasError as error:
        if error.fatal:
            raise
        return False
    return True


async def _until_decided(call: Callable[[], Awaitable[None]]) -> None:
    """Call until the outcome is known."""
    while True:
        try:
            return await call()
        except RequestTimedOutError:
            continue
