"""A Spark application that a test starts, kills and starts again.

    sink_job.py stream BOOTSTRAP INPUT OUTPUT CHECKPOINT DELIVERY
    sink_job.py batch BOOTSTRAP COUNT TASKS OUTPUT JOB_ID

`stream` copies the text files of a folder, line by line, in micro-batches of one file.
"""

import sys
from typing import Any

from pyspark.sql import SparkSession


def session() -> Any:
    return (
        SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.log.level", "ERROR")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .getOrCreate()
    )


def stream(bootstrap: str, source: str, topic: str, checkpoint: str, delivery: str) -> None:
    lines = session().readStream.option("maxFilesPerTrigger", "1").text(source)
    query = (
        lines.repartition(2)
        .writeStream.format("barnabas")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topic)
        .option("delivery", delivery)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def batch(bootstrap: str, count: str, tasks: str, topic: str, job_id: str) -> None:
    frame = session().range(0, int(count), 1, int(tasks)).selectExpr("CAST(id AS STRING) AS value")
    (
        frame.write.format("barnabas")
        .mode("append")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", topic)
        .option("delivery", "exactly-once")
        .option("jobId", job_id)
        .save()
    )


if __name__ == "__main__":
    {"stream": stream, "batch": batch}[sys.argv[1]](*sys.argv[2:])
