"""Completes, retries, splits or gives up batches, after an answer, a failure or a timeout."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence

from barnabas_common.errors import BarnabasError, DeliveryTimeoutError, error_for
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProducedPartition
from barnabas_common.runtime import Clock

from barnabas.cluster import Cluster
from barnabas.producer.batch import ProducerBatch
from barnabas.producer.config import ProducerConfig
from barnabas.producer.handle import BatchResult
from barnabas.producer.metrics import ProducerMetrics
from barnabas.producer.record_accumulator import PartitionQueue, RecordAccumulator
from barnabas.producer.send_error_action import (
    SendErrorAction,
    makes_metadata_stale,
    send_error_action,
)

logger = logging.getLogger(__name__)

_UNOBSERVED_KEPT = 1_000


class BatchCompletion:
    """Applies the answers and failures of one producer's requests to their batches.

    `unobserved` has the latest results that were given up and not reported to the application.
    """

    def __init__(
        self,
        config: ProducerConfig,
        clock: Clock,
        cluster: Cluster,
        accumulator: RecordAccumulator,
        metrics: ProducerMetrics,
    ) -> None:
        self.unobserved: deque[BatchResult] = deque(maxlen=_UNOBSERVED_KEPT)
        self._retries = config.retries
        self._delivery_timeout = config.delivery_timeout_ms / 1000
        self._clock = clock
        self._cluster = cluster
        self._accumulator = accumulator
        self._metrics = metrics

    def on_answer(
        self,
        queue: PartitionQueue,
        batches: Sequence[ProducerBatch],
        answer: ProducedPartition,
    ) -> None:
        """Apply the broker's answer about these batches of one partition."""
        if answer.error_code == ErrorCode.NONE:
            self._on_delivered(queue, batches, answer)
            return
        self._cluster.learn_leader(
            queue.topic_partition, answer.current_leader_id, answer.current_leader_epoch
        )
        self.on_failure(queue, batches, error_for(answer.error_code, answer.error_message))

    def on_failure(
        self, queue: PartitionQueue, batches: Sequence[ProducerBatch], failure: BarnabasError
    ) -> None:
        """Handle a request that was refused for these batches of one partition, or was lost."""
        pending = [batch for batch in batches if not batch.done]
        for batch in pending:
            batch.last_failure = failure
        if makes_metadata_stale(failure):
            self._cluster.request_refresh()
        if failure.retriable:
            for batch in pending:
                if self._is_spent(batch):
                    self.give_up(batch, self._exhausted(batch))
            pending = [batch for batch in pending if not batch.done]
        if pending:
            # The error may be that of a batch in the request that was given up meanwhile.
            action = send_error_action(failure, len(batches), pending[0].splittable)
            self._act(queue, pending, action, failure)
        queue.in_flight = False
        self._accumulator.on_ready(queue)

    def give_up(self, batch: ProducerBatch, error: BarnabasError) -> None:
        """Fail every record of the batch with the error; other batches are not affected."""
        self._metrics.batches_failed += 1
        self._metrics.records_failed += batch.count
        self._accumulator.withdraw(batch)
        logger.error("gave up %d records for %s: %s", batch.count, batch.topic_partition, error)
        batch.fail(error)
        if not batch.result.observed:
            self.unobserved.append(batch.result)

    def expire(self) -> float:
        """Give up batches that are too old, even if their request is unanswered (KIP-91).

        Returns the seconds until the next batch can be too old.
        """
        now = self._clock.monotonic()
        wait = self._delivery_timeout
        for batch in list(self._accumulator.incomplete):
            left = batch.created + self._delivery_timeout - now
            if left <= 0:
                self.give_up(batch, self._exhausted(batch))
            else:
                wait = min(wait, left)
        return wait

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
                self._metrics.batches_acked += 1
                self._metrics.records_acked += batch.count
                self._accumulator.deallocate(batch)
                batch.complete(offset, answer.log_append_time_ms)
            if offset >= 0:
                offset += batch.offsets
        self._accumulator.on_ready(queue)

    def _act(
        self,
        queue: PartitionQueue,
        batches: list[ProducerBatch],
        action: SendErrorAction,
        failure: BarnabasError,
    ) -> None:
        if action is SendErrorAction.RETRY:
            self._pause(queue, failure)
            self._accumulator.reenqueue(queue, batches)
        elif action is SendErrorAction.ISOLATE:
            for batch in batches:
                batch.solo = True
            self._accumulator.reenqueue(queue, batches)
        elif action is SendErrorAction.SPLIT:
            self._split(queue, batches[0])
        else:
            self.give_up(batches[0], failure)

    def _split(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        logger.info(
            "a batch of %d records for %s is too large for the broker and is split",
            batch.count, queue.topic_partition,
        )  # fmt: skip
        self._metrics.batches_split += 1
        self._accumulator.split(queue, batch)

    def _pause(self, queue: PartitionQueue, failure: BarnabasError) -> None:
        queue.failures += 1
        pause = self._cluster.backoff.seconds(queue.failures)
        until = queue.not_before = self._clock.monotonic() + pause
        logger.info("sending to %s again in %.3f s: %s", queue.topic_partition, pause, failure)
        asyncio.get_running_loop().call_later(pause, self._pause_over, queue, until)

    def _pause_over(self, queue: PartitionQueue, until: float) -> None:
        if queue.not_before == until:  # not the pause of a later failure
            queue.not_before = 0.0
            self._accumulator.on_ready(queue)

    def _is_spent(self, batch: ProducerBatch) -> bool:
        expired = self._clock.monotonic() >= batch.created + self._delivery_timeout
        return expired or batch.attempts > self._retries

    def _exhausted(self, batch: ProducerBatch) -> DeliveryTimeoutError:
        cause = batch.last_failure or self._cluster.last_failure
        waited = self._clock.monotonic() - batch.created
        attempts = "1 attempt" if batch.attempts == 1 else f"{batch.attempts} attempts"
        error = DeliveryTimeoutError(
            f"{batch.topic_partition}: not delivered after {attempts} "
            f"in {waited:.1f} s; last failure: {cause or 'the partition had no leader'}"
        )
        error.__cause__ = cause
        return error
