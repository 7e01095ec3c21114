"""Counts the records of each partition of a topic, up to its high watermark.

docker-compose --profile spark run --rm spark TOPIC
"""

import argparse
import os
import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import count, max, min


def main() -> int:
    parser = argparse.ArgumentParser(prog="spark", description=__doc__.partition("\n")[0])
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "--bootstrap", default=os.environ.get("BARNABAS_BOOTSTRAP", "localhost:9092")
    )
    options = parser.parse_args()
    spark = SparkSession.builder.appName(f"count {options.topic}").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")  # an error is told below, in one line
    try:
        show(spark, options.bootstrap, options.topic)
    except PySparkException as error:
        print(f"error: {in_one_line(error)}", file=sys.stderr)
        return 1
    finally:
        spark.stop()
    return 0


def show(spark: SparkSession, bootstrap: str, topic: str) -> None:
    records = (
        spark.read.format("barnabas")
        .option("bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .load()
    )
    by_partition = records.groupBy("partition").agg(
        count("*").alias("records"), min("offset").alias("first"), max("offset").alias("last")
    )
    by_partition.orderBy("partition").show(1000, truncate=False)


def in_one_line(error: PySparkException) -> str:
    """The error that the data source has raised, without Python's and Java's traces."""
    lines = [line.strip() for line in str(error).splitlines()]
    python = [line for line in lines if line.partition(":")[0].endswith(("Error", "Exception"))]
    return (python or lines)[-1]


if __name__ == "__main__":
    sys.exit(main())
