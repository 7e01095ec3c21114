"""Helpers of the sink's tests: what readers see, and drivers as processes that can be killed."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from barnabas import Admin, Consumer

JOB = Path(__file__).with_name("sink_job.py")
CHILD_SECONDS = 120.0


async def values(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[bytes]:
    """The values of a topic for such a reader, in no particular order."""
    async with Consumer(
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        isolation_level=isolation,  # type: ignore[arg-type]
    ) as consumer:
        partitions = await consumer.partitions_for(topic)
        ends = await consumer.end_offsets(partitions)
        consumer.assign(partitions)
        found: list[bytes] = []
        while True:
            positions = {tp: await consumer.position(tp) for tp in partitions}
            if all(positions[tp] >= ends[tp] for tp in partitions):
                return sorted(found)
            records = await consumer.poll(timeout_ms=200)
            found += [r.value or b"" for r in records if r.offset < ends[r.topic_partition]]


async def open_transactions(bootstrap: str) -> list[str]:
    async with Admin(bootstrap) as admin:
        return [t.transactional_id for t in await admin.list_transactions(states=["Ongoing"])]


async def settled_values(bootstrap: str, topic: str) -> list[bytes]:
    """The committed values, when no transaction of the topic is open or being completed."""
    async with Consumer(bootstrap_servers=bootstrap) as reader:
        partitions = await reader.partitions_for(topic)
        async with Consumer(
            bootstrap_servers=bootstrap, isolation_level="read_committed"
        ) as committed:
            async with asyncio.timeout(60):
                while await reader.end_offsets(partitions) != await committed.end_offsets(
                    partitions
                ):
                    await asyncio.sleep(0.1)
    return await values(bootstrap, topic)


class DriverProcess:
    """A Spark application of its own: `sink_job.py` with these arguments, stopped at `stop`."""

    def __init__(self, stops: Path, *arguments: str, stop: str = "") -> None:
        stops.mkdir(exist_ok=True)
        for left in stops.glob("*.reached"):
            left.unlink()
        if stop:
            (stops / stop).touch()
        self.stops = stops
        self.log = stops / "driver.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(JOB), *arguments],
                env=os.environ
                | {"BARNABAS_SINK_STOPS": str(stops)}
                | dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + CHILD_SECONDS
        while not condition():
            assert self.process.poll() is None, self.log.read_text()[-4000:]
            assert time.monotonic() < deadline, f"{what}: {self.log.read_text()[-4000:]}"
            time.sleep(0.05)

    def wait_until_stopped_at(self, point: str) -> int:
        """Returns the process that is stopped."""
        reached = self.stops / f"{point}.reached"
        self.wait_for(lambda: reached.exists() and reached.read_text() != "", point)
        return int(reached.read_text())

    def resume(self, point: str) -> None:
        (self.stops / f"{point}.reached").unlink()

    def kill(self) -> None:
        """kill -9 of the driver with all its workers."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def finish(self) -> None:
        assert self.process.wait(CHILD_SECONDS) == 0, self.log.read_text()[-4000:]
