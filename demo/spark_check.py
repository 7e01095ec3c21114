"""A Spark batch reads the topic, and must agree with pandas on the source."""

import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from dataset import mean_delay_by_carrier

_TAIL_BYTES = 2_000
# Java's second compiler does not pay off in a process that runs for half a minute.
_SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class SparkError(RuntimeError):
    """Spark could not read the topic; the message is the end of its output."""


def spark_mean_delay(bootstrap: str, topic: str, log: Path) -> tuple[int, dict[str, float | None]]:
    """Return the number of rows, and the mean delay by carrier."""
    # Spark's workers must be the interpreter that has pyspark_barnabas.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    try:
        with _stderr_to(log):
            return _mean_delay(bootstrap, topic)
    except Exception as error:
        said = log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")
        raise SparkError(f"{error}\n{said}") from error


def _mean_delay(bootstrap: str, topic: str) -> tuple[int, dict[str, float | None]]:
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    spark = (
        SparkSession.builder.master("local[2]")
        .appName("barnabas-demo")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", _SHORT_LIFE)
        .getOrCreate()
    )
    try:
        records = (
            spark.read.format("barnabas")
            .option("bootstrap.servers", bootstrap)
            .option("subscribe", topic)
            .load()
        )
        fields = "row long, carrier string, dep_delay double"
        flights = records.select(
            F.from_json(F.col("value").cast("string"), fields).alias("flight")
        ).select("flight.*")
        rows = (
            flights.groupBy("carrier")
            .agg(F.count("*").alias("rows"), F.avg("dep_delay").alias("delay"))
            .collect()
        )
    finally:
        spark.stop()
    return sum(row["rows"] for row in rows), {row["carrier"]: row["delay"] for row in rows}


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Redirect the output of Spark's Java process, which inherits stderr, to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def agrees(frame: pd.DataFrame, rows: int, delays: Mapping[str, float | None]) -> bool:
    """Whether Spark saw every row of the source once, and computed the same means."""
    expected = mean_delay_by_carrier(frame)
    return (
        rows == len(frame)
        and expected.keys() == delays.keys()
        and all(_same(expected[carrier], delays[carrier]) for carrier in expected)
    )


def _same(expected: float, found: float | None) -> bool:
    """A carrier whose flights were all cancelled has no mean: NaN in pandas, null in Spark."""
    if found is None or math.isnan(expected):
        return found is None and math.isnan(expected)
    return math.isclose(expected, found, rel_tol=1e-9)
