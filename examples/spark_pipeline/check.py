"""Compare the pipeline's output with pandas on the source: no row lost, repeated or different.

spark-submit examples/spark_pipeline/check.py [--flights N] [--bootstrap HOST:PORT,...]
"""

import argparse
import os
import sys
from collections import Counter
from typing import Any

from flights import Delays, expected, load_airlines, load_flights
from pipeline import DELAYS, session

FIELDS = "day string, carrier string, airline string, flights long, departed long, minutes long"
SHOWN = 5


def published(spark: Any, bootstrap: str) -> list[Delays]:
    """Every committed record of the topic, a repeated one too."""
    from pyspark.sql import functions as F

    records = (
        spark.read.format("barnabas")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", DELAYS)
        .load()
    )
    row = F.from_json(F.col("value").cast("string"), FIELDS)
    return sorted(
        Delays(*found) for found in records.select(row.alias("row")).select("row.*").collect()
    )


def differences(found: list[Delays], wanted: list[Delays]) -> list[str]:
    """A line for each row that is missing, or more often there than it should be."""
    missing = Counter(wanted) - Counter(found)
    surplus = Counter(found) - Counter(wanted)
    return [f"missing: {tuple(row)}" for row in sorted(missing.elements())] + [
        f"wrong or repeated: {tuple(row)}" for row in surplus.elements()
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flights", type=int, help="as given to produce.py")
    parser.add_argument(
        "--bootstrap", default=os.environ.get("BARNABAS_BOOTSTRAP", "localhost:9092")
    )
    options = parser.parse_args()
    spark = session()
    found = published(spark, options.bootstrap)
    spark.stop()
    wrong = differences(found, expected(load_flights(options.flights), load_airlines()))
    for line in wrong[:SHOWN]:
        print(line)
    if wrong:
        print(f"FAILED: {len(wrong)} differences")
        return 1
    print(f"{len(found):,} rows of {sum(row.flights for row in found):,} flights equal pandas'")
    return 0


if __name__ == "__main__":
    sys.exit(main())
