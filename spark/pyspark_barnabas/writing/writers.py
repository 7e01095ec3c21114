"""What Spark calls: writers of batches and streams, at least once and exactly once.

`write` runs in a task, `commit` and `abort` on the driver. A stream's writer is another one for
each of these calls, and is not told its query, so tasks tell the driver.
"""

import logging
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from barnabas import Producer
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_barnabas.event_loop import run
from pyspark_barnabas.options import OptionError
from pyspark_barnabas.writing import driver
from pyspark_barnabas.writing.columns import arrow_batches, check_columns, rows_of
from pyspark_barnabas.writing.identity import Attempt, Batch, of_batch_job, of_stream
from pyspark_barnabas.writing.options import WriteOptions, parse_write_options
from pyspark_barnabas.writing.producing import send
from pyspark_barnabas.writing.stops import stop_at
from pyspark_barnabas.writing.task import Delivered, Prepared, TaskWriter

logger = logging.getLogger(__name__)

_StreamWriter: Any = getattr(
    datasource, "DataSourceStreamArrowWriter", datasource.DataSourceStreamWriter
)
Messages = list[WriterCommitMessage | None]


def batch_writer(
    options: Mapping[str, str], schema: StructType, overwrite: bool
) -> DataSourceArrowWriter:
    """The writer of a batch job. Raises for options, columns and modes that cannot work."""
    if overwrite:
        raise OptionError(
            "Save mode overwrite not allowed for barnabas: a topic is only appended to; use append"
        )
    return BatchWriter(_checked(options, schema, False))


def stream_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> Any:
    """The writer of a stream. Raises for options, columns and modes that cannot work."""
    if overwrite:
        raise OptionError("output mode complete would write every row again: use append")
    return StreamWriter(_checked(options, schema, True))


def _checked(options: Mapping[str, str], schema: StructType, streaming: bool) -> WriteOptions:
    found = parse_write_options(options, streaming)
    check_columns(schema, found.topic)
    return found


class BatchWriter(DataSourceArrowWriter):
    """Sent from the driver to the tasks, with the identity of the job."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        run_id = uuid.uuid4().hex
        self._batch = Batch(options.job_id or run_id, 0, run_id)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        if not self._options.exactly_once:
            return _write_at_least_once(self._options, iterator)
        return _write_exactly_once(self._options, of_batch_job(self._batch), iterator)

    def commit(self, messages: Messages) -> None:
        if self._options.exactly_once:
            _commit(self._options, self._batch, messages)

    def abort(self, messages: Messages) -> None:
        if self._options.exactly_once:
            run(driver.abort(self._options, self._batch))


class StreamWriter(_StreamWriter):
    """Another one for each call on the driver: what it must know comes with the messages."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        if not self._options.exactly_once:
            return _write_at_least_once(self._options, iterator)
        return _write_exactly_once(self._options, of_stream(), iterator)

    def commit(self, messages: Messages, batchId: int) -> None:
        batch = _batch_of(messages)
        if batch is not None:
            _commit(self._options, batch, messages)

    def abort(self, messages: Messages, batchId: int) -> None:
        batch = _batch_of(messages)
        if batch is not None:
            run(driver.abort(self._options, batch))
        elif self._options.exactly_once:
            logger.warning("batch %d: what its tasks left open is aborted by the next run", batchId)


def _write_at_least_once(options: WriteOptions, iterator: Iterator[Any]) -> Delivered:
    producer = Producer(options.bootstrap_servers, **options.producer)
    rows = 0
    try:
        run(producer.start())
        for batch in arrow_batches(iterator):
            run(send(producer, rows_of(batch, options.topic)))
            rows += batch.num_rows
    finally:
        run(producer.close(timeout_ms=5_000))
    return Delivered(rows)


def _write_exactly_once(
    options: WriteOptions, attempt: Attempt, iterator: Iterator[Any]
) -> Prepared:
    task = TaskWriter(options, attempt)
    try:
        if not run(task.open()):
            return Prepared(attempt.batch, decided=True)
        for batch in arrow_batches(iterator):
            run(task.send_batch(batch))
        prepared = run(task.prepare())
        stop_at("prepared")
        return prepared
    finally:
        run(task.close())


def _commit(options: WriteOptions, batch: Batch, messages: Messages) -> None:
    found = _prepared(messages)
    transactions = [message.transaction for message in found if message.transaction]
    run(driver.commit(options, batch, transactions, any(message.decided for message in found)))


def _prepared(messages: Messages) -> list[Prepared]:
    return [message for message in messages if isinstance(message, Prepared)]


def _batch_of(messages: Messages) -> Batch | None:
    """None with delivery at least once, and if no task has come to its end."""
    return next((message.batch for message in _prepared(messages)), None)
