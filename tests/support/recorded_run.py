"""A run of real clients against a real cluster, all of them recorded, and judged at the end."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from barnabas.consumer.config import ConsumerOptions
from barnabas.producer.config import ProducerOptions
from barnabas_common.history.checker import Judgement, check
from barnabas_common.history.files import HistoryWriter, history_files, read_files
from barnabas_common.history.promise import Promise
from barnabas_common.history.recorder import Recorder
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.chaos.clients.final_read import ask_for_commits, read_finally
from barnabas_tools.chaos.clients.observing import observe
from barnabas_tools.chaos.clients.producing import Producing
from barnabas_tools.chaos.clients.reading import Member, Reading

PRODUCER: ProducerOptions = {"retry_backoff_ms": 50, "metadata_max_age_ms": 2_000}
CONSUMER: ConsumerOptions = {"metadata_max_age_ms": 2_000}


class RecordedRun:
    """One producer, one reader and two members of a group, of one topic."""

    def __init__(
        self, folder: Path, bootstrap: str, topic: str, partitions: int, options: ProducerOptions
    ) -> None:
        self.folder = folder
        self.bootstrap = bootstrap
        self.partitions = [TopicPartition(topic, number) for number in range(partitions)]
        self.group = f"group-of-{topic}"
        self._writers: list[HistoryWriter] = []
        self._stop = asyncio.Event()
        self.producing = Producing(
            self.recorder("producer"), bootstrap, self.partitions, {**PRODUCER, **options}
        )
        self._clients = [
            self.producing.run,
            Reading(self.recorder("reader"), bootstrap, self.partitions, CONSUMER).run,
        ]
        for name in ("member-1", "member-2"):
            member = Member(self.recorder(name), bootstrap, [topic], self.group, CONSUMER, 0.3)
            self._clients.append(member.run)

    def recorder(self, client: str) -> Recorder:
        writer = HistoryWriter(self.folder / f"{client}.1.jsonl")
        self._writers.append(writer)
        return Recorder(writer.write, time.monotonic_ns, client)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["RecordedRun"]:
        """Run the clients for the block, and wait until they have ended."""
        async with asyncio.TaskGroup() as tasks:
            started = [tasks.create_task(run(self._stop)) for run in self._clients]
            watching = self.recorder("observer")
            topics = [self.partitions[0].topic]
            tasks.create_task(observe(watching, self.bootstrap, topics, self._stop))
            try:
                yield self
            finally:
                self._stop.set()
            await asyncio.gather(*started)

    async def begun_more(self, count: int, within: float = 60.0) -> None:
        """Wait until `count` sends that begin from now on are in the history of each partition.

        The recorder writes each before the producer has it, whatever becomes of it.
        """
        await self._counted_more(self.producing.sent, count, within)

    async def acknowledged_more(self, count: int, within: float = 60.0) -> None:
        """Wait until `count` records that are sent from now on are acknowledged in each partition.

        What was sent before may lie in replicas that are dead by now.
        """
        await self._counted_more(self.producing.acknowledged, count, within)

    async def _counted_more(
        self, counts: dict[TopicPartition, int], count: int, within: float
    ) -> None:
        goal = {tp: begun + count for tp, begun in self.producing.sent.items()}
        async with asyncio.timeout(within):
            while any(counts[tp] < least for tp, least in goal.items()):
                await asyncio.sleep(0.02)

    async def judged(self, promise: Promise, within: float = 60.0) -> Judgement:
        """Read everything, and judge what all files say."""
        judge = self.recorder("judge")
        highest = {tp: found - 1 for tp, found in self.producing.acknowledged.items()}
        await read_finally(judge, self.bootstrap, self.partitions, highest, CONSUMER, within)
        await ask_for_commits(judge, self.bootstrap, [self.group])
        for writer in self._writers:
            writer.close()
        return check(read_files(history_files(self.folder)), promise)
