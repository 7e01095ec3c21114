"""The schema of a topic: that of Spark's own Kafka source, in Spark's words."""

# By name, their Spark types.
COLUMNS = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "long",
    "timestamp": "timestamp",
    "timestampType": "int",
}
HEADERS = "headers"
_HEADERS_TYPE = "array<struct<key: string, value: binary>>"


def spark_schema(include_headers: bool) -> str:
    columns = {**COLUMNS, HEADERS: _HEADERS_TYPE} if include_headers else COLUMNS
    return ", ".join(f"{name} {spark_type}" for name, spark_type in columns.items())
