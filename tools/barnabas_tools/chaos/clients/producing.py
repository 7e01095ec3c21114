"""A producer that records every send: before it is made, and what came of it."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from barnabas import Producer
from barnabas.producer.config import ProducerOptions
from barnabas_common.errors import BarnabasError
from barnabas_common.history.recorder import Recorder
from barnabas_common.topic_partition import TopicPartition

from barnabas_tools.chaos.clients.recorded_send import send

RETRY_SECONDS = 0.5


class Producing:
    """Sends unique values to the partitions in turn, `rate` a second in all, until stopped.

    Idempotence and `acks` are options of the producer.
    """

    def __init__(
        self,
        recorder: Recorder,
        bootstrap: str,
        partitions: Sequence[TopicPartition],
        options: ProducerOptions,
        rate: float = 500.0,
    ) -> None:
        self.sent: dict[TopicPartition, int] = dict.fromkeys(partitions, 0)
        self.acknowledged: dict[TopicPartition, int] = dict.fromkeys(partitions, 0)
        self._recorder = recorder
        self._bootstrap = bootstrap
        self._partitions = partitions
        self._options = options
        self._pause = len(partitions) / rate
        self._number = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Send until `stop` is set, and wait for the outcome of everything sent."""
        while not stop.is_set():
            try:
                async with Producer(self._bootstrap, **self._options) as producer:
                    await self._send_until(stop, producer)
            except BarnabasError:
                await at_most(stop, RETRY_SECONDS)

    async def _send_until(self, stop: asyncio.Event, producer: Producer) -> None:
        while not stop.is_set():
            for partition in self._partitions:
                await self._send(producer, partition)
            await at_most(stop, self._pause)

    async def _send(self, producer: Producer, partition: TopicPartition) -> None:
        self._number += 1
        self.sent[partition] += 1
        recorder = self._recorder
        value = f"{partition}-{recorder.client}-{recorder.incarnation}-{self._number}"

        def acknowledged() -> None:
            self.acknowledged[partition] += 1

        with suppress(BarnabasError):  # it is recorded
            await send(recorder, producer, partition, value, acknowledged=acknowledged)


async def at_most(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        pass
