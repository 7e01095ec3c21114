"""The far end: a Spark batch reads the topic and must agree with pandas on the source."""

import math
import os
import sys

import pandas as pd
from dataset import mean_delay_by_carrier


def spark_mean_delay(bootstrap: str, topic: str) -> tuple[int, dict[str, float]]:
    """Distinct rows read, and the mean delay by carrier, duplicates dropped by row number."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    spark = (
        SparkSession.builder.master("local[2]")
        .appName("barnabas-demo")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.log.level", "ERROR")
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
        flights = (
            records.select(F.from_json(F.col("value").cast("string"), fields).alias("flight"))
            .select("flight.*")
            .dropDuplicates(["row"])
        )
        rows = (
            flights.groupBy("carrier")
            .agg(F.count("*").alias("rows"), F.avg("dep_delay").alias("delay"))
            .collect()
        )
    finally:
        spark.stop()
    return sum(row["rows"] for row in rows), {row["carrier"]: row["delay"] for row in rows}


def agrees(frame: pd.DataFrame, rows: int, delays: dict[str, float]) -> bool:
    """Whether Spark saw every row of the source once, and the same means."""
    expected = mean_delay_by_carrier(frame)
    return (
        rows == len(frame)
        and expected.keys() == delays.keys()
        and all(math.isclose(expected[c], delays[c], rel_tol=1e-9) for c in expected)
    )
