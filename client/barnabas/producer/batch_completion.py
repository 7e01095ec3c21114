"""Completes, retries, splits or gives up batches, after an answer, a failure or a timeout."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from functools import partial

from barnabas_common.errors import (
    BarnabasError,
    ClosedError,
    DeliveryTimeoutError,
    TransactionAbortedError,
    error_for,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProducedPartition
from barnabas_common.runtime import Clock

from barnabas.cluster import Cluster
from barnabas.producer.batch import BatchState, ProducerBatch
from barnabas.producer.config import ProducerConfig
from barnabas.producer.handle import BatchResult
from barnabas.producer.metrics import ProducerMetrics
from barnabas.producer.queues import PartitionQueue
from barnabas.producer.record_accumulator import RecordAccumulator
from barnabas.producer.send_error_action import (
    SendErrorAction,
    makes_metadata_stale,
    maybe_stored,
    send_error_action,
    sequence_error_action,
)
from barnabas.producer.transaction.manager import TransactionManager

logger = logging.getLogger(__name__)

_UNOBSERVED_KEPT = 1_000
_AFTER_A_PAUSE = (SendErrorAction.RETRY, SendErrorAction.WIDEN, SendErrorAction.RENUMBER)


class BatchCompletion:
    """Applies the answers and failures of one producer's requests to their batches.

    `unobserved` has the latest results that were given up and not reported to the application. A
    producer with `transactions` reports them when it commits.
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
        self.transactions: TransactionManager | None = None
        self._name = config.client_id or "producer"
        self._retries = config.retries
        self._delivery_timeout = config.delivery_timeout_ms / 1000
        self._clock = clock
        self._cluster = cluster
        self._accumulator = accumulator
        self._metrics = metrics

    def count_request(self, batches: Sequence[ProducerBatch]) -> None:
        """Count the sending of these batches."""
        metrics = self._metrics
        metrics.requests_sent += 1
        metrics.requests_in_flight += 1
        for batch in batches:
            metrics.batches_sent += 1
            metrics.bytes_sent += len(batch.payload)
            if batch.attempts > 1:
                metrics.batches_retried += 1
            else:
                metrics.records_sent += batch.count

    def on_answer(
        self, queue: PartitionQueue, batches: Sequence[ProducerBatch], answer: ProducedPartition
    ) -> None:
        """Apply the broker's answer about these batches of one partition."""
        if answer.error_code == ErrorCode.NONE:
            self._on_delivered(queue, batches, answer)
            return
        self._cluster.learn_leader(
            queue.topic_partition, answer.current_leader_id, answer.current_leader_epoch
        )
        failure = error_for(answer.error_code, answer.error_message)
        self.on_failure(queue, batches, failure, answer.log_start_offset)

    def on_failure(
        self,
        queue: PartitionQueue,
        batches: Sequence[ProducerBatch],
        failure: BarnabasError,
        log_start_offset: int = -1,
    ) -> None:
        """Handle a request that was refused for these batches of one partition, or was lost."""
        pending = [batch for batch in batches if not batch.done]
        for batch in pending:
            batch.last_failure = failure
            batch.maybe_stored = batch.maybe_stored or maybe_stored(failure)
        if makes_metadata_stale(failure):
            self._cluster.request_refresh()
        queue.requests -= 1
        if pending:
            action = self._action(queue, pending, len(batches), failure, log_start_offset)
            if action is SendErrorAction.RENUMBER:
                queue.sequences.gap = True
            if action in _AFTER_A_PAUSE:
                pending = self._without_spent(pending, counted=failure.retriable)
            self._act(queue, pending, action, failure)
        self._go_on(queue)

    def give_up(self, batch: ProducerBatch, error: BarnabasError) -> None:
        """Fail every record of the batch with the error.

        Other batches are not affected, unless they are part of the same transaction.
        """
        if not batch.done:
            self._go_on(self._fail(batch, error))

    def drop(self, error: BarnabasError) -> None:
        """Give up every batch that is not in flight."""
        waiting = [b for b in self._accumulator.incomplete if b.state is not BatchState.IN_FLIGHT]
        queues = [self._fail(batch, error) for batch in waiting if not batch.done]
        for queue in dict.fromkeys(queues):
            self._go_on(queue)

    def abandon(self, why: str) -> None:
        """Give up every batch that is not done, or that comes later: nothing is sent any more.

        `why` begins the error's sentence: "the producer was closed".
        """
        loop, give_up = asyncio.get_running_loop(), partial(self._give_up_all, why)
        # Soon, and not now: the batch that becomes ready may not have its record yet.
        self._accumulator.on_ready = lambda queue: loop.call_soon(give_up)
        give_up()

    def _give_up_all(self, why: str) -> None:
        rest = list(self._accumulator.incomplete)
        if rest:
            count = sum(batch.count for batch in rest)
            logger.warning("%s: %s with %d records not delivered", self._name, why, count)
        for batch in rest:
            cause = f": {batch.last_failure}" if batch.last_failure else ""
            self.give_up(batch, ClosedError(f"{why} before the record was delivered{cause}"))

    async def flush(self) -> None:
        """Send everything now, and wait until every record is delivered or given up."""
        await self._accumulator.flush()

    def restart(self) -> None:
        """Begin again with sequence 0 everywhere, under a new producer epoch."""
        for topic in self._accumulator.topics.values():
            for queue in topic.queues:
                queue.sequences.restart()

    def partitions_added(self) -> None:
        """Send what had to wait until its partition was part of the transaction."""
        self._accumulator.hurry()

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

    def _fail(self, batch: ProducerBatch, error: BarnabasError) -> PartitionQueue:
        self._metrics.batches_failed += 1
        self._metrics.records_failed += batch.count
        queue = self._accumulator.withdraw(batch)
        level = logging.DEBUG if isinstance(error, TransactionAbortedError) else logging.ERROR
        logger.log(
            level, "gave up %d records for %s: %s", batch.count, batch.topic_partition, error
        )
        batch.fail(error)
        if self.transactions is not None:
            self.transactions.batch_failed(error)
        elif not batch.result.observed:
            self.unobserved.append(batch.result)
        return queue

    def _on_delivered(
        self, queue: PartitionQueue, batches: Sequence[ProducerBatch], answer: ProducedPartition
    ) -> None:
        queue.failures = 0
        queue.requests -= 1
        offset = answer.base_offset
        for batch in batches:
            self._complete(queue, batch, offset, answer.log_append_time_ms)
            if offset >= 0:
                offset += batch.offsets
        self._go_on(queue)

    def _complete(
        self, queue: PartitionQueue, batch: ProducerBatch, offset: int, append_time: int
    ) -> None:
        queue.sequences.delivered(batch)
        if batch.done:  # given up before this answer
            return
        self._metrics.batches_acked += 1
        self._metrics.records_acked += batch.count
        self._accumulator.deallocate(batch)
        batch.complete(offset, append_time)

    def _go_on(self, queue: PartitionQueue) -> None:
        """Send the next batches of a partition, under a new epoch if one was given up unstored.

        Within a transaction there is none: it is aborted, and the coordinator raises the epoch.
        """
        ids = self._accumulator.ids
        if self.transactions is not None:
            why = self.transactions.why_dropped
            if why is not None:
                for batch in list(queue.closed):
                    self._fail(batch, why)
        elif ids is not None and queue.sequences.needs_epoch():
            logger.info("%s: the producer starts a new epoch", queue.topic_partition)
            ids.start_epoch(beyond=queue.sequences.producer)
            queue.sequences.restart()
            self._metrics.epochs_started = ids.epochs_started
        self._accumulator.on_ready(queue)

    def _action(
        self,
        queue: PartitionQueue,
        pending: Sequence[ProducerBatch],
        sent: int,
        failure: BarnabasError,
        log_start_offset: int,
    ) -> SendErrorAction:
        """The action for the batches of one request that are not done, of `sent` that were in it.

        The error may be that of a batch in the request that was given up meanwhile.
        """
        first, last = pending[0], pending[-1]
        if first.producer is not None:
            earliest = queue.sequences.unanswered[0] is first
            forgotten = queue.sequences.may_be_forgotten(last)
            action = sequence_error_action(failure, earliest, forgotten, log_start_offset)
            if action is SendErrorAction.RENUMBER and self.transactions is not None:
                return SendErrorAction.FAIL
            if action is not None:
                return action
        return send_error_action(failure, sent, first.splittable)

    def _without_spent(self, batches: list[ProducerBatch], counted: bool) -> list[ProducerBatch]:
        """The batches that may be sent once more; the others are given up.

        An attempt that failed only because of an earlier batch is not `counted`.
        """
        for batch in batches:
            if self._is_spent(batch, counted):
                self.give_up(batch, self._exhausted(batch))
        return [batch for batch in batches if not batch.done]

    def _act(
        self,
        queue: PartitionQueue,
        batches: list[ProducerBatch],
        action: SendErrorAction,
        failure: BarnabasError,
    ) -> None:
        if action in _AFTER_A_PAUSE:
            if batches:
                self._pause(queue, failure)
                if action is SendErrorAction.WIDEN:
                    queue.widen(batches)
                self._accumulator.reenqueue(queue, batches)
        elif action is SendErrorAction.STORED:
            for batch in batches:
                self._complete(queue, batch, -1, -1)
        elif action is SendErrorAction.ISOLATE:
            queue.separate(batches)
            self._accumulator.reenqueue(queue, batches)
        elif action is SendErrorAction.SPLIT:
            self._split(queue, batches[0])
        else:
            for batch in batches:
                self.give_up(batch, failure)

    def _split(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        logger.info(
            "a batch of %d records for %s is too large for the broker and is split",
            batch.count, queue.topic_partition,
        )  # fmt: skip
        self._metrics.batches_split += 1
        self._accumulator.split(queue, batch)

    def _pause(self, queue: PartitionQueue, failure: BarnabasError) -> None:
        if self._clock.monotonic() < queue.not_before:
            return  # another request failed just before, for the same reason
        queue.failures += 1
        pause = self._cluster.backoff.seconds(queue.failures)
        until = queue.not_before = self._clock.monotonic() + pause
        logger.info("sending to %s again in %.3f s: %s", queue.topic_partition, pause, failure)
        asyncio.get_running_loop().call_later(pause, self._pause_over, queue, until)

    def _pause_over(self, queue: PartitionQueue, until: float) -> None:
        if queue.not_before == until:  # not the pause of a later failure
            queue.not_before = 0.0
            self._accumulator.on_ready(queue)

    def _is_spent(self, batch: ProducerBatch, counted: bool) -> bool:
        expired = self._clock.monotonic() >= batch.created + self._delivery_timeout
        return expired or (counted and batch.attempts > self._retries)

    def _exhausted(self, batch: ProducerBatch) -> DeliveryTimeoutError:
        ids = self._accumulator.ids
        no_id = ids.last_failure if ids is not None else None
        cause = batch.last_failure or no_id or self._cluster.last_failure
        waited = self._clock.monotonic() - batch.created
        attempts = "1 attempt" if batch.attempts == 1 else f"{batch.attempts} attempts"
        error = DeliveryTimeoutError(
            f"{batch.topic_partition}: not delivered after {attempts} "
            f"in {waited:.1f} s; last failure: {cause or 'the partition had no leader'}; "
            f"{_whereabouts(batch)}"
        )
        error.__cause__ = cause
        return error


def _whereabouts(batch: ProducerBatch) -> str:
    """Whether the records of a batch that is given up are in the log."""
    if batch.maybe_stored or batch.state is BatchState.IN_FLIGHT:
        return "its records may be in the log or not"
    return "its records are not in the log"
