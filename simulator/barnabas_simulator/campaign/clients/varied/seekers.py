"""Consumers that go back, to times, to the beginning and to the end, in small steps, and that start
again from where they were."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from barnabas import Admin, Consumer
from barnabas_common.errors import OffsetOutOfRangeError
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.clients.factory import RETRY_SECONDS
from barnabas_simulator.campaign.clients.processes import run_as
from barnabas_simulator.campaign.clients.varied.run import VariedRun
from barnabas_simulator.labels import label_of
from barnabas_simulator.loop import VirtualClock

ACTS = {"poll": 12, "go back": 2, "to the beginning": 1, "to the end": 1, "to a time": 2,
        "start again": 1}  # fmt: skip
PAUSE_SECONDS = 0.5
QUESTIONS_AT_REST = 3


@dataclass(frozen=True)
class Asked:
    """A question for the first offset at or after a time; `offset` is -1 if there was none.
    `at_rest`: once all faults were over, and nothing was sent any more."""

    partition: TopicPartition
    timestamp: int
    offset: int
    at_rest: bool


@dataclass(frozen=True)
class Step:
    """A reader whose position was `expected` got `offset` next; -1 if it was not known."""

    partition: TopicPartition
    expected: int
    offset: int


@dataclass
class Journal:
    """What seekers have seen: each step that was not to the very next offset, and each answer about
    a time."""

    steps: list[Step] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)


class Seekers:
    """They read the topic that all others use; `journal` is for the judge."""

    def __init__(self, run: VariedRun, partitions: Sequence[TopicPartition]) -> None:
        self._run = run
        self._partitions = partitions[: run.options.partitions]
        self.journal = Journal()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def hosts(self) -> list[str]:
        return [f"seeker-{number}" for number in range(self._run.options.seekers)]

    async def create_topics(self, admin: Admin) -> None:
        """They read another's topic."""

    def start(self) -> None:
        for name in self.hosts:
            seeker = _Seeker(name, self._run, self._partitions, self.journal)
            self._tasks.append(run_as(name, self._run.again_and_again(name, seeker.live)))

    async def finish(self) -> None:
        """They read until the end."""

    def tasks(self) -> list[asyncio.Task[None]]:
        return self._tasks

    async def read_back(self, bootstrap: str) -> None:
        """Ask for times once more, now that all can be known."""
        name, chance = self.hosts[0], self._run.chance("times at rest")
        began, now = VirtualClock().start_ms, VirtualClock().wall_ms()
        async with self._run.consumer(name, bootstrap) as consumer:
            for _ in range(QUESTIONS_AT_REST):
                at = chance.randint(began, now)
                await _ask(consumer, dict.fromkeys(self._partitions, at), self.journal, True)


async def _ask(
    consumer: Consumer, times: dict[TopicPartition, int], journal: Journal, at_rest: bool
) -> dict[TopicPartition, int]:
    answers = await consumer.offsets_for_times(times)
    found = {tp: -1 if answer is None else answer.offset for tp, answer in answers.items()}
    journal.asked += [Asked(tp, times[tp], offset, at_rest) for tp, offset in found.items()]
    return found


class _Seeker:
    """`_expected` is the next offset of each partition, -1 if the consumer alone knows."""

    def __init__(
        self,
        name: str,
        run: VariedRun,
        partitions: Sequence[TopicPartition],
        journal: Journal,
    ) -> None:
        self._name = name
        self._run = run
        self._partitions = partitions
        self._journal = journal
        self._chance: random.Random = run.chance(name)
        self._expected = dict.fromkeys(partitions, 0)
        self._acts: dict[str, Callable[[Consumer], Awaitable[None]]] = {
            "poll": self._poll,
            "go back": self._go_back,
            "to the beginning": self._to_the_beginning,
            "to the end": self._to_the_end,
            "to a time": self._to_a_time,
        }

    async def live(self) -> None:
        """One consumer, until it is to start again: then the next goes on where this one was."""
        pick = self._chance.choice
        consumer = self._run.consumer(
            self._name,
            auto_offset_reset="none",
            max_poll_records=pick([1, 2, 3]),
            fetch_max_bytes=pick([100, 300, 2_000]),
            max_partition_fetch_bytes=pick([100, 1_000]),
            fetch_max_wait_ms=pick([100, 500]),
        )
        async with consumer:
            consumer.assign(self._partitions)
            for partition, offset in self._expected.items():
                consumer.seek(partition, max(offset, 0))
                self._expected[partition] = max(offset, 0)
            while True:
                await asyncio.sleep(PAUSE_SECONDS * self._chance.random())
                (act,) = self._chance.choices(list(ACTS), list(ACTS.values()))
                self._run.counts[f"seeker: {act}"] += 1
                if act == "start again":
                    return
                try:
                    await self._acts[act](consumer)
                except OffsetOutOfRangeError as error:  # a deposed leader has less
                    self._run.told(self._name, error)
                    await asyncio.sleep(RETRY_SECONDS)
                    return

    async def _poll(self, consumer: Consumer) -> None:
        for record in await consumer.poll(timeout_ms=500):
            tp = record.topic_partition
            if record.offset != self._expected[tp]:
                self._journal.steps.append(Step(tp, self._expected[tp], record.offset))
            self._expected[tp] = record.offset + 1
            self._run.invariants.consumed(tp, record.offset, label_of(record))

    async def _go_back(self, consumer: Consumer) -> None:
        partition = self._chance.choice(self._partitions)
        position = await consumer.position(partition)
        self._seek(consumer, partition, self._chance.randint(max(0, position - 20), position))

    async def _to_the_beginning(self, consumer: Consumer) -> None:
        partition = self._chance.choice(self._partitions)
        await consumer.seek_to_beginning(partition)
        self._expected[partition] = 0

    async def _to_the_end(self, consumer: Consumer) -> None:
        partition = self._chance.choice(self._partitions)
        await consumer.seek_to_end(partition)
        self._expected[partition] = -1

    async def _to_a_time(self, consumer: Consumer) -> None:
        partition = self._chance.choice(self._partitions)
        now = VirtualClock().wall_ms()
        asked = {partition: now - self._chance.choice([0, 500, 5_000, 60_000])}
        offset = (await _ask(consumer, asked, self._journal, False))[partition]
        if offset >= 0:
            self._seek(consumer, partition, offset)

    def _seek(self, consumer: Consumer, partition: TopicPartition, offset: int) -> None:
        consumer.seek(partition, offset)
        self._expected[partition] = offset
