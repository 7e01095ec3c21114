"""The demo's check finds each kind of fault, planted here."""

import json
import sys
from pathlib import Path

import pandas as pd
import pytest
from barnabas import ConsumerRecord
from barnabas.producer.handle import RecordMetadata
from barnabas_common.errors import DeliveryTimeoutError

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "demo"))

from deliveries import Deliveries, ReadBack, compare
from monitor import Election, Partition
from rich.console import Console
from spark_check import agrees
from summary import Run, summary

ROWS = 10
SENT = [json.dumps({"row": row}).encode() for row in range(ROWS)]


def record(row: int, offset: int | None = None, value: bytes | None = None) -> ConsumerRecord:
    """Return the record of a row: even rows are in partition 0, odd ones in 1, from offset 0 on."""
    at = row // 2 if offset is None else offset
    return ConsumerRecord("flights", row % 2, at, 0, 0, None, value or SENT[row], [], 0)


@pytest.fixture
def deliveries() -> Deliveries:
    """Return deliveries in which every row is acknowledged."""
    result = Deliveries(ROWS)
    for row in range(ROWS):
        result.callback(row)(RecordMetadata("flights", row % 2, row // 2, 0), None)
    return result


def everything() -> list[ConsumerRecord]:
    return [record(row) for row in range(ROWS)]


def test_a_good_run_is_found_good(deliveries: Deliveries):
    result = compare(SENT, deliveries, everything())
    assert result == ReadBack(records=10, per_partition={0: 5, 1: 5})
    assert result.good


def test_a_lost_row_is_reported(deliveries: Deliveries):
    records = everything()
    del records[3]
    result = compare(SENT, deliveries, records)
    assert result.lost == 1
    assert not result.good


def test_a_row_that_was_never_acknowledged_may_be_missing():
    deliveries = Deliveries(ROWS)
    deliveries.callback(0)(RecordMetadata("flights", 0, 0, 0), None)
    deliveries.callback(1)(None, DeliveryTimeoutError("too late"))
    assert compare(SENT, deliveries, [record(0)]).good
    assert deliveries.acked == 1
    assert len(deliveries.failures) == 1


def test_a_copy_left_by_a_retry_is_reported(deliveries: Deliveries):
    result = compare(SENT, deliveries, [*everything(), record(2, offset=5), record(4, offset=6)])
    assert result.duplicated == 2
    assert not result.good


@pytest.mark.parametrize("value", [b'{"row":3}', b"3", b"not json", b'{"row":99}', b'{"row":-1}'])
def test_an_altered_row_is_reported_and_counts_as_lost(deliveries: Deliveries, value: bytes):
    records = everything()
    records[3] = record(3, value=value)
    result = compare(SENT, deliveries, records)
    assert (result.altered, result.lost) == (1, 1)
    assert not result.good


def test_a_tombstone_is_no_row(deliveries: Deliveries):
    records = everything()
    records[3] = records[3]._replace(value=None)
    assert compare(SENT, deliveries, records).altered == 1


def test_a_row_at_another_offset_than_the_acknowledged_one_is_reported(deliveries: Deliveries):
    records = everything()
    records[8] = record(8, offset=7)
    result = compare(SENT, deliveries, records)
    assert (result.misplaced, result.lost) == (1, 0)
    assert not result.good


def test_rows_out_of_order_are_reported(deliveries: Deliveries):
    records = everything()
    records[2], records[4] = records[4], records[2]
    result = compare(SENT, deliveries, records)
    assert result.reordered == 1
    assert not result.good


def test_the_longest_gap_between_acks_by_partition():
    times = iter([0.0, 2.0, 2.5, 3.0, 4.0, 7.4, 6.0])
    deliveries = Deliveries(ROWS, clock=lambda: next(times))
    deliveries.begin()
    for row, partition in enumerate([0, 1, 0, 0, 1]):
        deliveries.callback(row)(RecordMetadata("flights", partition, row, 0), None)
    assert deliveries.longest_gap == {0: pytest.approx(3.4), 1: pytest.approx(3.0)}


FRAME = pd.DataFrame({"carrier": ["AA", "AA", "UA"], "dep_delay": [1.0, 2.0, float("nan")]})


@pytest.mark.parametrize(
    ("rows", "delays", "same"),
    [
        (3, {"AA": 1.5, "UA": None}, True),
        (3, {"AA": 1.5001, "UA": None}, False),
        (3, {"AA": None, "UA": None}, False),
        (3, {"AA": 1.5, "UA": 0.0}, False),
        (3, {"AA": 1.5}, False),
        (2, {"AA": 1.5, "UA": None}, False),
        (4, {"AA": 1.5, "UA": None}, False),
    ],
)
def test_spark_agrees_only_with_every_row_and_the_same_means(rows, delays, same):
    assert agrees(FRAME, rows, delays) is same


def test_the_table_shows_what_was_lost_and_who_was_elected(deliveries: Deliveries):
    election = Election(2, 1.25, {0: Partition(2, 0)}, {0: Partition(3, 1)})
    run = Run(victim=2, batches_retried=7, election=election)
    console = Console(width=120, record=True, file=sys.stderr)
    found = compare(SENT, deliveries, everything()[1:])
    console.print(summary(ROWS, 3, deliveries, found, run))
    lines = {
        cells[0].strip(): cells[1].strip()
        for line in console.export_text().splitlines()
        if len(cells := line.strip("│ ").split("│")) == 2
    }
    assert lines["acknowledged and lost"] == "1"
    assert lines["batches retried"] == "7"
    assert lines["longest gap between acks, by partition"].endswith("2: no rows")
    assert "1.25 s after the kill (0: 2→3, epoch 0→1)" in lines["killed, and the election after it"]
