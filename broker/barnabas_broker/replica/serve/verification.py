"""A leader asks a transaction's coordinator before it appends the first batch (KIP-890).

A batch may arrive after the end of its transaction. Appended then, it would begin a transaction
that its coordinator does not know and so never ends: the last stable offset would stay there.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from barnabas_common.errors import KafkaError, error_for
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.record.batch import (
    BatchHeader,
    CorruptBatch,
    parse_header,
)
from barnabas_common.runtime import Clock
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.producers.verification import NOT_NEEDED, VerificationGuard
from barnabas_broker.replica.partition.partitions import Partitions

# A client may repeat these; some would not know them, and NOT_ENOUGH_REPLICAS they all repeat.
_RETRIABLE = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Unverified(NamedTuple):
    """The partitions to which a producer sends the first batch of its transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Sequence[TopicPartition]


AskCoordinator = Callable[[Unverified, float], Awaitable[Mapping[TopicPartition, ErrorCode]]]
"""What the coordinator says about each partition, NONE if it is part of the transaction. The second
argument is the timeout in s."""


async def no_coordinator(
    unverified: Unverified, _timeout: float
) -> Mapping[TopicPartition, ErrorCode]:
    """The answer while no coordinator is known."""
    return dict.fromkeys(unverified.partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class Verified(NamedTuple):
    """`guards` are for the appends that may begin a transaction; `errors` are of the others."""

    guards: Mapping[TopicPartition, VerificationGuard]
    errors: Mapping[TopicPartition, KafkaError]

    def guard_for(self, key: TopicPartition) -> VerificationGuard | None:
        """Raises KafkaError if the coordinator did not confirm the transaction."""
        if key in self.errors:
            raise self.errors[key]
        return self.guards.get(key)


class TransactionVerification:
    """`is_enabled` reads `transaction.partition.verification.enable`."""

    def __init__(
        self,
        partitions: Partitions,
        clock: Clock,
        ask: AskCoordinator,
        is_enabled: Callable[[], bool],
    ) -> None:
        self._partitions = partitions
        self._clock = clock
        self._ask = ask
        self._is_enabled = is_enabled

    async def verify(self, request: ProduceRequest) -> Verified:
        """Ask about all partitions of the request that have no batch of its transaction yet."""
        guards: dict[TopicPartition, VerificationGuard] = {}
        producers: dict[tuple[int, int], list[TopicPartition]] = {}
        now_ms = self._clock.wall_ms()
        for item in request.partitions:
            key = TopicPartition(item.topic, item.partition)
            header = _header_of(item)
            guard = None if header is None else self._guard(key, header, now_ms)
            if header is not None and guard is not None:
                guards[key] = guard
                producer = (header.producer_id, header.producer_epoch)
                producers.setdefault(producer, []).append(key)
        if not guards or not self._is_enabled():
            return Verified(dict.fromkeys(guards, NOT_NEEDED), {})
        errors: dict[TopicPartition, KafkaError] = {}
        timeout = request.timeout_ms / 1000
        for producer, keys in producers.items():
            unverified = Unverified(request.transactional_id, *producer, keys)
            answers = await self._ask(unverified, timeout)
            for key in keys:
                error = answers.get(key, ErrorCode.UNKNOWN_SERVER_ERROR)
                if error:
                    errors[key] = _refusal(error)
        return Verified(guards, errors)

    def _guard(
        self, key: TopicPartition, header: BatchHeader, now_ms: int
    ) -> VerificationGuard | None:
        try:
            log = self._partitions.hosted(key).lead().log
        except KafkaError:  # the append will say so
            return None
        return log.producers.verification_for(header, now_ms)


def _header_of(item: ProducePartition) -> BatchHeader | None:
    """The header of the first batch, if it is a producer's batch of a transaction."""
    try:
        header = parse_header(item.records)
    except CorruptBatch:  # the append will say so
        return None
    is_client = header.is_transactional and not header.is_control and header.producer_id >= 0
    return header if is_client else None


def _refusal(error: ErrorCode) -> KafkaError:
    if error in _RETRIABLE:
        return error_for(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"the transaction of the batch cannot be verified now: {error.name}",
        )
    if error is ErrorCode.PRODUCER_FENCED:
        return error_for(ErrorCode.INVALID_PRODUCER_EPOCH, "the coordinator has a newer epoch")
    return error_for(error, "the partition is not part of an open transaction of the producer")
