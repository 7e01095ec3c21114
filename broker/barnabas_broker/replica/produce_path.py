"""Produce: append to the partitions led here, and wait for the replicas where asked to."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from barnabas.error_code import ErrorCode
from barnabas.errors import KafkaError
from barnabas.messages.produce import ProducedPartition, ProducePartition
from barnabas.runtime import Clock
from barnabas.topic_partition import TopicPartition

from barnabas_broker.replica.deadlines import Deadlines
from barnabas_broker.replica.partition import Partition
from barnabas_broker.replica.partitions import LeaderHint, Partitions
from barnabas_broker.replica.purgatory import DelayedProduce
from barnabas_broker.replica.read_result import LEADER_ELSEWHERE

logger = logging.getLogger(__name__)

ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1


class _Uncommitted(NamedTuple):
    """An append that must be replicated, or flushed, before it is answered."""

    result: ProducedPartition
    partition: Partition
    required_offset: int


class ProducePath:
    """Answers produce requests."""

    def __init__(
        self,
        partitions: Partitions,
        deadlines: Deadlines,
        clock: Clock,
    ) -> None:
        self._partitions = partitions
        self._deadlines = deadlines
        self._clock = clock

    async def append_records(
        self, acks: int, timeout_ms: int, items: Sequence[ProducePartition]
    ) -> list[ProducedPartition]:
        """One outcome per partition, in the order of `items`; partitions fail independently.

        With acks=all the answer waits until every partition is committed or has failed, at most
        `timeout_ms`; what is not committed by then gets REQUEST_TIMED_OUT, and may be later.
        """
        if acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
            return [
                ProducedPartition(item.topic, item.partition, ErrorCode.INVALID_REQUIRED_ACKS)
                for item in items
            ]
        uncommitted: list[_Uncommitted] = []
        now_ms = self._clock.wall_ms()
        results = [self._append(item, acks, now_ms, uncommitted) for item in items]
        if uncommitted:
            await self._until_safe(acks, uncommitted, timeout_ms)
        return results

    def _append(
        self,
        item: ProducePartition,
        acks: int,
        now_ms: int,
        uncommitted: list[_Uncommitted],
    ) -> ProducedPartition:
        key = TopicPartition(item.topic, item.partition)
        try:
            partition = self._partitions.hosted(key)
            leadership = partition.lead()
            appended = leadership.append(item.records, acks, now_ms)
        except KafkaError as error:
            return self._refused(key, error)
        result = ProducedPartition(
            *key,
            base_offset=appended.first_offset,
            log_append_time_ms=appended.log_append_time_ms,
            log_start_offset=leadership.log.log_start_offset,
        )
        if acks == ACKS_ALL:
            required = appended.last_offset + 1
            outcome = leadership.produce_outcome(required)
            if outcome is None:
                uncommitted.append(_Uncommitted(result, partition, required))
            else:
                result.error_code = outcome
        elif acks == ACKS_LEADER and leadership.guard.last is not None:
            uncommitted.append(_Uncommitted(result, partition, appended.last_offset + 1))
        return result

    def _refused(self, key: TopicPartition, error: KafkaError) -> ProducedPartition:
        hint = self._partitions.leader_hint(key) if error.code in LEADER_ELSEWHERE else LeaderHint()
        return ProducedPartition(
            *key,
            error.code,
            error_message=error.message,
            current_leader_id=hint.leader_id,
            current_leader_epoch=hint.leader_epoch,
        )

    async def _until_safe(
        self, acks: int, uncommitted: list[_Uncommitted], timeout_ms: int
    ) -> None:
        """Park until the high watermarks have passed the appends, or with acks=1 until those are
        flushed; fills in the outcomes."""
        deadline = self._clock.monotonic() + timeout_ms / 1000
        produce = DelayedProduce(self._deadlines, deadline)
        for _, partition, required_offset in uncommitted:
            waiting = partition.waiting
            park = waiting.park_produce if acks == ACKS_ALL else waiting.park_flush
            park(required_offset, produce)
        await produce.waiter
        for (result, partition, _), outcome in zip(uncommitted, produce.errors, strict=True):
            if outcome:
                self._explain(result, partition, outcome)

    def _explain(self, result: ProducedPartition, partition: Partition, outcome: ErrorCode) -> None:
        result.error_code = outcome
        if outcome in LEADER_ELSEWHERE:
            hint = self._partitions.leader_hint(partition.topic_partition)
            result.current_leader_id, result.current_leader_epoch = hint
        elif outcome is ErrorCode.REQUEST_TIMED_OUT:
            result.error_message = "appended, but not replicated to the in-sync replicas in time"
        elif outcome is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
            result.error_message = "appended, but the ISR is smaller than min.insync.replicas now"
