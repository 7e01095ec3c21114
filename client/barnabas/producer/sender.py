"""Takes ready batches to the brokers that lead their partitions, and brings back the outcome.

There is one `BrokerSender` per broker; this class gives each ready queue to the right one, and
decides with `verdict.judge` what becomes of batches that failed. A partition is in one request at
a time: together with putting failed batches back in front, that keeps its records in order. Queues
that cannot go now (no leader, or pausing before a retry) are parked.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence

from barnabas.cluster import Cluster
from barnabas.error_code import ErrorCode
from barnabas.errors import BarnabasError, DeliveryTimeoutError, error_for
from barnabas.messages.produce import ProducedPartition
from barnabas.producer.accumulator import Accumulator, PartitionQueue
from barnabas.producer.batch import ProducerBatch
from barnabas.producer.broker_sender import BrokerSender
from barnabas.producer.config import ProducerConfig
from barnabas.producer.metrics import ProducerMetrics
from barnabas.producer.verdict import Verdict, is_retriable, judge, makes_metadata_stale
from barnabas.runtime import Runtime, TaskScope

logger = logging.getLogger(__name__)

_UNOBSERVED_KEPT = 1_000


class Sender:
    """Routes, retries and expires the batches of one producer."""

    def __init__(
        self,
        config: ProducerConfig,
        runtime: Runtime,
        cluster: Cluster,
        accumulator: Accumulator,
        metrics: ProducerMetrics,
    ) -> None:
        self.config = config
        self.cluster = cluster
        self.accumulator = accumulator
        self.metrics = metrics
        self.tasks = TaskScope(config.client_id or "producer")
        self._clock = runtime.clock
        self._brokers: dict[int, BrokerSender] = {}
        self._parked: dict[PartitionQueue, None] = {}
        # Given up, and nobody was told yet; the oldest are forgotten if nobody ever asks.
        self.unobserved: deque[ProducerBatch] = deque(maxlen=_UNOBSERVED_KEPT)

    def start(self) -> None:
        self.accumulator.on_ready = self.route
        self.cluster.on_update(self._on_metadata)
        self.tasks.spawn(self._expire_batches(), "expiry")

    async def close(self) -> None:
        """Stop sending; batches not done by now stay undone (the producer fails them)."""
        self.accumulator.on_ready = lambda queue: None
        await self.tasks.close()

    def route(self, queue: PartitionQueue) -> None:
        """Give a queue with something to send to its leader's loop, or park it."""
        if queue.in_flight or not self.accumulator.due(queue):
            return
        leader = self.cluster.metadata.leader(queue.topic_partition)
        if leader is None:
            self._parked[queue] = None
            self.cluster.request_refresh()
        elif self._clock.monotonic() < queue.not_before and leader.epoch <= queue.failed_epoch:
            self._parked[queue] = None
        else:
            self._parked.pop(queue, None)
            self._broker(leader.broker_id).offer(queue)

    def leads(self, broker_id: int, queue: PartitionQueue) -> bool:
        leader = self.cluster.metadata.leader(queue.topic_partition)
        return leader is not None and leader.broker_id == broker_id

    def on_answer(
        self,
        queue: PartitionQueue,
        batches: Sequence[ProducerBatch],
        answer: ProducedPartition,
    ) -> None:
        """The broker has spoken about these batches of one partition."""
        if answer.error_code == ErrorCode.NONE:
            self._on_delivered(queue, batches, answer)
            return
        if answer.current_leader_id >= 0:
            self.cluster.learn_leader(
                queue.topic_partition, answer.current_leader_id, answer.current_leader_epoch
            )
        self.on_failure(queue, batches, error_for(answer.error_code, answer.error_message))

    def on_failure(
        self, queue: PartitionQueue, batches: Sequence[ProducerBatch], failure: BarnabasError
    ) -> None:
        """The request failed for these batches of one partition, or was lost on the way."""
        alive = [batch for batch in batches if not batch.done]
        for batch in alive:
            batch.last_failure = failure
        if makes_metadata_stale(failure):
            self.cluster.request_refresh()
        if alive:
            self._dispose(queue, alive, failure)
        queue.in_flight = False
        self.route(queue)

    def give_up(self, batch: ProducerBatch, error: BarnabasError) -> None:
        """Every record of the batch carries the error; sending the rest goes on."""
        self.metrics.batches_failed += 1
        self.metrics.records_failed += batch.count
        self.accumulator.release(batch)
        logger.error(
            "%d records for %s are given up: %s", batch.count, batch.topic_partition, error
        )
        batch.fail(error)
        if not batch.observed:
            self.unobserved.append(batch)

    def _on_delivered(
        self,
        queue: PartitionQueue,
        batches: Sequence[ProducerBatch],
        answer: ProducedPartition,
    ) -> None:
        queue.failures = 0
        queue.in_flight = False
        offset = answer.base_offset
        for batch in batches:
            if not batch.done:
                self.metrics.batches_acked += 1
                self.metrics.records_acked += batch.count
                self.accumulator.release(batch)
                batch.complete(offset, answer.log_append_time_ms)
            if offset >= 0:
                offset += batch.offsets
        self.route(queue)

    def _dispose(
        self, queue: PartitionQueue, batches: list[ProducerBatch], failure: BarnabasError
    ) -> None:
        left = []
        for batch in batches:
            if is_retriable(failure) and self._is_spent(batch):
                self.give_up(batch, self._exhausted(batch))
            else:
                left.append(batch)
        if left:
            self._carry_out(queue, left, failure)

    def _carry_out(
        self, queue: PartitionQueue, batches: list[ProducerBatch], failure: BarnabasError
    ) -> None:
        verdict = judge(failure, len(batches), _splittable(batches[0]))
        if verdict is Verdict.RETRY:
            self._retry_later(queue, failure)
            self.accumulator.put_back(queue, batches)
        elif verdict is Verdict.ISOLATE:
            for batch in batches:
                batch.solo = True
            self.accumulator.put_back(queue, batches)
        elif verdict is Verdict.SPLIT:
            self._split(queue, batches[0])
        else:
            self.give_up(batches[0], failure)

    def _split(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        logger.info(
            "a batch of %d records for %s is too large for the broker and is halved",
            batch.count, queue.topic_partition,
        )  # fmt: skip
        self.metrics.batches_split += 1
        parts = batch.split()
        for part in parts:
            part.solo = True
        self.accumulator.replace(batch, parts)
        self.accumulator.put_back(queue, parts)

    def _retry_later(self, queue: PartitionQueue, failure: BarnabasError) -> None:
        queue.failures += 1
        pause = self.cluster.backoff.seconds(queue.failures)
        until = queue.not_before = self._clock.monotonic() + pause
        logger.info("sending to %s again in %.3f s: %s", queue.topic_partition, pause, failure)
        asyncio.get_running_loop().call_later(pause, self._pause_over, queue, until)

    def _pause_over(self, queue: PartitionQueue, until: float) -> None:
        if queue.not_before == until:  # not the pause of a later failure
            queue.not_before = 0.0
            self.route(queue)

    def _is_spent(self, batch: ProducerBatch) -> bool:
        expired = self._clock.monotonic() >= batch.created + self._delivery_timeout
        return expired or batch.attempts > self.config.retries

    def _exhausted(self, batch: ProducerBatch) -> DeliveryTimeoutError:
        cause = batch.last_failure or self.cluster.last_failure
        waited = self._clock.monotonic() - batch.created
        attempts = "1 attempt" if batch.attempts == 1 else f"{batch.attempts} attempts"
        error = DeliveryTimeoutError(
            f"{batch.topic_partition}: not delivered after {attempts} "
            f"in {waited:.1f} s; last failure: {cause or 'the partition had no leader'}"
        )
        error.__cause__ = cause
        return error

    @property
    def _delivery_timeout(self) -> float:
        return self.config.delivery_timeout_ms / 1000

    async def _expire_batches(self) -> None:
        """Give up what is too old, also while its request is still unanswered (KIP-91)."""
        while True:
            now = self._clock.monotonic()
            next_check = now + self._delivery_timeout
            for batch in list(self.accumulator.incomplete):
                deadline = batch.created + self._delivery_timeout
                if deadline <= now:
                    self._close_if_open(batch)
                    self.give_up(batch, self._exhausted(batch))
                else:
                    next_check = min(next_check, deadline)
            await asyncio.sleep(max(next_check - now, 0.001))

    def _close_if_open(self, batch: ProducerBatch) -> None:
        """No record may join a batch that is given up."""
        topic, partition = batch.topic_partition
        queue = self.accumulator.topics[topic].queues[partition]
        if queue.open is batch:
            queue.open = None

    def _on_metadata(self) -> None:
        for queue in list(self._parked):
            self.route(queue)

    def _broker(self, broker_id: int) -> BrokerSender:
        broker = self._brokers.get(broker_id)
        if broker is None:
            broker = self._brokers[broker_id] = BrokerSender(broker_id, self)
            self.tasks.spawn(broker.run(), f"broker-{broker_id}")
        return broker


def _splittable(batch: ProducerBatch) -> bool:
    return batch.count > 1 and not batch.prebuilt
