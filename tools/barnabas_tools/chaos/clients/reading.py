"""Consumers that record every poll: one with partitions of its own, and a member of a group."""

import asyncio
from collections.abc import Iterable, Sequence

from barnabas import Consumer, ConsumerRecord, RebalanceListener
from barnabas.consumer.config import ConsumerOptions
from barnabas_common.errors import BarnabasError
from barnabas_common.history.operations import Assign, Commit, Poll, Records, Revoke, Stage
from barnabas_common.history.recorder import Recorder
from barnabas_common.topic_partition import TopicPartition

RETRY_SECONDS = 0.5
POLL_MS = 500


def as_records(polled: Iterable[ConsumerRecord]) -> Records:
    """Return records as a history has them."""
    found: Records = {}
    for record in polled:
        value = (record.value or b"").decode(errors="backslashreplace")
        found.setdefault(str(record.topic_partition), []).append((record.offset, value))
    return found


class Reading:
    """Reads along from the beginning of its partitions."""

    def __init__(
        self,
        recorder: Recorder,
        bootstrap: str,
        partitions: Sequence[TopicPartition],
        options: ConsumerOptions,
    ) -> None:
        self._recorder = recorder
        self._bootstrap = bootstrap
        self._partitions = partitions
        self._options: ConsumerOptions = {"auto_offset_reset": "earliest", **options}
        self._is_committed = options.get("isolation_level") == "read_committed"

    async def run(self, stop: asyncio.Event) -> None:
        """Read until `stop` is set, from the beginning again after an error."""
        while not stop.is_set():
            try:
                async with Consumer(bootstrap_servers=self._bootstrap, **self._options) as consumer:
                    consumer.assign(self._partitions)
                    names = [str(partition) for partition in self._partitions]
                    self._recorder.note(Assign, partitions=names)
                    while not stop.is_set():
                        self._polled(await consumer.poll(timeout_ms=POLL_MS))
            except BarnabasError:
                await asyncio.sleep(RETRY_SECONDS)

    def _polled(self, polled: Sequence[ConsumerRecord]) -> None:
        if polled:
            records = as_records(polled)
            self._recorder.note(Poll, records=records, read_committed=self._is_committed)


class Member:
    """A member of a group, which commits what it was given, when it has worked on it.

    It commits itself, so that every commit is recorded.
    """

    def __init__(
        self,
        recorder: Recorder,
        bootstrap: str,
        topics: Sequence[str],
        group: str,
        options: ConsumerOptions,
        commit_seconds: float = 1.0,
    ) -> None:
        self._recorder = recorder
        self._bootstrap = bootstrap
        self._topics = topics
        self._group = group
        self._options: ConsumerOptions = {
            "auto_offset_reset": "earliest",
            "client_id": recorder.client,
            **options,
            "group_id": group,
            "enable_auto_commit": False,
        }
        self._is_committed = options.get("isolation_level") == "read_committed"
        self._commit_seconds = commit_seconds
        self.done: dict[TopicPartition, int] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Be a member until `stop` is set, again after an error."""
        while not stop.is_set():
            self.done.clear()
            try:
                async with Consumer(bootstrap_servers=self._bootstrap, **self._options) as consumer:
                    consumer.subscribe(self._topics, _Listener(self, consumer))
                    await self._work(stop, consumer)
            except BarnabasError:
                await asyncio.sleep(RETRY_SECONDS)

    async def _work(self, stop: asyncio.Event, consumer: Consumer) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._commit_seconds
        while not stop.is_set():
            polled = await consumer.poll(timeout_ms=POLL_MS)
            if polled:
                self._recorder.note(
                    Poll,
                    records=as_records(polled),
                    group=self._group,
                    read_committed=self._is_committed,
                )
            for record in polled:
                self.done[record.topic_partition] = record.offset + 1
            if loop.time() >= due:
                await self.commit(consumer)
                due = loop.time() + self._commit_seconds
        await self.commit(consumer)

    async def commit(self, consumer: Consumer) -> None:
        """Commit what was done; an error leaves it open whether it is stored."""
        if not self.done:
            return
        offsets = {str(partition): offset for partition, offset in self.done.items()}
        commit = self._recorder.begin(Commit, group=self._group, offsets=offsets)
        try:
            await consumer.commit(self.done)
        except BarnabasError as error:
            self._recorder.end(commit, Stage.INFO, error=type(error).__name__)
        else:
            self._recorder.end(commit)
            self.done.clear()

    def assigned(self, partitions: Sequence[TopicPartition]) -> None:
        names = [str(partition) for partition in partitions]
        self._recorder.note(Assign, partitions=names, group=self._group)

    def revoked(self, partitions: Sequence[TopicPartition], lost: bool) -> None:
        names = [str(partition) for partition in partitions]
        self._recorder.note(Revoke, partitions=names, group=self._group, lost=lost)
        for partition in partitions:
            self.done.pop(partition, None)


class _Listener(RebalanceListener):
    def __init__(self, member: Member, consumer: Consumer) -> None:
        self._member = member
        self._consumer = consumer

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._member.assigned(partitions)

    async def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        await self._member.commit(self._consumer)
        self._member.revoked(partitions, lost=False)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._member.revoked(partitions, lost=True)
