"""The options of `spark.read` and `spark.readStream` with `format("barnabas")`.

They are those of Spark's own Kafka source, by name. Spark passes option keys in lower case,
whatever the user wrote.
"""

from pyspark_barnabas.options.limits import EARLIEST, LATEST, ByPartition, Limit, Offsets
from pyspark_barnabas.options.read_options import (
    Mode,
    ReadOptions,
    check_options,
    parse_options,
)
from pyspark_barnabas.options.values import OptionError

__all__ = [
    "EARLIEST",
    "LATEST",
    "ByPartition",
    "Limit",
    "Mode",
    "Offsets",
    "OptionError",
    "ReadOptions",
    "check_options",
    "parse_options",
]
