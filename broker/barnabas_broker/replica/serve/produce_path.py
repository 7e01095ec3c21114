"""Produce: append to the partitions led here, and wait for the replicas if the request asks for it.

A batch goes from here to `Leadership.append`, and from there to the log.
"""

from typing import NamedTuple

from barnabas_common.errors import KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import (
    ProducedPartition,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from barnabas_common.runtime import Clock
from barnabas_common.topic_name import INTERNAL_TOPICS
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.append_origin import AppendOrigin
from barnabas_broker.log.record_validation import Unpacking, has_too_many_batches
from barnabas_broker.replica.deadlines import Deadlines
from barnabas_broker.replica.leader.leadership import ACKS_ALL, ACKS_LEADER, ACKS_NONE
from barnabas_broker.replica.partition.partition import Partition
from barnabas_broker.replica.partition.partitions import Partitions
from barnabas_broker.replica.purgatory import DelayedProduce
from barnabas_broker.replica.serve.produce_refusals import (
    check_all_appended,
    invalid_acks,
    refusal_of,
    too_many_batches,
)
from barnabas_broker.replica.serve.verification import TransactionVerification, Verified

# The attributes of most batches, below that of a transactional one.
_ATTRIBUTES, _TRANSACTIONAL = slice(22, 23), b"\x10"


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
        verification: TransactionVerification,
    ) -> None:
        self.verification = verification
        self._partitions = partitions
        self._deadlines = deadlines
        self._clock = clock

    async def produce(
        self,
        request: ProduceRequest,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verified: Verified | None = None,
    ) -> ProduceResponse | None:
        """One outcome per partition, in the order of the request; partitions fail independently.

        Batches that begin a transaction wait until its coordinator confirms it, unless the caller
        has `verified` that.

        With acks=all the answer waits until every partition is committed or has failed, at most
        `timeout_ms`; a late append gets REQUEST_TIMED_OUT, and may still be committed later. With
        acks=0 there is no answer: the producer notices a failure only by losing its connection, as
        in Kafka. Only this broker's coordinators write to internal topics.

        Raises:
            DropConnection: an append with acks=0 failed.
        """
        acks = request.acks
        if acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
            return ProduceResponse([invalid_acks(item, acks) for item in request.partitions])
        from_client = origin is AppendOrigin.CLIENT
        if from_client and has_too_many_batches([item.records for item in request.partitions]):
            return too_many_batches(request)
        uncommitted: list[_Uncommitted] = []
        produced: list[ProducedPartition] = []
        unpacking = Unpacking()
        if verified is None and request.transactional_id:
            verified = await self.verification.verify(request)
        now_ms = self._clock.wall_ms()
        for item in request.partitions:
            is_unusual = item.records[_ATTRIBUTES] >= _TRANSACTIONAL
            if from_client and (is_unusual or item.topic in INTERNAL_TOPICS):
                refusal = refusal_of(item, request)
                if refusal is not None:
                    key = TopicPartition(item.topic, item.partition)
                    produced.append(self._refused(key, refusal))
                    continue
            unpacking.begin_append()
            one = self._append(item, acks, now_ms, origin, verified, unpacking, uncommitted)
            produced.append(one)
        if uncommitted:
            await self._until_safe(acks, uncommitted, request.timeout_ms)
        if acks == ACKS_NONE:
            check_all_appended(produced)
            return None
        return ProduceResponse(produced)

    def _append(
        self,
        item: ProducePartition,
        acks: int,
        now_ms: int,
        origin: AppendOrigin,
        verified: Verified | None,
        unpacking: Unpacking,
        uncommitted: list[_Uncommitted],
    ) -> ProducedPartition:
        key = TopicPartition(item.topic, item.partition)
        try:
            partition = self._partitions.hosted(key)
            leadership = partition.lead()
            guard = None if verified is None else verified.guard_for(key)
            appended = leadership.append(item.records, acks, now_ms, origin, guard, unpacking)
        except KafkaError as error:
            return self._refused(key, error)
        result = ProducedPartition(
            *key,
            base_offset=appended.first_offset,
            log_append_time_ms=appended.log_append_time_ms,
            log_start_offset=leadership.log.log_start_offset,
        )
        required_offset = appended.last_offset + 1
        outcome = leadership.outcome_of_append(acks, required_offset)
        if outcome is None:
            uncommitted.append(_Uncommitted(result, partition, required_offset))
        else:
            result.error_code = outcome
        return result

    def _refused(self, key: TopicPartition, error: KafkaError) -> ProducedPartition:
        hint = self._partitions.leader_hint(key, error.code)
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
        flushed; fill in the outcomes."""
        waiting = [item for item in uncommitted if self._is_still_led(item)]
        if not waiting:
            return
        deadline = self._clock.monotonic() + timeout_ms / 1000
        produce = DelayedProduce(self._deadlines, deadline)
        for _, partition, required_offset in waiting:
            delayed = partition.delayed_operations
            park = delayed.park_produce if acks == ACKS_ALL else delayed.park_flush
            park(required_offset, produce)
        await produce.waiter
        for (result, partition, _), outcome in zip(waiting, produce.errors, strict=True):
            if outcome:
                self._explain(result, partition, outcome)

    def _is_still_led(self, item: _Uncommitted) -> bool:
        """Whether the append can wait: a later one of the request may have failed the directory of
        both, which ended the leadership before anything waited for it."""
        try:
            item.partition.lead()
        except KafkaError as error:
            self._explain(item.result, item.partition, error.code)
            return False
        return True

    def _explain(self, result: ProducedPartition, partition: Partition, outcome: ErrorCode) -> None:
        result.error_code = outcome
        hint = self._partitions.leader_hint(partition.topic_partition, outcome)
        result.current_leader_id, result.current_leader_epoch = hint
        if outcome is ErrorCode.REQUEST_TIMED_OUT:
            result.error_message = "appended, but not replicated to the in-sync replicas in time"
        elif outcome is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
            result.error_message = "appended, but the ISR is smaller than min.insync.replicas now"
