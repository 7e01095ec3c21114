"""The topic of decisions: compacted, replicated, and read to its end before anything is decided.

It is read with `read_committed`, so a decision is seen once it counts. What was read is kept for
the next task of the same process, which reads on from there.
"""

import asyncio
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from barnabas import Admin, Consumer
from barnabas_common.record.murmur2 import partition_for_key
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from pyspark_barnabas.writing import decisions_topic
from pyspark_barnabas.writing.decisions_topic import DecisionsTopicError
from pyspark_barnabas.writing.options import WriteOptions
from pyspark_barnabas.writing.records import JobState, apply

_POLL_MS = 200
_PATIENCE_SECONDS = 120


@dataclass
class _Read:
    """What one process has read of one partition."""

    position: int = 0
    states: dict[str, JobState] = field(default_factory=dict)


# By bootstrap servers, topic id and partition: a topic created again has the same name.
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
            await self._open()
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
        end = max(await self._end(), beyond + 1)
        read = self._cache[self._name]
        if read.position > end:  # an unclean election has cut the log
            read = self._cache[self._name] = _Read()
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
                except ValueError as error:
                    raise DecisionsTopicError(
                        f"{self.partition}: the record at offset {record.offset} is not one of the"
                        f" sink ({error!r}): choose another decisionsTopic"
                    ) from error
            read.position = await self._consumer.position(self.partition)

    async def _end(self) -> int:
        return (await self._consumer.end_offsets([self.partition]))[self.partition]

    async def _open(self) -> None:
        topic = self._options.decisions_topic
        number = partition_for_key(self._job.encode(), decisions_topic.PARTITIONS)
        self.partition = TopicPartition(topic, number)
        self._reason = "no answer"
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                self._name = (self._options.bootstrap_servers, await self._topic_id(topic), number)
                if self._name not in self._cache:
                    async with self._admin() as admin:
                        await decisions_topic.check(admin, topic)
                    self._cache[self._name] = _Read()
        except TimeoutError:
            raise DecisionsTopicError(
                f"{topic}: it cannot be created, or no broker knows it yet: {self._reason}"
            ) from None
        start = (await self._consumer.beginning_offsets([self.partition]))[self.partition]
        if start:
            raise DecisionsTopicError(
                f"{self.partition}: the records before offset {start} were deleted, and decisions"
                " with them: choose another decisionsTopic"
            )
        self._consumer.assign([self.partition])

    async def _topic_id(self, topic: str) -> str:
        """Creates the topic if need be; another task may be creating it just now."""
        while (info := (await self._consumer.list_topics([topic])).get(topic)) is None:
            async with self._admin() as admin:
                self._reason = await decisions_topic.create(admin, topic) or self._reason
            await asyncio.sleep(_POLL_MS / 1000)
        return info.topic_id

    def _admin(self) -> Admin:
        return Admin(self._options.bootstrap_servers, runtime=self._runtime)
