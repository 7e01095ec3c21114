"""Reading topics: the driver plans ranges of offsets, and each task reads one."""

from pyspark_barnabas.reading.batch_reader import BatchReader
from pyspark_barnabas.reading.stream_reader import RefusedStream, StreamReader

__all__ = ["BatchReader", "RefusedStream", "StreamReader"]
