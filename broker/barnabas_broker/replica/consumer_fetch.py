"""A consumer's fetch: whole batches below the high watermark, never above it."""

from barnabas.error_code import ErrorCode
from barnabas.errors import KafkaError
from barnabas.messages.fetch import FetchedPartition, FetchPartition, FetchRequest, FetchResponse
from barnabas.topic_partition import TopicPartition

from barnabas_broker.replica.deadlines import Deadlines, Waiter
from barnabas_broker.replica.partitions import Partitions
from barnabas_broker.replica.read_result import refused_fetch


class ConsumerFetches:
    """Answers the fetches of all consumers. `max_bytes` is the broker's `fetch.max.bytes`."""

    def __init__(
        self,
        partitions: Partitions,
        deadlines: Deadlines,
        max_bytes: int,
    ) -> None:
        self._partitions = partitions
        self._deadlines = deadlines
        self._max_bytes = max_bytes

    async def fetch(self, request: FetchRequest, now: float) -> FetchResponse:
        """Answer at once if there are `min_bytes`, or an error; else wait for the high watermark.

        There are no transactions yet, so both isolation levels end at the high watermark.
        """
        deadline = now + request.max_wait_ms / 1000
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
        return size >= min(request.min_bytes, request.max_bytes, self._max_bytes)

    async def _high_watermark_move(self, request: FetchRequest, deadline: float) -> bool:
        """Wait until any of the partitions has more to read, or another leader; False: time."""
        waiter: Waiter = self._deadlines.park(deadline)
        hosts = [
            self._partitions.hosted(TopicPartition(item.topic, item.partition)).waiting
            for item in request.partitions
        ]
        for waiting in hosts:
            waiting.park_consumer(waiter)
        try:
            return await waiter
        finally:
            for waiting in hosts:
                waiting.leave_consumer(waiter)

    def _read_all(self, request: FetchRequest) -> list[FetchedPartition]:
        left = min(request.max_bytes, self._max_bytes)
        answers, empty = [], True
        for item in request.partitions:
            answer = self._read(item, min(item.max_bytes, left), empty)
            left -= len(answer.records)
            empty = empty and not answer.records
            answers.append(answer)
        return answers

    def _read(self, item: FetchPartition, limit: int, at_least_one: bool) -> FetchedPartition:
        key = TopicPartition(item.topic, item.partition)
        try:
            return self._read_committed(key, item, limit, at_least_one)
        except KafkaError as error:
            return refused_fetch(key, error, self._partitions)

    def _read_committed(
        self, key: TopicPartition, item: FetchPartition, limit: int, at_least_one: bool
    ) -> FetchedPartition:
        leadership = self._partitions.hosted(key).lead(item.current_leader_epoch)
        leadership.check_in_range(item.fetch_offset)
        log = leadership.log
        committed = log.high_watermark
        answer = FetchedPartition(
            *key,
            high_watermark=committed,
            last_stable_offset=committed,
            log_start_offset=log.log_start_offset,
        )
        if item.fetch_offset < committed and (limit > 0 or at_least_one):
            answer.records = log.read(item.fetch_offset, limit, committed, at_least_one)
        return answer
