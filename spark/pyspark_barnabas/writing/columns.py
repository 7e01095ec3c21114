"""The columns of the sink, those of Spark's own Kafka sink, and Arrow batches as records.

The first word of each error is the condition of Spark's Kafka sink or analyzer, where one exists.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, StringType, StructType

_TEXT = (StringType, BinaryType)
_ROWS_AT_ONCE = 10_000


class ColumnError(ValueError):
    """A row that cannot be written: a column is missing, or has the wrong type or value."""


class Row(NamedTuple):
    """What is sent; `partition` None: the key chooses it, or the partitioner."""

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None
    headers: Sequence[tuple[str, bytes | None]]


def check_columns(schema: StructType, topic: str | None) -> None:
    """Raise ColumnError unless rows of this schema can be written, to `topic` if it is given."""
    types = {field.name.lower(): field.dataType for field in schema.fields}
    unknown = [
        name for name in types if name not in ("topic", "key", "value", "partition", "headers")
    ]
    if unknown:
        raise ColumnError(
            f"UNSUPPORTED_FEATURE: the sink has no column {unknown[0]!r}: select value, and if"
            " needed key, headers, topic, partition"
        )
    if len(types) < len(schema.fields):
        raise ColumnError(f"AMBIGUOUS_REFERENCE: a column occurs twice: {schema.fieldNames()}")
    if topic is None and "topic" not in types:
        raise ColumnError(
            "KAFKA_TOPIC_REQUIRED: topic option required when no 'topic' attribute is present."
            " Use the topic option for setting a topic."
        )
    if "value" not in types:
        raise ColumnError("REQUIRED_ATTRIBUTE_NOT_FOUND: Required attribute 'value' not found.")
    _check(types, "topic", (StringType,), "STRING")
    _check(types, "key", _TEXT, "STRING or BINARY")
    _check(types, "value", _TEXT, "STRING or BINARY")
    _check(types, "partition", (IntegerType,), "INT")
    if "headers" in types and not _are_headers(types["headers"]):
        raise _wrong(types["headers"], "headers", "ARRAY<STRUCT<key: STRING, value: BINARY>>")


def _check(types: dict[str, Any], name: str, allowed: tuple[type, ...], words: str) -> None:
    if name in types and not isinstance(types[name], allowed):
        raise _wrong(types[name], name, words)


def _wrong(found: Any, name: str, words: str) -> ColumnError:
    return ColumnError(
        f"UNSUPPORTED_DATATYPE: {name} attribute type must be {words}, not"
        f" {found.simpleString().upper()}"
    )


def _are_headers(found: Any) -> bool:
    if not isinstance(found, ArrayType) or not isinstance(found.elementType, StructType):
        return False
    fields = found.elementType.fields
    return [(f.name.lower(), type(f.dataType)) for f in fields] == [
        ("key", StringType),
        ("value", BinaryType),
    ]


def rows_of(batch: pa.RecordBatch, topic: str | None, ours: str | None = None) -> Iterator[Row]:
    """The rows of an Arrow batch; raises ColumnError for a row without a topic, or for the topic
    that is `ours`."""
    columns = {name.lower(): batch.column(i) for i, name in enumerate(batch.schema.names)}
    count = batch.num_rows
    nothing: list[Any] = [None] * count
    if topic is not None:
        topics = [topic] * count
    else:
        named = columns["topic"]
        if named.null_count:
            raise ColumnError(
                "KAFKA_NULL_TOPIC_IN_DATA: null topic present in the data. Use the topic option"
                " for setting a topic."
            )
        topics = named.to_pylist()
        if ours in topics:
            raise ColumnError(f"a row is for {ours!r}, where the sink keeps its decisions")
    keys = _binary(columns["key"]) if "key" in columns else nothing
    values = _binary(columns["value"])
    partitions = columns["partition"].to_pylist() if "partition" in columns else nothing
    headers = (
        [_headers(h) for h in columns["headers"].to_pylist()] if "headers" in columns else None
    )
    empty: list[Any] = [()] * count
    return map(Row, topics, keys, values, partitions, headers or empty)


def _binary(column: pa.Array) -> list[bytes | None]:
    if pa.types.is_string(column.type):
        column = pc.cast(column, pa.binary())
    elif pa.types.is_large_string(column.type):
        column = pc.cast(column, pa.large_binary())
    found: list[bytes | None] = column.to_pylist()
    return found


def _headers(given: Any) -> list[tuple[str, bytes | None]]:
    if given is None:
        return []
    if any(header is None for header in given):
        raise ColumnError("a header is null: each has a key, and its value may be null")
    # Spark's own sink takes the names of the fields in any case.
    found = [(key, value) for key, value in map(dict.values, given)]
    if any(key is None for key, _ in found):
        raise ColumnError("the key of a header is null: only its value may be")
    return found


def arrow_batches(rows: Iterator[Any]) -> Iterator[pa.RecordBatch]:
    """Arrow batches of Spark's rows: a stream's writer gets Arrow from Spark 4.1 on only."""
    some: list[dict[str, Any]] = []
    for row in rows:
        if isinstance(row, pa.RecordBatch):
            yield row
            continue
        some.append(row.asDict(recursive=True))
        if len(some) >= _ROWS_AT_ONCE:
            yield pa.RecordBatch.from_pylist(some)
            some = []
    if some:
        yield pa.RecordBatch.from_pylist(some)
