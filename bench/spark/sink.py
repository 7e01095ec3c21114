"""What exactly once costs the Spark sink: paired rounds with at least once.

    python bench/spark/sink.py [--rounds N] [--records N] [--size N] [--tasks N]

Three brokers, 6 partitions, replication factor 3, `local[2]`. Each round writes the same rows with
each delivery, in turn which comes first; the figure is the median of the rounds' ratios. The first
pair warms up and does not count.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from barnabas import Admin
from barnabas_tools.local.cluster import LocalCluster

TOPIC = "sink"
DELIVERIES = ("at-least-once", "exactly-once")


def session() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def write(frame: Any, bootstrap: str, delivery: str, rows: int) -> float:
    """Rows a second, from the call of `save` to its return."""
    began = time.perf_counter()
    (
        frame.write.format("barnabas")
        .mode("append")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", TOPIC)
        .option("delivery", delivery)
        .save()
    )
    return rows / (time.perf_counter() - began)


async def create_topic(bootstrap: str) -> None:
    async with Admin(bootstrap) as admin:
        await admin.create_topic(TOPIC, 6, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("rounds", 5), ("records", 1_000_000), ("size", 100), ("tasks", 6)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    spark = session()
    filler = "x" * (options.size - 10)
    frame = spark.range(0, options.records, 1, options.tasks).selectExpr(
        f"concat(lpad(CAST(id AS STRING), 10, '0'), '{filler}') AS value"
    )
    ratios = []
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(Path(folder), brokers=3) as cluster,
    ):
        asyncio.run(create_topic(cluster.bootstrap))
        for number in range(options.rounds + 1):
            order = DELIVERIES if number % 2 else tuple(reversed(DELIVERIES))
            rate = {d: write(frame, cluster.bootstrap, d, options.records) for d in order}
            ratio = rate["exactly-once"] / rate["at-least-once"]
            if number:
                ratios.append(ratio)
            print(
                f"{'round ' + str(number) if number else 'warm-up'}:"
                + "".join(f" {d} {rate[d] / 1000:.0f} k rows/s," for d in DELIVERIES)
                + f" ratio {ratio:.2f}",
                flush=True,
            )
    spark.stop()
    print(f"median of {len(ratios)} pairs: exactly once at {median(ratios):.2f} of at least once")


if __name__ == "__main__":
    main()
