"""Barnabas for PySpark: `format("barnabas")`, which Spark 4 finds by itself."""

from pyspark_barnabas.source import DefaultSource

__all__ = ["DefaultSource"]
