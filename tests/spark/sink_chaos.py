"""The parts of the sink's chaos test: a feeder with transactions, a query, its checkpoint."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from random import Random

from barnabas import Consumer, Producer, TopicPartition
from barnabas.errors import BarnabasError

from tests.spark.standalone import SHORT_LIFE, SUBMIT

JOB = Path(__file__).with_name("copy_job.py")
Ends = dict[str, int]
Found = tuple[str, bytes]


class Feeder:
    """Writes transactions to the source, some of them aborted, in a thread of its own."""

    def __init__(self, bootstrap: str, topic: str, seed: int) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._random = Random(seed)
        self._wanted = 0
        self._changed = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=lambda: asyncio.run(self._feed()), daemon=True)
        self.partitions = 0
        self.written = 0
        self.committed: list[bytes] = []
        self.aborted: list[bytes] = []
        self.unknown: list[bytes] = []
        self.error: BaseException | None = None

    def start(self, partitions: int) -> None:
        self.partitions = partitions
        self._thread.start()

    def want(self, count: int) -> None:
        """Write on until there are this many records."""
        with self._changed:
            self._wanted = count
            self._changed.notify()

    def finish(self) -> None:
        """Returns when everything wanted is written."""
        with self._changed:
            self._over = True
            self._changed.notify()
        self._thread.join()
        if self.error is not None:
            raise self.error

    async def _feed(self) -> None:
        try:
            while await asyncio.to_thread(self._has_more):
                await self._some_transactions()
        except BaseException as error:
            self.error = error

    def _has_more(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._over or self.written < self._wanted)
            return self.written < self._wanted

    async def _some_transactions(self) -> None:
        """With one producer, until it fails: the next one fences it and aborts what is open."""
        with suppress(BarnabasError):
            async with Producer(self._bootstrap, transactional_id="feeder") as producer:
                await producer.init_transactions()
                while self.written < self._wanted:
                    await self._transaction(producer)

    async def _transaction(self, producer: Producer) -> None:
        count, abort = self._random.randint(5, 30), self._random.random() < 0.25
        values = [b"%d" % (self.written + number) for number in range(count)]
        self.written += count
        outcome = self.unknown
        try:
            await producer.begin_transaction()
            for value in values:
                partition = self._random.randrange(self.partitions)
                await producer.send(self._topic, value, partition=partition)
            await producer.flush()
            if abort:
                outcome = self.aborted
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
                outcome = self.committed
        finally:
            outcome += values


class Query:
    """The application, as a process that is killed and started again."""

    def __init__(self, master: str, log: Path, *arguments: str) -> None:
        self._master, self._log, self._arguments = master, log, arguments
        self._process: subprocess.Popen[bytes] | None = None
        self.failures: list[str] = []

    def start(self, until: str = "follow") -> None:
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.executor.memory": "512m",
            "spark.task.maxFailures": "8",
            "spark.driver.extraJavaOptions": SHORT_LIFE,
            "spark.executor.extraJavaOptions": SHORT_LIFE,
        }
        confs = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        python = dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [SUBMIT, "--master", self._master, *confs, JOB, *self._arguments, until],
                env=os.environ | python,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """kill -9 of the driver; the executors find out by themselves."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def ensure_running(self) -> None:
        """Start it again if it has failed, as an operator would, and keep what it said."""
        assert self._process is not None
        if self._process.poll() is not None:
            self.failures.append(self.said())
            self.start()

    def finish(self, within: float) -> None:
        assert self._process is not None
        assert self._process.wait(within) == 0, self.said()

    def said(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]


# ---- the checkpoint


def committed_batches(checkpoint: Path) -> list[int]:
    commits = checkpoint / "commits"
    return sorted(int(file.name) for file in commits.glob("*") if file.name.isdigit())


def ends(checkpoint: Path, topic: str) -> list[Ends]:
    """Where each batch ended, by partition, in the order of the batches."""
    folder = checkpoint / "offsets"
    batches = sorted(int(file.name) for file in folder.glob("*") if file.name.isdigit())
    assert batches == list(range(len(batches)))
    lines = [(folder / str(batch)).read_text().splitlines() for batch in batches]
    return [json.loads(found[2])[topic] for found in lines]


def gaps(found: Iterable[Ends], last: Ends) -> list[str]:
    """What is wrong with the ranges: each batch begins where the one before ended."""
    wrong, before = [], dict[str, int]()
    for batch, end in enumerate(found):
        for partition, offset in before.items():
            if end.get(partition, -1) < offset:
                wrong.append(
                    f"batch {batch}: partition {partition} ends at {end.get(partition)},"
                    f" the batch before at {offset}"
                )
        before = end
    if before != last:
        wrong.append(f"the last batch ends at {before}, the topic at {last}")
    return wrong


# ---- the topics


async def committed_records(bootstrap: str, topic: str) -> tuple[list[Found], Ends]:
    """What a read_committed reader finds: (partition-offset, value), (key, value) of a copy."""
    async with Consumer(
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        partitions = await consumer.partitions_for(topic)
        limits = await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        found: list[Found] = []
        while not await _reached(consumer, limits):
            for r in await consumer.poll(timeout_ms=200):
                place = f"{r.partition}-{r.offset}" if r.key is None else r.key.decode()
                found.append((place, r.value or b""))
        return found, {str(tp.partition): end for tp, end in limits.items()}


async def _reached(consumer: Consumer, limits: dict[TopicPartition, int]) -> bool:
    return all([await consumer.position(tp) >= end for tp, end in limits.items()])
