"""What the driver asks the cluster: which partitions there are, and where they start and end."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from barnabas import Consumer
from barnabas.cluster.metadata import TopicInfo
from barnabas_common.errors import BarnabasError, UnknownTopicOrPartitionError
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from pyspark_barnabas.options import Limit, ReadOptions
from pyspark_barnabas.reading.bounds import Bounds, resolve, timestamps_of

logger = logging.getLogger(__name__)

T = TypeVar("T")

_API_TIMEOUT_MS = ("default_api_timeout_ms", 60_000)
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True)
class Assigned:
    """The partitions that a query reads, and the ids of their topics."""

    partitions: tuple[TopicPartition, ...]
    topic_ids: Mapping[str, str]


class OffsetReader:
    """One client of the driver, for one plan or for a whole stream."""

    def __init__(self, options: ReadOptions, runtime: Runtime | None = None) -> None:
        self._options = options
        self._consumer = Consumer(
            bootstrap_servers=options.bootstrap_servers,
            allow_auto_create_topics=False,
            runtime=runtime,
            **options.consumer,
        )

    async def __aenter__(self) -> "OffsetReader":
        await self._consumer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._consumer.close()

    async def assigned(self) -> Assigned:
        """The partitions that the options name.

        Raises `UnknownTopicOrPartitionError` if one does not exist.
        """
        found = await self.existing()
        self.check_all_exist(found)
        return found

    def check_all_exist(self, found: Assigned) -> None:
        """Raise `UnknownTopicOrPartitionError` if the options name a partition that is not in
        `found`."""
        existing = set(found.partitions)
        for topic, wanted in self._options.topics.items():
            if topic not in found.topic_ids:
                raise UnknownTopicOrPartitionError(f"topic {topic!r} does not exist")
            for partition in wanted or ():
                if TopicPartition(topic, partition) not in existing:
                    raise UnknownTopicOrPartitionError(
                        f"assign: {topic} has no partition {partition}"
                    )

    async def existing(self, known: Iterable[str] = ()) -> Assigned:
        """Those of the partitions that the options name which exist.

        `known`: topics that a pattern matched before; a broker that has just started may not list
        them yet.
        """
        topics = await self._repeated(lambda: self._topics(known))
        partitions = []
        for topic in sorted(topics):
            wanted = self._options.topics.get(topic)
            count = topics[topic].partition_count
            partitions += [
                TopicPartition(topic, p)
                for p in (range(count) if wanted is None else wanted)
                if p < count
            ]
        return Assigned(tuple(partitions), {t: info.topic_id for t, info in topics.items()})

    async def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        if not wanted:
            return {}
        return await self._repeated(lambda: self._consumer.beginning_offsets(wanted))

    async def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The high watermarks, or with `read_committed` the last stable offsets."""
        wanted = list(partitions)
        if not wanted:
            return {}
        return await self._repeated(lambda: self._consumer.end_offsets(wanted))

    async def bounds(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Bounds]:
        wanted = list(partitions)
        earliest, latest = await self.earliest(wanted), await self.latest(wanted)
        return {tp: Bounds(earliest[tp], latest[tp]) for tp in wanted}

    async def at_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]:
        """The first offset whose record has the timestamp or a later one; None without one."""
        if not timestamps:
            return {}
        found = await self._repeated(lambda: self._consumer.offsets_for_times(timestamps))
        return {tp: None if listed is None else listed.offset for tp, listed in found.items()}

    async def resolved(
        self, limit: Limit, bounds: Mapping[TopicPartition, Bounds]
    ) -> dict[TopicPartition, int]:
        """The offset of the limit in each partition; raises as `resolve`."""
        times = await self.at_times(timestamps_of(limit, bounds))
        return resolve(limit, bounds, times, self._options.fail_on_data_loss)

    async def _topics(self, known: Iterable[str]) -> dict[str, TopicInfo]:
        if self._options.pattern is None:
            return await self._consumer.list_topics(self._options.topics)
        matches = re.compile(self._options.pattern).fullmatch
        listed = await self._consumer.list_topics()
        missing = [topic for topic in known if topic not in listed and matches(topic)]
        listed |= await self._consumer.list_topics(missing) if missing else {}
        return {t: info for t, info in listed.items() if matches(t) and not info.is_internal}

    async def _repeated(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer: as often as `fetchOffset.numRetries` allows, and at least
        for `kafka.default.api.timeout.ms`, in which Kafka's client tries again by itself."""
        deadline = time.monotonic() + self._options.consumer.get(*_API_TIMEOUT_MS) / 1000
        pause = max(self._options.offset_retry_interval_ms / 1000, _PAUSE_SECONDS)
        retries_left = self._options.offset_retries
        while True:
            try:
                return await ask()
            except UnknownTopicOrPartitionError:
                raise  # the client has waited for the topic already
            except BarnabasError as error:
                if not error.retriable or (retries_left <= 0 and time.monotonic() >= deadline):
                    raise
                logger.warning("offsets could not be fetched, will try again: %s", error)
            retries_left -= 1
            await asyncio.sleep(pause)
