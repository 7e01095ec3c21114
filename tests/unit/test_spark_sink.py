"""The sink's options, columns, and what follows from the records of its topic of decisions."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from barnabas import PreparedTransaction, Producer
from pyspark.sql import Row as SparkRow
from pyspark.sql import types as t
from pyspark.sql.types import StructType
from pyspark_barnabas.event_loop import run
from pyspark_barnabas.options import OptionError
from pyspark_barnabas.writing import writers
from pyspark_barnabas.writing.columns import ColumnError, Row, arrow_batches, check_columns, rows_of
from pyspark_barnabas.writing.identity import Attempt, Batch
from pyspark_barnabas.writing.options import WriteOptions, parse_write_options
from pyspark_barnabas.writing.records import (
    Claim,
    Decision,
    JobState,
    Slot,
    apply,
    claim_record,
    decision_record,
    forgotten_claim,
    retired_claim,
    transactional_id,
)
from pyspark_barnabas.writing.writers import batch_writer, stream_writer

from tests.support.scripted_brokers import ScriptedBrokers

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
BATCH = Batch("query", 7, "run")
ONE, OTHER = Attempt(BATCH, 2, 11), Attempt(BATCH, 2, 12)
SLOT = Slot("run", 2, 0)


# ---- options


def test_settings_of_kafkas_producer_are_those_of_the_client() -> None:
    found = parse_write_options(
        SERVERS
        | {"topic": "out", "kafka.linger.ms": "5", "kafka.acks": "1", "kafka.retries": "3"}
        | {"kafka.compression.type": "zstd", "KAFKA.Batch.Size": "100"},
        streaming=False,
    )
    assert (found.bootstrap_servers, found.topic) == ("localhost:9092", "out")
    assert not found.exactly_once
    assert found.producer == {
        "linger_ms": 5,
        "acks": "1",
        "retries": 3,
        "compression_type": "zstd",
        "batch_size": 100,
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kafka.linger": "1"}, "did you mean 'kafka.linger.ms'"),
        ({"deliverey": "x"}, "did you mean 'delivery'"),
        ({"subscribe": "x"}, "there is no option 'subscribe'"),
        ({"kafka.value.serializer": "x"}, "kafka.value.serializer cannot be set"),
        ({"kafka.transactional.id": "x"}, "use delivery=exactly-once"),
        ({"kafka.sasl.mechanism": "x"}, "kafka.sasl.mechanism is not supported"),
        ({"kafka.linger.ms": "soon"}, "kafka.linger.ms must be a whole number"),
        ({"delivery": "twice"}, "delivery must be at-least-once or exactly-once"),
        ({"jobId": "x"}, "jobId needs delivery=exactly-once"),
        ({"kafka.enable.idempotence": "maybe"}, "kafka.enable.idempotence must be true or false"),
        ({"kafka.acks": "2"}, "kafka.acks must be one of"),
        ({"kafka.buffer.memory": "1"}, "kafka.buffer.memory .* at least one batch of kafka.batch"),
        ({"bootstrap.servers": "other:1"}, "contradict one another"),
        ({"delivery": "exactly-once", "kafka.acks": "1"}, "exactly-once: .* kafka.acks="),
        ({"delivery": "exactly-once", "kafka.acks": "1"}, "contradicts delivery=exactly-once"),
        ({"delivery": "exactly-once", "kafka.retries": "0"}, "contradicts delivery=exactly-once"),
        (
            {"delivery": "exactly-once", "kafka.enable.idempotence": "false"},
            "contradicts delivery=exactly-once: .* kafka.enable.idempotence=True",
        ),
        ({"delivery": "exactly-once", "jobId": "a b"}, "jobId may have letters"),
    ],
)
def test_an_option_that_cannot_work_is_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        parse_write_options(SERVERS | options, streaming=False)


def test_options_that_spark_adds_to_a_stream_are_accepted() -> None:
    added = {"queryName": "copy", "checkpointLocation": "/checkpoint", "topic": "out"}
    assert parse_write_options(SERVERS | added, streaming=True).topic == "out"


def test_a_stream_has_its_own_identity() -> None:
    with pytest.raises(OptionError, match="jobId is for batch jobs"):
        parse_write_options(SERVERS | {"delivery": "exactly-once", "jobId": "x"}, streaming=True)
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers is required"):
        parse_write_options({"topic": "out"}, streaming=True)


def test_a_batch_of_the_producer_is_larger_than_kafkas() -> None:
    assert parse_write_options(SERVERS, streaming=True).producer == {"batch_size": 262_144}


@pytest.mark.parametrize("writer", [batch_writer, stream_writer])
def test_a_topic_is_only_appended_to(writer: Any) -> None:
    with pytest.raises(OptionError, match="use append"):
        writer(SERVERS | {"topic": "out"}, _schema("value string"), True)


# ---- columns


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("key string", "REQUIRED_ATTRIBUTE_NOT_FOUND"),
        ("value int", "value attribute type must be STRING or BINARY, not INT"),
        ("value string, key long", "key attribute type must be STRING or BINARY, not BIGINT"),
        ("value string, topic binary", "topic attribute type must be STRING"),
        ("value string, partition long", "partition attribute type must be INT"),
        ("value string, headers array<string>", "headers attribute type must be ARRAY<STRUCT"),
        ("value string, offset long", "the sink has no column 'offset'"),
        ("value string, key string, Value binary", "AMBIGUOUS_REFERENCE.*occurs twice.*Value"),
    ],
)
def test_a_column_that_cannot_be_written_is_named(schema: str, words: str) -> None:
    with pytest.raises(ColumnError, match=words):
        check_columns(_schema(schema), "out")


def test_the_topic_comes_from_the_option_or_the_column() -> None:
    check_columns(_schema("value string"), "out")
    check_columns(_schema("value binary, topic string"), None)
    check_columns(_schema("value string, headers array<struct<key: string, value: binary>>"), "out")
    with pytest.raises(ColumnError, match="topic option required"):
        check_columns(_schema("value string"), None)


def _schema(text: str) -> StructType:
    simple = {
        "string": t.StringType,
        "binary": t.BinaryType,
        "int": t.IntegerType,
        "long": t.LongType,
    }
    headers = t.ArrayType(t.StructType().add("key", "string").add("value", "binary"))
    found = t.StructType()
    for column in text.split(", ", 1) if "struct" in text else text.split(", "):
        name, kind = column.split(" ", 1)
        if kind.startswith("array<struct"):
            found.add(name, headers)
        elif kind.startswith("array"):
            found.add(name, t.ArrayType(t.StringType()))
        else:
            found.add(name, simple[kind]())
    return found


def _batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def test_rows_are_bytes_with_all_that_a_record_has() -> None:
    headers = pa.array(
        [[{"key": "h", "value": b"1"}], None],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    batch = _batch(
        Value=["a", None], key=[b"k", None], partition=pa.array([1, None], pa.int32()),
        topic=["x", "y"], headers=headers,
    )  # fmt: skip
    assert list(rows_of(batch, None)) == [
        Row("x", b"k", b"a", 1, [("h", b"1")]),
        Row("y", None, None, None, []),
    ]
    assert [row.topic for row in rows_of(batch, "out")] == ["out", "out"]


def test_headers_are_taken_with_names_in_any_case_and_a_null_one_is_named() -> None:
    kind = pa.list_(pa.struct([("Key", pa.string()), ("VALUE", pa.binary())]))
    schema = StructType().add("value", "string")
    schema.add("headers", t.ArrayType(t.StructType().add("Key", "string").add("VALUE", "binary")))
    check_columns(schema, "out")
    batch = _batch(value=["a"], headers=pa.array([[{"Key": "h", "VALUE": None}]], kind))
    assert [row.headers for row in rows_of(batch, "out")] == [[("h", None)]]
    with pytest.raises(ColumnError, match="a header is null"):
        rows_of(_batch(value=["a"], headers=pa.array([[None]], kind)), "out")
    with pytest.raises(ColumnError, match="the key of a header is null"):
        rows_of(_batch(value=["a"], headers=pa.array([[{"Key": None}]], kind)), "out")


def test_a_null_topic_is_an_error_with_kafkas_name() -> None:
    batch = _batch(value=["a", "b"], topic=["x", None])
    with pytest.raises(ColumnError, match="KAFKA_NULL_TOPIC_IN_DATA"):
        list(rows_of(batch, None))
    assert len(list(rows_of(batch, "out"))) == 2


def test_rows_of_an_older_spark_become_arrow() -> None:
    (batch,) = arrow_batches(iter([SparkRow(value="a"), SparkRow(value="b")]))
    assert [row.value for row in rows_of(batch, "out")] == [b"a", b"b"]


# ---- tasks


def test_rows_may_take_longer_to_compute_than_the_delivery_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brokers = ScriptedBrokers(topic="out")
    settings = {"request_timeout_ms": 2_000, "delivery_timeout_ms": 2_500}
    options = WriteOptions(brokers.bootstrap, "out", producer=settings)

    def slowly() -> Iterator[pa.RecordBatch]:
        yield _batch(value=["0"])
        time.sleep(3)
        yield _batch(value=["1"])

    monkeypatch.setattr(writers, "Producer", partial(Producer, runtime=brokers.runtime))
    run(brokers.__aenter__())
    assert writers._write_at_least_once(options, slowly()).rows == 2
    run(brokers.__aexit__())
    assert [record.value for record in brokers.log().records()] == [b"0", b"1"]


# ---- decisions


def state_of(*records: Any) -> JobState:
    states: dict[str, JobState] = {}
    for key, value in records:
        apply(states, key, value)
    return states["query"]


def test_the_first_claim_of_a_batch_counts_and_the_other_takes_the_next_slot() -> None:
    state = state_of(claim_record(ONE, SLOT, "p"), claim_record(OTHER, SLOT, "p"))
    assert state.owns(ONE, SLOT) and not state.owns(OTHER, SLOT)
    assert state.free_slot(OTHER) == Slot("run", 2, 1)


def test_a_slot_serves_every_batch_of_its_run_once() -> None:
    state = state_of(claim_record(ONE, SLOT, "p"))
    following = Attempt(BATCH._replace(batch_id=8), 2, 20)
    assert state.free_slot(following) == SLOT
    assert state.free_slot(Attempt(Batch("query", 7, "later"), 2, 1)) == Slot("later", 2, 0)


def test_a_slot_that_was_retired_or_serves_a_later_batch_is_not_taken() -> None:
    following = Attempt(BATCH._replace(batch_id=8), 2, 20)
    retired = retired_claim("query", SLOT, Claim(7, 11, "p"))
    state = state_of(claim_record(ONE, SLOT, "p"), retired, claim_record(following, SLOT, "p"))
    assert not state.owns(following, SLOT)
    assert state.free_slot(following) == Slot("run", 2, 1)
    state = state_of(claim_record(following, SLOT, "p"), claim_record(ONE, SLOT, "p"))
    assert state.owns(following, SLOT) and not state.owns(ONE, SLOT)
    assert state.free_slot(ONE) == Slot("run", 2, 1)


def test_the_end_of_a_batch_ends_no_later_one_and_an_abort_no_other_run() -> None:
    other = Batch("query", 8, "later")
    state = state_of(
        claim_record(ONE, SLOT, "p"),
        claim_record(Attempt(other, 0, 1), Slot("later", 0, 0), "p"),
        retired_claim("query", Slot("run", 2, 1), Claim(7, 12, "p")),
    )
    assert state.open_until(BATCH, commit=True) == [SLOT]
    following = BATCH._replace(batch_id=8)
    assert state.open_until(following, commit=True) == [Slot("later", 0, 0)]
    assert state.open_until(following, commit=False) == []
    assert state.open_until(other, commit=True) == [SLOT, Slot("later", 0, 0), Slot("run", 2, 1)]


def test_a_decision_and_a_forgotten_claim_are_read_back() -> None:
    transactions = (PreparedTransaction(transactional_id("p", "query", SLOT), 4711, 3),)
    decision = Decision(BATCH, True, transactions)
    state = state_of(
        claim_record(ONE, SLOT, "p"), decision_record(decision), forgotten_claim("query", SLOT)
    )
    assert state == JobState(decision, {})
    assert transactions[0].transactional_id == "p-query-run-2-0"
    assert state_of(claim_record(ONE, SLOT, "p")).claims == {SLOT: Claim(7, 11, "p")}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"x"),
        (b"flight", b"x"),
        (b'["other","query"]', b"{}"),
        (b'["decision","query"]', None),
    ],
)
def test_a_record_of_something_else_is_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises((ValueError, LookupError, TypeError)):
        apply({}, key, value)


@pytest.mark.parametrize(
    ("decided", "commit", "done", "given_up"),
    [
        (BATCH, True, True, False),
        (BATCH._replace(run="later"), True, True, False),
        (BATCH._replace(batch_id=8), False, True, False),
        (BATCH._replace(batch_id=6), True, False, False),
        (BATCH, False, False, True),
        (BATCH._replace(run="earlier"), False, False, False),
    ],
)
def test_what_a_decision_says_of_a_batch(
    decided: Batch, commit: bool, done: bool, given_up: bool
) -> None:
    state = state_of(decision_record(Decision(decided, commit)))
    assert (state.is_done(BATCH), state.is_given_up(BATCH)) == (done, given_up)
