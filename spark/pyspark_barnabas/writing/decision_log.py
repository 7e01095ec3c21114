"""The topic of decisions: compacted, replicated, and read to its end before anything is decided.

It is read with `read_committed`, so a decision is seen once it counts. What was read is kept for
the next task of the same process, which reads on from there.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from barnabas import Admin, Consumer
from barnabas_common.errors import (
    InvalidReplicationFactorError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.record.murmur2 import partition_for_key
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from pyspark_barnabas.writing.options import WriteOptions
from pyspark_barnabas.writing.records import JobState, apply

_PARTITIONS = 16
# A decision is kept as safely as the transactions that follow from it.
_REPLICAS = "transaction.state.log.replication.factor"
_IN_SYNC = "transaction.state.log.min.isr"
_POLL_MS = 200
_PATIENCE_SECONDS = 120
_CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "16777216",
    "segment.ms": "3600000",
    # The first of several claims in a batch counts, so none may be removed while it matters.
    "min.compaction.lag.ms": "3600000",
}


class DecisionsTopicError(RuntimeError):
    """The topic of decisions cannot be read, or holds something else."""


@dataclass
class _Read:
    """What one process has read of one partition."""

    position: int = 0
    states: dict[str, JobState] = field(default_factory=dict)


Cache = dict[tuple[str, str, int], _Read]
_CACHE: Cache = {}


class DecisionLog:
    """The records of one job; `runtime` and `cache` replace those of the process (tests)."""

    def __init__(
        self,
        options: WriteOptions,
        job: str,
        runtime: Runtime | None = None,
        cache: Cache | None = None,
    ) -> None:
        self._options = options
        self._job = job
        self._runtime = runtime
        self._cache = _CACHE if cache is None else cache
        self._consumer = Consumer(
            bootstrap_servers=options.bootstrap_servers,
            runtime=runtime,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
        )

    async def __aenter__(self) -> Self:
        await self._consumer.start()
        try:
            self.partition = await self._partition_of_job()
            self._consumer.assign([self.partition])
        except BaseException:
            await self._consumer.close()
            raise
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._consumer.close()

    async def read(self, beyond: int = -1) -> JobState:
        """The job as all records say that are committed now, `beyond` this offset at least."""
        name = (self._options.bootstrap_servers, *self.partition)
        end = max(await self._end(), beyond + 1)
        read = self._cache.setdefault(name, _Read())
        if read.position > end:  # the topic is another one of the same name
            read = self._cache[name] = _Read()
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._read_to(end, read)
        except TimeoutError:
            raise DecisionsTopicError(
                f"{self.partition}: read up to offset {read.position} of {end} in"
                f" {_PATIENCE_SECONDS} s; what is decided is not known"
            ) from None
        return read.states.setdefault(self._job, JobState())

    async def _read_to(self, end: int, read: _Read) -> None:
        self._consumer.seek(self.partition, read.position)
        while read.position < end:
            for record in await self._consumer.poll(timeout_ms=_POLL_MS):
                try:
                    apply(read.states, record.key, record.value)
                except (ValueError, LookupError, TypeError) as error:
                    raise DecisionsTopicError(
                        f"{self.partition}: the record at offset {record.offset} is not one of the"
                        f" sink ({error!r}): choose another decisionsTopic"
                    ) from error
            read.position = await self._consumer.position(self.partition)

    async def _end(self) -> int:
        return (await self._consumer.end_offsets([self.partition]))[self.partition]

    async def _partition_of_job(self) -> TopicPartition:
        topic = self._options.decisions_topic
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                count = await self._partition_count(topic)
        except TimeoutError:
            raise DecisionsTopicError(
                f"{topic}: it cannot be created, or no broker knows it yet"
            ) from None
        return TopicPartition(topic, partition_for_key(self._job.encode(), count))

    async def _partition_count(self, topic: str) -> int:
        """Creates the topic if need be; another task may be creating it just now."""
        while True:
            try:
                return len(await self._consumer.partitions_for(topic))
            except UnknownTopicOrPartitionError:
                await self._create_topic()
                await asyncio.sleep(_POLL_MS / 1000)

    async def _create_topic(self) -> None:
        options = self._options
        async with Admin(options.bootstrap_servers, runtime=self._runtime) as admin:
            broker = (await admin.describe_cluster()).brokers[0].broker_id
            settings = {s.name: s.value for s in await admin.describe_broker_configs(broker)}
            replicas = int(settings[_REPLICAS])
            configs = _CONFIGS | {"min.insync.replicas": settings[_IN_SYNC]}
            # Another task was first, or brokers are missing that will be back.
            with suppress(TopicAlreadyExistsError, InvalidReplicationFactorError):
                await admin.create_topic(
                    options.decisions_topic, _PARTITIONS, replicas, configs=configs
                )
