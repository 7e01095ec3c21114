"""Many micro-batches while drivers, executors and brokers are killed with -9 at random.

The source has committed and aborted transactions, and gets one more partition in the middle.
`BARNABAS_CHAOS_BATCHES=200 BARNABAS_CHAOS_SEED=7` is a longer run, and another one.
"""

import asyncio
import os
import signal
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from barnabas import Admin
from barnabas_tools.local.cluster import LocalCluster

from tests.spark.sink_chaos import (
    Feeder,
    Query,
    committed_batches,
    committed_records,
    ends,
    gaps,
)
from tests.spark.sink_support import open_transactions
from tests.spark.standalone import SparkCluster
from tests.support.cluster_state import create_topic, wait_until_in_sync

pytestmark = pytest.mark.spark

BATCHES = int(os.environ.get("BARNABAS_CHAOS_BATCHES", "24"))
SEED = int(os.environ.get("BARNABAS_CHAOS_SEED", "1"))
SOURCE, TARGET = "chaos-source", "chaos-target"
OFFSETS = 150  # in a micro-batch
EVERY = (2, 6)  # micro-batches between two faults
STALLED_SECONDS = 400.0
FAULTS = ("driver", "executor", "broker")


class Chaos:
    """The run: what is killed when comes from the seed; what else happens meanwhile does not."""

    def __init__(self, cluster: LocalCluster, spark: SparkCluster, folder: Path) -> None:
        self.cluster, self.spark = cluster, spark
        self.random = Random(SEED)
        self.checkpoint = folder / "checkpoint"
        self.feeder = Feeder(cluster.bootstrap, SOURCE, SEED)
        arguments = (cluster.bootstrap, SOURCE, TARGET, str(self.checkpoint), str(OFFSETS))
        self.query = Query(spark.master, folder / "query.log", *arguments)
        self.counts: Counter[str] = Counter()
        self.down: int | None = None

    def run(self, runner: asyncio.Runner) -> None:
        self.query.start()
        next_fault = self.random.randint(*EVERY)
        widened = False
        while (done := len(committed_batches(self.checkpoint))) < BATCHES:
            self._reach(min(done + 1, BATCHES))
            if not widened and done >= BATCHES // 2:
                widened = True
                runner.run(self._widen())
            if done >= next_fault:
                next_fault = done + self.random.randint(*EVERY)
                self._fault(self.random.choice(FAULTS))

    def end(self) -> None:
        """Everything runs again; the query reads what is left, and ends by itself."""
        self._broker_back()
        self.feeder.finish()
        self.query.kill()
        self.query.start("end")
        self.query.finish(STALLED_SECONDS)

    def _reach(self, batches: int) -> None:
        """Wait until so many batches are committed; the source always has some more."""
        deadline = time.monotonic() + STALLED_SECONDS
        while len(committed_batches(self.checkpoint)) < batches:
            self.feeder.want((batches + 3) * OFFSETS)
            self.query.ensure_running()
            assert self.feeder.error is None, self.feeder.error
            assert time.monotonic() < deadline, f"no progress: {self.query.said()}"
            time.sleep(0.1)

    def _fault(self, kind: str) -> None:
        time.sleep(self.random.random())  # anywhere in a micro-batch
        self._broker_back()
        if kind == "driver":
            self.query.kill()
            self.query.start()
        elif kind == "executor":
            running = sorted(self.spark.executors())
            if running:
                os.kill(self.random.choice(running), signal.SIGKILL)
            else:
                kind = "executor not yet there"
        else:
            self.down = self.random.choice(self.cluster.broker_ids)
            self.cluster.kill(self.down)
        self.counts[kind] += 1

    def _broker_back(self) -> None:
        """A broker is down until the next fault."""
        if self.down is not None:
            self.cluster.start_broker(self.down)
            self.down = None

    async def _widen(self) -> None:
        self._broker_back()
        async with Admin(self.cluster.bootstrap) as admin:
            await admin.create_partitions(SOURCE, self.feeder.partitions + 1)
        self.feeder.partitions += 1


@pytest.mark.slow
@pytest.mark.integration
def test_every_committed_record_is_copied_once(
    cluster: LocalCluster, run: asyncio.Runner, tmp_path: Path
) -> None:
    bootstrap = cluster.bootstrap
    run.run(create_topic(bootstrap, SOURCE, 3))
    run.run(create_topic(bootstrap, TARGET, 3))
    with SparkCluster(tmp_path / "spark") as spark:
        chaos = Chaos(cluster, spark, tmp_path)
        chaos.feeder.start(partitions=3)
        try:
            chaos.run(run)
            chaos.end()
        finally:
            chaos.query.kill()
    for topic in (SOURCE, TARGET):
        run.run(wait_until_in_sync(bootstrap, topic))
    source, limits = run.run(committed_records(bootstrap, SOURCE))
    target, _ = run.run(committed_records(bootstrap, TARGET))
    feeder, batches = chaos.feeder, len(committed_batches(chaos.checkpoint))
    print(
        f"\nseed {SEED}: {batches} micro-batches, {len(source)} records committed,"
        f" {len(feeder.aborted)} aborted, {len(feeder.unknown)} of unknown outcome;"
        f" killed: {dict(sorted(chaos.counts.items()))}; the query failed"
        f" {len(chaos.query.failures)} times"
    )
    committed = Counter(value for _, value in source)
    assert Counter(feeder.committed) - committed == Counter()
    assert committed & Counter(feeder.aborted) == Counter()
    assert Counter(target) == Counter(source)
    assert gaps(ends(chaos.checkpoint, SOURCE), limits) == []
    assert len(limits) == 4
    assert run.run(open_transactions(bootstrap)) == []


# ---- the check finds what it is for


def test_gaps_in_the_ranges_are_found() -> None:
    good = [{"0": 3}, {"0": 5, "1": 2}]
    assert gaps(good, {"0": 5, "1": 2}) == []
    assert gaps(good, {"0": 6, "1": 2}) != []
    assert gaps([{"0": 3, "1": 1}, {"0": 5}], {"0": 5}) != []
    assert gaps([{"0": 3}, {"0": 2}], {"0": 2}) != []
