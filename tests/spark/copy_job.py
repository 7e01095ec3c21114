"""The query of the chaos test: copies what is committed in a topic, with where it was.

    spark-submit copy_job.py BOOTSTRAP SOURCE TARGET CHECKPOINT OFFSETS_PER_BATCH follow|end

`follow` runs until it is killed; `end` reads what there is and ends.
"""

import sys

from pyspark.sql import SparkSession


def main(
    bootstrap: str, source: str, target: str, checkpoint: str, offsets: str, until: str
) -> None:
    spark = (
        SparkSession.builder.appName("copy")
        .config("spark.log.level", "WARN")
        # The test reads where each batch ended, from the first to the last.
        .config("spark.sql.streaming.minBatchesToRetain", "100000")
        .getOrCreate()
    )
    writer = (
        spark.readStream.format("barnabas")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.metadata.max.age.ms", "2000")
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", offsets)
        .load()
        .selectExpr("concat(partition, '-', offset) AS key", "value")
        .writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", target)
        .option("delivery", "exactly-once")
        .option("checkpointLocation", checkpoint)
    )
    if until == "end":
        writer = writer.trigger(availableNow=True)
    writer.start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
