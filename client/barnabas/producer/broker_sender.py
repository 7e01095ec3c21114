"""The loop that sends to one broker: all its ready partitions in one request, as many as fit.

What accumulates while requests are in flight leaves together in the next one, so that messages
grow by themselves when the broker is the slower side.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple

from barnabas.errors import BarnabasError, TransportError, UnknownServerError
from barnabas.messages.produce import (
    ProducedPartition,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from barnabas.producer.accumulator import PartitionQueue
from barnabas.producer.batch import ProducerBatch
from barnabas.runtime import Service

if TYPE_CHECKING:
    from barnabas.producer.sender import Sender

logger = logging.getLogger(__name__)


class _Load(NamedTuple):
    """One partition's share of a request."""

    queue: PartitionQueue
    batches: list[ProducerBatch]


class BrokerSender:
    """At most `max_in_flight` requests to one broker, each with its own partitions."""

    def __init__(self, broker_id: int, sender: "Sender") -> None:
        self.broker_id = broker_id
        self._sender = sender
        self._config = sender.config
        self._ready: dict[PartitionQueue, None] = {}
        self._wakeup = asyncio.Event()
        self._in_flight = 0
        self._requests = 0

    def offer(self, queue: PartitionQueue) -> None:
        """The partition is led here and has something to send."""
        self._ready[queue] = None
        self._wakeup.set()

    async def run(self) -> None:
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            while self._in_flight < self._config.max_in_flight:
                loads = self._load_up()
                if not loads:
                    break
                self._in_flight += 1
                self._requests += 1
                name = f"produce-{self.broker_id}-{self._requests}"
                self._sender.tasks.spawn(self._deliver(loads), name)

    def _load_up(self) -> list[_Load]:
        """Batches of as many ready partitions as fit into one request, the longest ready first."""
        loads: list[_Load] = []
        room = self._config.max_request_size
        for queue in list(self._ready):
            if queue.in_flight or not self._sender.leads(self.broker_id, queue):
                del self._ready[queue]
                self._sender.route(queue)
                continue
            batches = self._sender.accumulator.take(queue, room, first=not loads)
            if batches:
                del self._ready[queue]
                queue.in_flight = True
                loads.append(_Load(queue, batches))
                room -= sum(len(batch.build()) for batch in batches)
            elif not queue.closed:
                del self._ready[queue]  # nothing left that is due
            if room <= 0:
                break
        return loads

    async def _deliver(self, loads: list[_Load]) -> None:
        self._count(loads)
        try:
            answers = await self._exchange(loads)
        except TransportError as error:
            logger.info("broker %d did not answer a produce request: %s", self.broker_id, error)
            self._sender.cluster.suspect(self.broker_id)
            self._fail(loads, error)
        except BarnabasError as error:
            self._fail(loads, error)
        except Exception as error:
            logger.exception("a produce request to broker %d failed", self.broker_id)
            self._fail(loads, UnknownServerError(repr(error)))
        else:
            for load in loads:
                self._settle(load, answers)
        finally:
            self._in_flight -= 1
            self._sender.metrics.requests_in_flight -= 1
            self._wakeup.set()

    async def _exchange(self, loads: list[_Load]) -> dict[tuple[str, int], ProducedPartition]:
        request = ProduceRequest(
            acks=self._config.acks_code,
            timeout_ms=self._config.request_timeout_ms,
            partitions=[
                ProducePartition(
                    load.queue.topic_partition.topic,
                    load.queue.topic_partition.partition,
                    b"".join([batch.build() for batch in load.batches]),
                )
                for load in loads
            ],
        )
        channel = self._sender.cluster.channel(self.broker_id, Service.DATA)
        timeout = self._config.request_timeout_ms / 1000
        if request.acks == 0:
            await channel.send(request, timeout)
            return {
                load.queue.topic_partition: ProducedPartition(*load.queue.topic_partition)
                for load in loads
            }
        response: ProduceResponse = await channel.call(request, timeout)
        return {(answer.topic, answer.partition): answer for answer in response.partitions}

    def _settle(self, load: _Load, answers: dict[tuple[str, int], ProducedPartition]) -> None:
        answer = answers.get(load.queue.topic_partition)
        if answer is None:
            missing = f"broker {self.broker_id} left {load.queue.topic_partition} out of its answer"
            self._sender.on_failure(load.queue, load.batches, UnknownServerError(missing))
        else:
            self._sender.on_answer(load.queue, load.batches, answer)

    def _fail(self, loads: list[_Load], error: BarnabasError) -> None:
        for load in loads:
            self._sender.on_failure(load.queue, load.batches, error)

    def _count(self, loads: list[_Load]) -> None:
        metrics = self._sender.metrics
        metrics.requests_sent += 1
        metrics.requests_in_flight += 1
        for load in loads:
            metadata = self._sender.cluster.metadata.partition(load.queue.topic_partition)
            load.queue.failed_epoch = metadata.leader_epoch if metadata is not None else -1
            for batch in load.batches:
                metrics.batches_sent += 1
                metrics.bytes_sent += len(batch.build())
                if batch.attempts:
                    metrics.batches_retried += 1
                else:
                    metrics.records_sent += batch.count
                batch.attempts += 1
