"""Sends ready batches to the leaders of their partitions: one loop for each broker.

A partition is in one request at a time, and failed batches are put back in front: that keeps its
records in order. An idempotent producer may send a second request behind a first one, because the
leader takes its batches only in their order. Records that accumulate meanwhile are sent together in
the next request, so requests grow by themselves when the broker is the slower side.
"""

import asyncio
import logging
from typing import NamedTuple

from barnabas_common.errors import BarnabasError, TransportError, UnknownServerError
from barnabas_common.messages.produce import (
    ProducedPartition,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from barnabas_common.runtime import Clock, Service, TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster import Cluster
from barnabas.producer.batch import ProducerBatch
from barnabas.producer.batch_completion import BatchCompletion
from barnabas.producer.config import ProducerConfig
from barnabas.producer.metrics import ProducerMetrics
from barnabas.producer.producer_id import ProducerIds
from barnabas.producer.queues import PartitionQueue
from barnabas.producer.record_accumulator import RecordAccumulator
from barnabas.producer.transaction.manager import TransactionManager

logger = logging.getLogger(__name__)


class Sender:
    """Gives each ready queue to the loop of the broker that leads its partition.

    Queues that cannot be sent now (no leader, no producer id yet, a partition that is not part of
    the transaction yet, or a pause before a retry) are parked.
    """

    def __init__(
        self,
        config: ProducerConfig,
        clock: Clock,
        cluster: Cluster,
        accumulator: RecordAccumulator,
        metrics: ProducerMetrics,
    ) -> None:
        self.config = config
        self.cluster = cluster
        self.accumulator = accumulator
        self.metrics = metrics
        self.completion = BatchCompletion(config, clock, cluster, accumulator, metrics)
        self.tasks = TaskScope(config.client_id or "producer")
        self._clock = clock
        self.transactions: TransactionManager | None = None
        self._brokers: dict[int, BrokerSender] = {}
        self._parked: dict[PartitionQueue, None] = {}

    def start(self) -> None:
        """Take ready queues from the accumulator, and give up batches that are too old."""
        self.accumulator.on_ready = self.route
        self.cluster.on_update(self._route_parked)
        expiry = self.tasks.spawn(self._expire_batches(), "expiry")
        # `asyncio.run` cancels all tasks at its end: nothing may wait for a delivery then.
        expiry.add_done_callback(
            lambda _: self.completion.abandon("the producer's tasks were cancelled")
        )
        config = self.config
        if config.enable_idempotence:
            ids = ProducerIds(self.cluster, self._route_parked, self.completion.drop)
            self.accumulator.ids = ids
            if config.transactional_id is None:
                self.tasks.spawn(ids.run(), "producer id")
            else:
                transactions = TransactionManager.of(config, self.cluster, ids, self.completion)
                self.transactions = self.completion.transactions = transactions
                self.accumulator.on_batch = transactions.add

    async def close(self) -> None:
        """Stop sending. Batches that are not done stay so: the producer fails them."""
        try:
            if self.transactions is not None:
                await self.transactions.close()
        finally:
            await self.tasks.close()

    def route(self, queue: PartitionQueue) -> None:
        """Give a queue with something to send to its leader's loop, or park it."""
        ids = self.accumulator.ids
        if ids is not None and ids.current is None and self.accumulator.has_records(queue):
            self._parked[queue] = None
            ids.request()
            return
        if not self.accumulator.ready(queue):
            return
        broker_id = self.destination(queue)
        if broker_id is None:
            self._parked[queue] = None
        else:
            self._parked.pop(queue, None)
            self._broker(broker_id).offer(queue)

    def destination(self, queue: PartitionQueue) -> int | None:
        """The broker to send to; None while there is no leader, or a pause before a retry, or
        while the coordinator has not added the partition to the transaction.

        A new leader gets no new batch before the old one has answered: it may not have stored what
        must precede the batch.
        """
        transactions = self.transactions
        if transactions is not None and not transactions.contains(queue.topic_partition):
            return None
        leader = self.cluster.metadata.leader(queue.topic_partition)
        if leader is None:
            self.cluster.request_refresh()
            return None
        if self._clock.monotonic() < queue.not_before and leader.epoch <= queue.sent_epoch:
            return None
        retried = queue.closed and queue.closed[0].producer is not None
        if queue.requests and leader.epoch != queue.sent_epoch and not retried:
            return None
        return leader.broker_id

    async def _expire_batches(self) -> None:
        while True:
            wait = self.completion.expire()
            await asyncio.sleep(max(wait, 0.001))

    def _route_parked(self) -> None:
        for queue in list(self._parked):
            self.route(queue)

    def _broker(self, broker_id: int) -> "BrokerSender":
        broker = self._brokers.get(broker_id)
        if broker is None:
            broker = self._brokers[broker_id] = BrokerSender(broker_id, self)
            self.tasks.spawn(broker.run(), f"broker-{broker_id}")
        return broker


class _Load(NamedTuple):
    """One partition's share of a request."""

    queue: PartitionQueue
    batches: list[ProducerBatch]


class BrokerSender:
    """Sends to one broker: at most `max_in_flight` requests are unanswered."""

    def __init__(self, broker_id: int, sender: Sender) -> None:
        self.broker_id = broker_id
        self._sender = sender
        self._config = sender.config
        self._ready: dict[PartitionQueue, None] = {}
        self._wakeup = asyncio.Event()
        self._in_flight = 0
        self._requests = 0

    def offer(self, queue: PartitionQueue) -> None:
        """Take a queue that this broker leads and that has something to send."""
        self._ready[queue] = None
        self._wakeup.set()

    async def run(self) -> None:
        """Send the ready batches whenever fewer than `max_in_flight` requests are unanswered."""
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
            accumulator = self._sender.accumulator
            if self._sender.destination(queue) != self.broker_id or not accumulator.ready(queue):
                del self._ready[queue]
                self._sender.route(queue)
                continue
            batches = accumulator.drain(queue, room, first=not loads)
            if batches:
                metadata = self._sender.cluster.metadata.partition(queue.topic_partition)
                queue.sent_epoch = metadata.leader_epoch if metadata is not None else -1
                loads.append(_Load(queue, batches))
                room -= sum(len(batch.payload) for batch in batches)
            if not accumulator.ready(queue):
                self._ready.pop(queue, None)  # what is left waits for an answer, or to be due
            if room <= 0:
                break
        return loads

    async def _deliver(self, loads: list[_Load]) -> None:
        self._sender.completion.count_request([b for load in loads for b in load.batches])
        try:
            answers = await self._exchange(loads)
        except TransportError as error:
            logger.info("broker %d did not answer a produce request: %s", self.broker_id, error)
            self._sender.cluster.note_failure(self.broker_id)
            self._fail(loads, error)
        except BarnabasError as error:
            self._fail(loads, error)
        except Exception as error:
            logger.exception("a produce request to broker %d failed", self.broker_id)
            self._fail(loads, UnknownServerError(repr(error)))
        else:
            for load in loads:
                self._settle(load, answers.get(load.queue.topic_partition))
        finally:
            self._in_flight -= 1
            self._sender.metrics.requests_in_flight -= 1
            self._wakeup.set()

    async def _exchange(self, loads: list[_Load]) -> dict[TopicPartition, ProducedPartition]:
        request = ProduceRequest(
            acks=self._config.acks_code,
            timeout_ms=self._config.request_timeout_ms,
            partitions=[
                ProducePartition(
                    load.queue.topic_partition.topic,
                    load.queue.topic_partition.partition,
                    b"".join([batch.payload for batch in load.batches]),
                )
                for load in loads
            ],
            transactional_id=self._config.transactional_id or "",
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
        return {TopicPartition(p.topic, p.partition): p for p in response.partitions}

    def _settle(self, load: _Load, answer: ProducedPartition | None) -> None:
        if answer is None:
            missing = f"broker {self.broker_id} left {load.queue.topic_partition} out of its answer"
            self._fail([load], UnknownServerError(missing))
        else:
            self._sender.completion.on_answer(load.queue, load.batches, answer)

    def _fail(self, loads: list[_Load], error: BarnabasError) -> None:
        for load in loads:
            self._sender.completion.on_failure(load.queue, load.batches, error)
