"""The data source itself: `format("barnabas")`, for batches and streams, read and written.

Spark 4 finds it without registration: a module whose name begins with `pyspark_` and a class named
`DefaultSource`.

Spark plans a query in several Python processes: one finds the sources, one asks for the schema, one
plans the tasks. Each step imports here what it needs, because importing all of it takes longer than
the step.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from pyspark_barnabas.worker_process import settle

if TYPE_CHECKING:
    from pyspark_barnabas.options import ReadOptions
    from pyspark_barnabas.reading import BatchReader, RefusedStream, StreamReader


class DefaultSource(DataSource):
    """Topics as batches and streams. What is read has the schema of Spark's own Kafka source."""

    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def schema(self) -> str:
        """Return Spark's schema string. `load()` calls this, so that it reports a bad option."""
        from pyspark_barnabas.options import check_options
        from pyspark_barnabas.schema import spark_schema

        settle()  # also this, and `reader`, are called in workers that Spark uses again
        return spark_schema(check_options(self.options).include_headers)

    def reader(self, schema: StructType) -> "BatchReader":
        from pyspark_barnabas.options import parse_options
        from pyspark_barnabas.reading import BatchReader

        settle()
        options = parse_options(self.options)
        _check_schema(schema, options)
        return BatchReader(options)

    def streamReader(self, schema: StructType) -> "StreamReader | RefusedStream":
        from pyspark_barnabas.options import OptionError, parse_options
        from pyspark_barnabas.reading import RefusedStream, StreamReader

        try:
            options = parse_options(self.options, "stream")
            _check_schema(schema, options)
            return StreamReader(options)
        except OptionError as error:
            return RefusedStream(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from pyspark_barnabas.writing.writers import batch_writer

        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from pyspark_barnabas.writing.writers import stream_writer

        writer: DataSourceStreamWriter = stream_writer(self.options, schema, overwrite)
        return writer


def _check_schema(schema: StructType, options: "ReadOptions") -> None:
    from pyspark_barnabas.options import OptionError
    from pyspark_barnabas.schema import COLUMNS, HEADERS

    names = [*COLUMNS, *([HEADERS] if options.include_headers else [])]
    if schema.fieldNames() != names:
        raise OptionError("the schema of a topic is fixed: leave out schema()")
