"""The columns of a topic: those of Spark's own Kafka source."""

import logging
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_barnabas.schema import HEADERS

# Exactly Spark's form of the source's schema; it refuses anything else.
ARROW_SCHEMA = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestampType": pa.int32(),
    }
)
ARROW_HEADERS = pa.field(
    HEADERS, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
)

logger = logging.getLogger(__name__)

# Spark's years are 1 to 9999. A day at each end is left out, so that Python can convert the
# timestamps to every local time.
_FIRST_MS = -62_135_510_400_000
_LAST_MS = 253_402_214_400_000


def in_spark_types(table: "pa.Table", where: str) -> "pa.Table":
    """Return what `poll_arrow` returned in Spark's types."""
    schema = ARROW_SCHEMA
    if HEADERS in table.column_names:
        schema = schema.append(ARROW_HEADERS)
    return _with_spark_times(table, where).cast(schema)


def within_spark(times: Any) -> Any:
    """Timestamps (ms), with the nearest that Spark can represent in place of the others."""
    return pc.min_element_wise(pc.max_element_wise(times, _FIRST_MS), _LAST_MS)


def _with_spark_times(table: "pa.Table", where: str) -> "pa.Table":
    """Replace timestamps that Spark cannot represent: one of them would fail every read of its
    range, and neither a producer nor a broker refuses it."""
    times = table["timestamp"].cast(pa.int64())
    within = within_spark(times)
    changed = table.filter(pc.not_equal(times, within))["offset"]
    if not len(changed):
        return table
    logger.warning(
        "%s: %d timestamps outside the years 1 to 9999 are cut off, the first at offset %d",
        where, len(changed), changed[0].as_py(),
    )  # fmt: skip
    column = table.schema.get_field_index("timestamp")
    field = table.schema.field(column)
    return table.set_column(column, field, within.cast(field.type))
