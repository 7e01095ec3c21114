"""Barnabas for PySpark: `spark.read.format("barnabas")`, found by Spark 4 by itself."""

from pyspark_barnabas.source import DefaultSource

__all__ = ["DefaultSource"]
