"""Which job, batch and task an attempt belongs to: what Spark says in its task context."""

from typing import NamedTuple

from pyspark import TaskContext

_QUERY_ID, _BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"
# Structured Streaming sets the job group to the id of the run: another one after each restart.
_RUN_ID = "spark.jobGroup.id"


class NoIdentity(RuntimeError):
    """Spark does not say which query and batch a task writes for."""


class Batch(NamedTuple):
    """What is decided at once. `job`: the id of a query, or of a batch job, whose batch is 0.

    `run`: of the query or the batch job. An attempt to write a batch may be left over from an
    earlier run, so each run has transactional ids of its own.
    """

    job: str
    batch_id: int
    run: str


class Attempt(NamedTuple):
    """One attempt of one task; `task` is unique among all attempts of a run."""

    batch: Batch
    partition: int
    task: int


def of_batch_job(batch: Batch) -> Attempt:
    context = _context()
    return Attempt(batch, context.partitionId(), context.taskAttemptId())


def of_stream() -> Attempt:
    context = _context()
    job, number = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
    run = context.getLocalProperty(_RUN_ID)
    if not job or not number or not run:
        raise NoIdentity(
            "delivery=exactly-once needs a query of Structured Streaming: Spark has not set"
            f" {_QUERY_ID}, {_BATCH_ID} and {_RUN_ID}"
        )
    batch = Batch(job, int(number), run)
    return Attempt(batch, context.partitionId(), context.taskAttemptId())


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise NoIdentity("there is no task context: write() runs in Spark's tasks only")
    return context
