"""Consume, transform, produce: each record of the input has its effect exactly once.

    async with consumer, producer:
        await exactly_once(consumer, producer, transform)

A transaction has the results of one poll, and the offsets behind it. Both are committed, or none:
then the same records are read again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from inspect import isawaitable
from typing import Any, NamedTuple
from weakref import WeakSet

from barnabas_common.errors import (
    BarnabasError,
    BufferExhaustedError,
    ClosedError,
    DeliveryTimeoutError,
    InvalidArgumentError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    OutOfOrderSequenceNumberError,
    RequestTimedOutError,
    TransactionAbortableError,
    UnknownProducerIdError,
)
from barnabas_common.messages.groups import KAFKA_STORAGE
from barnabas_common.record.record import Headers
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster.options import check_callable, check_timeout
from barnabas.consumer import CommitFailedError, Consumer, ConsumerRecord, OffsetAndMetadata
from barnabas.producer import Producer

logger = logging.getLogger(__name__)

# The same records may succeed in another transaction.
_PASSING = (
    BufferExhaustedError,
    CommitFailedError,
    DeliveryTimeoutError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    OutOfOrderSequenceNumberError,
    TransactionAbortableError,
    UnknownProducerIdError,
)


# Of loops that ended without knowing whether their last transaction was committed.
_undecided: WeakSet[Consumer] = WeakSet()


class ProducerRecord(NamedTuple):
    """A record to send, with the arguments of `Producer.send`."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Headers = ()


Results = Iterable[ProducerRecord]
Transform = Callable[[ConsumerRecord], Results | Awaitable[Results]]
TransformAll = Callable[[Sequence[ConsumerRecord]], Awaitable[Results]]


async def exactly_once(
    consumer: Consumer, producer: Producer, transform: Transform, idle_ms: int | None = None
) -> int:
    """Send what `transform` makes of each record that the consumer reads; returns how many it read.

    Ends when no record comes for `idle_ms`, when the consumer is closed, or with an error: what
    `transform` raises, what makes the results impossible to send, or a fatal error of the producer.
    The consumer is then where the last committed transaction ended, also if the loop was cancelled.

    The consumer needs a group, `enable_auto_commit=False` and `isolation_level="read_committed"`;
    the producer a `transactional_id` of its own.
    """

    async def transform_all(records: Sequence[ConsumerRecord]) -> Results:
        results: list[ProducerRecord] = []
        for record in records:
            result = transform(record)
            results.extend(checked_results(await result if isawaitable(result) else result))
        return results

    check_callable("transform", transform)
    return await run(consumer, producer, transform_all, idle_ms)


def check_kind(client: object, kind: type) -> None:
    """Raise `InvalidArgumentError` unless the client is of this class."""
    if not isinstance(client, kind):
        raise InvalidArgumentError(f"exactly_once needs a {kind.__name__}, not {client!r}")


def checked_results(results: object) -> list[ProducerRecord]:
    """What `transform` returned; raises `InvalidArgumentError` unless it is several records."""
    found: list[Any] = list(results) if isinstance(results, Iterable) else [results]
    for result in found:
        if not isinstance(result, tuple) or not 2 <= len(result) <= len(ProducerRecord._fields):
            raise InvalidArgumentError(
                f"transform returns several ProducerRecord(...), not {results!r:.200}"
            )
    return found


