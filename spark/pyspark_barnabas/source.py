"""The data source itself: `format("barnabas")`, for batches and streams, read and written.

Spark 4 finds it without registration: a module whose name begins with `pyspark_` and a class named
`DefaultSource`.
"""

from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from pyspark_barnabas.options import OptionError, ReadOptions, check_options, parse_options
from pyspark_barnabas.reading import BatchReader, RefusedStream, StreamReader
from pyspark_barnabas.reading.columns import ARROW_HEADERS, ARROW_SCHEMA, spark_schema
from pyspark_barnabas.worker_process import settle
from pyspark_barnabas.writing.writers import batch_writer, stream_writer


class DefaultSource(DataSource):
    """Topics as batches and streams. What is read has the schema of Spark's own Kafka source."""

    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def schema(self) -> str:
        """Return Spark's schema string. `load()` calls this, so that it reports a bad option."""
        settle()  # also this, and `reader`, are called in workers that Spark uses again
        return spark_schema(check_options(self.options).include_headers)

    def reader(self, schema: StructType) -> BatchReader:
        settle()
        options = parse_options(self.options)
        _check_schema(schema, options)
        return BatchReader(options)

    def streamReader(self, schema: StructType) -> StreamReader | RefusedStream:
        try:
            options = parse_options(self.options, "stream")
            _check_schema(schema, options)
            return StreamReader(options)
        except OptionError as error:
            return RefusedStream(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        writer: DataSourceStreamWriter = stream_writer(self.options, schema, overwrite)
        return writer


def _check_schema(schema: StructType, options: ReadOptions) -> None:
    names = [*ARROW_SCHEMA.names, *([ARROW_HEADERS.name] if options.include_headers else [])]
    if schema.fieldNames() != names:
        raise OptionError("the schema of a topic is fixed: leave out schema()")
