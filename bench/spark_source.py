"""Reading a topic with Spark: this data source beside Spark's own Kafka source, on Kafka.

    python bench/spark_source.py [--records 5000000] [--size 100] [--rounds 5]

Both read equal data, 6 partitions with three replicas, in `local[2]`: a batch that counts the
records and adds up the lengths of their values, and a stream with `availableNow` that drops them.
Each has a Spark session of its own, and the two take turns. The first batch of each session counts
apart from those after it; of these and of the streams the figure is the median of the ratios.

The newest Kafka source in Maven Central is of Spark 4.0.0, so both sides run on that version:

    python3 -m venv /tmp/spark40 && /tmp/spark40/bin/pip install -e '.[dev]' pyspark==4.0.0
    /tmp/spark40/bin/python bench/spark_source.py
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from barnabas_tools.local.cluster import LocalCluster
from kafka_peer import CACHE, KafkaCluster, KafkaUnavailable
from support import measures

TOPIC = "spark-source"
PARTITIONS = 6
HERE = Path(__file__).resolve().parent / "spark"
SPARK_VERSION = "4.0.0"
MEASURED = ("batch", "stream")


def fetch_jars() -> str:
    """Download Spark's Kafka source by Maven, once; returns its jars, separated by commas."""
    folder = CACHE.parent / f"spark-kafka-{SPARK_VERSION}"
    if not folder.is_dir():
        incomplete = folder.with_suffix(f".{os.getpid()}")
        command = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies"]
        done = subprocess.run(
            [*command, f"-DoutputDirectory={incomplete}", "-DincludeScope=runtime"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            shutil.rmtree(incomplete, ignore_errors=True)
            raise KafkaUnavailable(f"Maven cannot fetch Spark's source: {done.stdout[-500:]}")
        incomplete.rename(folder)
    # Spark has the others itself, of its own versions.
    names = ("spark-", "kafka-clients", "commons-pool2")
    return ",".join(str(jar) for jar in sorted(folder.iterdir()) if jar.name.startswith(names))


class Reader:
    """A Spark session in a process of its own."""

    def __init__(self, source_format: str, bootstrap: str, jars: str = "") -> None:
        program = [sys.executable, str(HERE / "read_worker.py")]
        self._process = subprocess.Popen(
            [*program, source_format, bootstrap, TOPIC, jars],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.spark = self._answer()["spark"]

    def read(self, what: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the Spark session ended, code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        self._process.communicate()


@contextmanager
def both(options: argparse.Namespace, folder: Path) -> Iterator[dict[str, Reader]]:
    """Two clusters with the same records, and a session for each."""
    jars = fetch_jars()
    records, size = options.records, options.size
    with KafkaCluster() as kafka, LocalCluster(folder, brokers=3) as cluster:
        kafka.create_topic(TOPIC, PARTITIONS)
        kafka.produce(TOPIC, records=records, size=size)
        asyncio.run(_fill(cluster.bootstrap, records, size))
        readers = {
            "Barnabas": Reader("barnabas", cluster.bootstrap),
            "Kafka": Reader("kafka", kafka.bootstrap, jars),
        }
        yield readers
        for reader in readers.values():
            reader.close()


async def _fill(bootstrap: str, records: int, size: int) -> None:
    await measures.create_topic(bootstrap, TOPIC)
    await measures.send(
        bootstrap, TOPIC, records=records, size=size, batch_size=65_536, linger_ms=5
    )


def rates(
    readers: dict[str, Reader], what: str, options: argparse.Namespace, turn: int
) -> dict[str, float]:
    """Rows a second of each; raises SystemExit if one has read something else."""
    found = {}
    for name in [*readers] if turn % 2 else [*reversed(readers)]:
        read = readers[name].read(what)
        if read["records"] != options.records:
            raise SystemExit(f"{name} read {read['records']:,} of {options.records:,} records")
        if read.get("bytes", options.records * options.size) != options.records * options.size:
            raise SystemExit(f"{name} read {read['bytes']:,} bytes")
        found[name] = read["records"] / read["seconds"]
    return found


def tell(what: str, rate: dict[str, float]) -> float:
    ratio = rate["Barnabas"] / rate["Kafka"]
    told = ", ".join(f"{name} {rows / 1000:,.0f} k rows/s" for name, rows in sorted(rate.items()))
    print(f"{what}: {told}, ratio {ratio:.2f}", flush=True)
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("records", 5_000_000), ("size", 100), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    if version("pyspark") != SPARK_VERSION:
        raise SystemExit(f"needs pyspark {SPARK_VERSION}, see --help; here is {version('pyspark')}")
    with tempfile.TemporaryDirectory() as folder, both(options, Path(folder)) as readers:
        print({name: f"Spark {reader.spark}" for name, reader in readers.items()}, flush=True)
        tell("first batch", rates(readers, "batch", options, 0))
        for what in MEASURED:
            ratios = [
                tell(f"{what} {turn}", rates(readers, what, options, turn))
                for turn in range(1, options.rounds + 1)
            ]
            print(f"{what}: median of {len(ratios)} ratios {median(ratios):.2f}", flush=True)


if __name__ == "__main__":
    main()
