"""Columns as Arrow tables, for pandas, Polars and Spark.

Only this module and `column_decoder` import pyarrow.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from barnabas_common.errors import ClientError
from barnabas_common.record.reader import Columns
from barnabas_common.topic_partition import TopicPartition

if TYPE_CHECKING:
    import pyarrow


def table_of(
    chunks: Sequence[tuple[TopicPartition, Columns]], with_headers: bool = False
) -> "pyarrow.Table":
    """One table of all chunks, in order; the columns of Spark's Kafka source."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ClientError("poll_arrow() needs pyarrow: pip install pyarrow") from error
    schema = pa.schema(
        [
            pa.field("key", pa.binary()),
            pa.field("value", pa.binary()),
            pa.field("topic", pa.string(), nullable=False),
            pa.field("partition", pa.int32(), nullable=False),
            pa.field("offset", pa.int64(), nullable=False),
            pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
            pa.field("timestampType", pa.int32(), nullable=False),
        ]
    )
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    if with_headers:
        schema = schema.append(pa.field("headers", headers))

    def binary(values: Any) -> Any:
        return values if isinstance(values, pa.Array) else pa.array(values, pa.binary())

    batches = []
    for (topic, partition), columns in chunks:
        count = len(columns.offsets)
        arrays = [
            binary(columns.keys),
            binary(columns.values),
            pa.repeat(pa.scalar(topic, pa.string()), count),
            pa.repeat(pa.scalar(partition, pa.int32()), count),
            pa.array(columns.offsets, pa.int64()),
            pa.array(columns.timestamps, pa.int64()).cast(pa.timestamp("ms", tz="UTC")),
            pa.array(columns.timestamp_types, pa.int32()),
        ]
        if with_headers:
            arrays.append(pa.array([found or None for found in columns.headers or ()], headers))
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return pa.Table.from_batches(batches, schema=schema)
