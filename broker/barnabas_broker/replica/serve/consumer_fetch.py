"""A consumer's fetch: whole batches below the high watermark, or the last stable offset."""

from collections.abc import Callable

from barnabas_common.errors import KafkaError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.fetch import (
    AbortedTransaction,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
)
from barnabas_common.record.batch import next_offset
from barnabas_common.topic_partition import TopicPartition, named_once

from barnabas_broker.replica.damaged_replicas import DamagedReplicas
from barnabas_broker.replica.deadlines import Deadlines, Waiter
from barnabas_broker.replica.partition.partitions import Partitions
from barnabas_broker.replica.serve.fetch_isolation import ISOLATION_LEVELS, FetchIsolation
from barnabas_broker.replica.serve.read_result import read_records, refused_fetch

# However long a client wants to wait: its request counts against the bytes that all clients of the
# broker may have in progress, also after it has disconnected.
MAX_WAIT_SECONDS = 30.0


class ConsumerFetches:
    """Answers the fetches of all consumers. `max_bytes` is the broker's `fetch.max.bytes`."""

    def __init__(
        self,
        partitions: Partitions,
        deadlines: Deadlines,
        now: Callable[[], float],
        max_bytes: int,
        damaged: DamagedReplicas,
    ) -> None:
        self._partitions = partitions
        self._deadlines = deadlines
        self._now = now
        self._max_bytes = max_bytes
        self._damaged = damaged

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Answer immediately if there are `min_bytes` or an error; otherwise wait for more."""
        if request.isolation_level not in ISOLATION_LEVELS:
            return FetchResponse(ErrorCode.INVALID_REQUEST)
        request.partitions = named_once(request.partitions)
        deadline = self._now() + min(request.max_wait_ms / 1000, MAX_WAIT_SECONDS)
        timed_out = request.max_wait_ms <= 0 or not request.partitions
        answers = self._read_all(request)
        while not timed_out and not self._is_complete(answers, request):
            timed_out = not await self._high_watermark_move(request, deadline)
            answers = self._read_all(request)
        return FetchResponse(ErrorCode.NONE, partitions=answers)

    def _is_complete(self, answers: list[FetchedPartition], request: FetchRequest) -> bool:
        size = 0
        for answer in answers:
            if answer.error_code:
                return True
            size += len(answer.records)
        wanted = min(request.min_bytes, request.max_bytes, self._max_bytes)
        if size >= wanted:
            return True
        isolation = _isolation_of(request)
        for item, answer in zip(request.partitions, answers, strict=True):
            if not answer.records:
                continue
            if self._ends_with_its_segment(item, isolation):
                return True
            if self._has_more(item, answer.records, isolation):
                size += max(item.max_bytes - len(answer.records), 0)
        return size >= wanted

    def _has_more(self, item: FetchPartition, records: bytes, isolation: FetchIsolation) -> bool:
        """Whether the next batch did not fit: waiting would add nothing, so the partition counts
        with all that it may be read. Kafka's DelayedFetch counts the same."""
        log = self._partitions.hosted(TopicPartition(item.topic, item.partition)).log
        read_up_to = next_offset(records)
        return log is not None and read_up_to is not None and read_up_to < isolation.end_of(log)

    def _ends_with_its_segment(self, item: FetchPartition, isolation: FetchIsolation) -> bool:
        """Whether a later segment is readable too: a read ends with its segment, so that waiting
        would add nothing. Kafka's DelayedFetch, case F, answers at once as well."""
        log = self._partitions.hosted(TopicPartition(item.topic, item.partition)).log
        if log is None:
            return False
        for segment in reversed(log.segments()):
            if segment.base_offset <= item.fetch_offset:
                return False
            if segment.base_offset <= isolation.end_of(log):
                return True
        return False

    async def _high_watermark_move(self, request: FetchRequest, deadline: float) -> bool:
        """Wait until a partition has more to read, or another leader; False if time ran out."""
        waiter: Waiter = self._deadlines.park(deadline)
        hosts = [
            self._partitions.hosted(TopicPartition(item.topic, item.partition)).delayed_operations
            for item in request.partitions
        ]
        for delayed_operations in hosts:
            delayed_operations.park_consumer(waiter)
        try:
            return await waiter
        finally:
            for delayed_operations in hosts:
                delayed_operations.leave_consumer(waiter)

    def _read_all(self, request: FetchRequest) -> list[FetchedPartition]:
        left = min(request.max_bytes, self._max_bytes)
        isolation = _isolation_of(request)
        answers, empty = [], True
        for item in request.partitions:
            answer = self._read(item, isolation, min(item.max_bytes, left), empty)
            left -= len(answer.records)
            empty = empty and not answer.records
            answers.append(answer)
        return answers

    def _read(
        self, item: FetchPartition, isolation: FetchIsolation, limit: int, at_least_one: bool
    ) -> FetchedPartition:
        key = TopicPartition(item.topic, item.partition)
        try:
            return self._read_isolated(key, item, isolation, limit, at_least_one)
        except KafkaError as error:
            return refused_fetch(key, error, self._partitions)

    def _read_isolated(
        self,
        key: TopicPartition,
        item: FetchPartition,
        isolation: FetchIsolation,
        limit: int,
        at_least_one: bool,
    ) -> FetchedPartition:
        partition = self._partitions.hosted(key, item.topic_id)
        leadership = partition.lead(item.current_leader_epoch)
        log = leadership.log
        log.check_in_range(item.fetch_offset)
        end = isolation.end_of(log)
        answer = FetchedPartition(
            *key,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
        )
        if item.fetch_offset < end and (limit > 0 or at_least_one):
            answer.records = read_records(
                leadership, self._damaged, item.fetch_offset, limit, end, at_least_one, checked=1
            )
            if isolation is FetchIsolation.TXN_COMMITTED:
                aborted = log.aborted_transactions(item.fetch_offset, answer.records)
                answer.aborted_transactions = [
                    AbortedTransaction(one.producer_id, one.first_offset) for one in aborted
                ]
        return answer


def _isolation_of(request: FetchRequest) -> FetchIsolation:
    return FetchIsolation.of(is_follower=False, isolation_level=request.isolation_level)
