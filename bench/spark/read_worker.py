"""One Spark session that reads a topic whenever it is asked to; started by bench/spark_source.py.

    python read_worker.py FORMAT BOOTSTRAP TOPIC [JARS]

Each line of its input is `batch` or `stream`; each line of its output is JSON: the seconds it took,
and for `batch` what was counted.
"""

import json
import os
import sys
import tempfile
import time
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def session(jars: str) -> Any:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jars)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def source(reader: Any, options: dict[str, str]) -> Any:
    return reader.options(**options, startingOffsets="earliest").load()


def batch(spark: Any, source_format: str, options: dict[str, str]) -> dict[str, Any]:
    began = time.perf_counter()
    read = source(spark.read.format(source_format), options)
    (row,) = read.agg(F.count("*"), F.sum(F.length("value"))).collect()
    return {"seconds": time.perf_counter() - began, "records": row[0], "bytes": row[1]}


def stream(spark: Any, source_format: str, options: dict[str, str]) -> dict[str, Any]:
    """Everything there is, by `availableNow`, into the sink that drops it."""
    with tempfile.TemporaryDirectory() as checkpoint:
        began = time.perf_counter()
        query = (
            source(spark.readStream.format(source_format), options)
            .writeStream.format("noop")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        took = time.perf_counter() - began
        records = sum(progress["numInputRows"] for progress in query.recentProgress)
    return {"seconds": took, "records": records}


def main(source_format: str, bootstrap: str, topic: str, jars: str = "") -> None:
    spark = session(jars)
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
    print(json.dumps({"spark": spark.version}), flush=True)
    for line in sys.stdin:
        read = {"batch": batch, "stream": stream}[line.strip()]
        print(json.dumps(read(spark, source_format, options)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