async def run(
    consumer: Consumer, producer: Producer, transform_all: TransformAll, idle_ms: int | None
) -> int:
    """`exactly_once`, with a function that transforms all records of a poll."""
    check_timeout("idle_ms", idle_ms)
    check_kind(consumer, Consumer)
    check_kind(producer, Producer)
    config = consumer.group_config
    if config.auto_commit_interval is not None:
        raise InvalidArgumentError(
            "exactly_once needs a consumer with enable_auto_commit=False: "
            "its offsets are committed with the transaction"
        )
    if config.offsets_storage != KAFKA_STORAGE:
        raise InvalidArgumentError(
            'exactly_once needs a consumer with offsets_storage="kafka": '
            "ZooKeeper takes part in no transaction"
        )
    if not consumer.reads_committed:
        raise InvalidArgumentError(
            'exactly_once needs a consumer with isolation_level="read_committed": '
            "the results of records that are aborted would stay"
        )
    if not producer.initialized:
        await _until_decided(producer.init_transactions)
    await _settle(consumer, producer)
    read = failures = 0
    while True:
        try:
            records = await consumer.poll(timeout_ms=idle_ms)
        except ClosedError:
            return read
        if not records and idle_ms is not None:
            return read
        failure = await _copy(consumer, producer, records, transform_all) if records else None
        if failure is None:
            read += len(records)
            failures = 0
            continue
        failures += 1
        logger.warning("a transaction was aborted, its records are read again: %s", failure)
        await asyncio.sleep(producer.backoff_seconds(failures))


async def _copy(
    consumer: Consumer,
    producer: Producer,
    records: Sequence[ConsumerRecord],
    transform_all: TransformAll,
) -> BarnabasError | None:
    """One transaction; returns why it was aborted if another attempt may succeed."""
    committed = False
    try:
        async with producer.transaction():
            group = consumer.group_metadata()
            for result in await transform_all(records):
                await producer.send(*result)
            offsets = {r.topic_partition: _after(r) for r in records}
            await _until_decided(lambda: producer.send_offsets_to_transaction(offsets, group))
            try:
                await _noting(consumer, _until_decided(producer.commit_transaction))
            except asyncio.CancelledError:
                committed = await _has_committed(consumer, producer)
                raise
    except BaseException as error:
        if not committed:
            _rewind(consumer, records)
        if not isinstance(error, _PASSING):
            raise
        while producer.in_transaction:  # the abort has timed out
            await _until_decided(producer.abort_transaction)
        return error
    return None


async def _has_committed(consumer: Consumer, producer: Producer) -> bool:
    """Whether a commit that its caller no longer waits for succeeds: it says where to read on.

    Waits as long as an abort would; for an outcome that is not known then see `_settle`.
    """
    try:
        await _noting(consumer, producer.commit_transaction())
    except BarnabasError as error:
        logger.warning("a loop was cancelled while it committed: %s", error)
        return False
    return True


async def _noting(consumer: Consumer, commit: Awaitable[None]) -> None:
    """Commit, and note that the outcome is not known until it is."""
    _undecided.add(consumer)
    try:
        await commit
    except BarnabasError as error:
        if not error.fatal and not isinstance(error, RequestTimedOutError):
            _undecided.discard(consumer)
        raise
    _undecided.discard(consumer)


async def _settle(consumer: Consumer, producer: Producer) -> None:
    """Wait for what an earlier loop, which was cancelled, did not wait for. If it has committed,
    the consumer reads on behind that: it was taken back."""
    assert producer.transactions is not None
    try:
        await _until_decided(producer.transactions.settle)
    except BarnabasError as error:
        if error.fatal:
            raise
        while producer.in_transaction:
            await _until_decided(producer.abort_transaction)
    if consumer in _undecided:
        for partition, committed in (await consumer.committed()).items():
            if committed is not None and committed.offset > await consumer.position(partition):
                consumer.seek(partition, committed.offset)
        _undecided.discard(consumer)


def _after(record: ConsumerRecord) -> OffsetAndMetadata:
    return OffsetAndMetadata(record.offset + 1, "", record.leader_epoch)


def _rewind(consumer: Consumer, records: Sequence[ConsumerRecord]) -> None:
    """Read the records again, if their partitions are still this consumer's."""
    first: dict[TopicPartition, int] = {}
    for record in records:
        first.setdefault(record.topic_partition, record.offset)
    with suppress(ClosedError):
        for partition in consumer.assignment():
            if partition in first:
                consumer.seek(partition, first[partition])


async def _until_decided(call: Callable[[], Awaitable[None]]) -> None:
    """Call until the outcome is known."""
    while True:
        try:
            return await call()
        except RequestTimedOutError as error:
            logger.warning("%s", error)
