"""From flights to delays: the flights of each airline and day, counted exactly once.

    spark-submit examples/spark_pipeline/pipeline.py --checkpoint DIR [--bootstrap HOST:PORT,...]

It reads what there is and ends; started again with the same checkpoint, it reads on from there.
With --follow it waits for more.
"""

import argparse
import os
import sys
from typing import Any

FLIGHTS, AIRLINES, DELAYS = "flights", "airlines", "delays"
FIELDS = "row long, carrier string, dep_delay long, time_hour timestamp"
LATENESS = "2 days"


def session() -> Any:
    from pyspark.sql import SparkSession

    # Locally Spark's workers are this interpreter; a cluster has its own (see the README).
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return (
        SparkSession.builder.appName("flight-delays")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.log.level", "WARN")
        .getOrCreate()
    )


def flights(spark: Any, bootstrap: str, per_batch: int) -> Any:
    """The stream of flights; Kafka's timestamp is when one was sent, `time_hour` when it left."""
    from pyspark.sql import functions as F

    records = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", FLIGHTS)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", per_batch)
        .load()
    )
    flight = F.from_json(F.col("value").cast("string"), FIELDS)
    return records.select(flight.alias("flight")).select("flight.*")


def airlines(spark: Any, bootstrap: str) -> Any:
    """The table of airlines: the newest record of each key, as compaction may not have run yet."""
    from pyspark.sql import functions as F

    records = (
        spark.read.format("barnabas")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", AIRLINES)
        .load()
    )
    return (
        records.groupBy(F.col("key").cast("string").alias("carrier"))
        .agg(F.max_by("value", "offset").cast("string").alias("airline"))
        .where("airline IS NOT NULL")  # a tombstone deletes its key
    )


def delays(flights: Any, airlines: Any) -> Any:
    """One row for each airline and day. A day is complete when the watermark has passed its end."""
    from pyspark.sql import functions as F

    days = (
        flights.withWatermark("time_hour", LATENESS)
        .groupBy(F.window("time_hour", "1 day"), "carrier")
        .agg(
            F.count("*").alias("flights"),
            F.count("dep_delay").alias("departed"),
            F.coalesce(F.sum("dep_delay"), F.lit(0)).alias("minutes"),
        )
    )
    return days.join(airlines, "carrier", "left").select(
        F.date_format("window.start", "yyyy-MM-dd").alias("day"),
        "carrier",
        "airline",
        "flights",
        "departed",
        "minutes",
    )


def write(rows: Any, bootstrap: str, checkpoint: str) -> Any:
    """A writer of a query, not started yet, that publishes each row once."""
    return (
        rows.selectExpr("concat(day, ' ', carrier) AS key", "to_json(struct(*)) AS value")
        .writeStream.format("barnabas")
        .queryName("flight-delays")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", DELAYS)
        .option("delivery", "exactly-once")
        .option("checkpointLocation", checkpoint)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--bootstrap", default=os.environ.get("BARNABAS_BOOTSTRAP", "localhost:9092")
    )
    parser.add_argument("--checkpoint", required=True, help="a folder that all of Spark can reach")
    parser.add_argument("--per-batch", type=int, default=50_000, help="offsets in a micro-batch")
    parser.add_argument("--follow", action="store_true", help="wait for more at the end")
    options = parser.parse_args()
    spark = session()
    stream = flights(spark, options.bootstrap, options.per_batch)
    rows = delays(stream, airlines(spark, options.bootstrap))
    writer = write(rows, options.bootstrap, options.checkpoint)
    query = writer.start() if options.follow else writer.trigger(availableNow=True).start()
    query.awaitTermination()
    batches = query.recentProgress
    late = sum(state["numRowsDroppedByWatermark"] for b in batches for state in b["stateOperators"])
    print(
        f"{sum(b['numInputRows'] for b in batches):,} flights in {len(batches)} micro-batches,"
        f" {late} of them too late for their day"
    )
    spark.stop()


if __name__ == "__main__":
    main()
