"""What commands print: tables that are never cut, JSON lines, records byte for byte."""

import asyncio
import io
import json
import logging
import os
import sys

import pytest
from barnabas.admin import BrokerReplicas
from barnabas.consumer import ConsumerRecord
from barnabas_common.messages.metadata import PartitionMetadata, TopicMetadata
from barnabas_common.messages.replicas import ReplicaDescription
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.cli.admin.topic import shown, topic_row, with_defaults
from barnabas_tools.cli.main import app
from barnabas_tools.cli.observe.replica import replica_rows
from barnabas_tools.cli.output import print_rows
from barnabas_tools.cli.records.consume import Line, record_line, record_row
from barnabas_tools.cli.records.lines import lines
from barnabas_tools.cli.records.produce import split_line
from barnabas_tools.cli.settings import CommandFailed, Output, Settings
from typer.testing import CliRunner

LONG = "x" * 500


def test_a_table_in_a_pipe_is_neither_cut_nor_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"name": LONG, "value": 7, "brokers": [1, 2], "well": True, "leader": None}]
    print_rows(Settings(), ("name", "value", "brokers", "well", "leader"), rows)
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.split() == ["NAME", "VALUE", "BROKERS", "WELL", "LEADER"]
    assert row.split() == [LONG, "7", "1,2", "yes", "-"]


class Broken(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("output", Output)
def test_a_reader_that_has_gone_is_told_as_such(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`main` then exits with 0; rich would exit with 1."""
    monkeypatch.setattr(sys, "stdout", Broken())
    with pytest.raises(BrokenPipeError):
        print_rows(Settings(output=output), ("a",), [{"a": 1}])


def test_square_brackets_in_a_cell_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(Settings(), ("name",), [{"name": "[red]x[/red]"}])
    assert "[red]x[/red]" in capsys.readouterr().out


def test_json_is_one_object_a_line_with_all_fields(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"a": 1, "b": None}, {"a": "ü", "b": [1]}]
    print_rows(Settings(output=Output.JSON), ("a",), rows)
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == rows


def test_replicas_that_a_reassignment_adds_are_not_missed_yet() -> None:
    """Kafka's rule: ISR against |RS - AR|."""
    on_its_way = PartitionMetadata(0, 0, 1, 3, [4, 5, 1, 2], [1, 2])
    thin = PartitionMetadata(1, 0, 1, 3, [4, 1, 2], [1])
    row = topic_row(
        TopicMetadata("t", partitions=[on_its_way, thin]),
        {TopicPartition("t", 0): 2, TopicPartition("t", 1): 1},
    )
    assert row["under_replicated"] == 1
    assert topic_row(TopicMetadata("t", partitions=[on_its_way]))["under_replicated"] == 1


@pytest.mark.parametrize(
    "arguments", ["cluster logs 1", "group reset-offsets g --all-topics --to-latest --export"]
)
def test_what_prints_text_alone_refuses_json(arguments: str) -> None:
    result = CliRunner().invoke(app, ["-o", "json", *arguments.split()])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.endswith("--output json\n")


def record(key: bytes | None, value: bytes | None) -> ConsumerRecord:
    return ConsumerRecord("t", 2, 41, 1_700_000_000_000, 0, key, value, [("h", b"\xff")], 5)


def test_a_record_is_printed_byte_for_byte() -> None:
    plain = Line(key=False, offset=False, partition=False, timestamp=False, separator="\t")
    assert record_line(record(b"k", b"\xff\x00v"), plain) == b"\xff\x00v"
    assert record_line(record(None, None), plain) == b"null"


def test_a_printed_record_shows_what_was_asked_for_in_kafkas_order() -> None:
    full = Line(key=True, offset=True, partition=True, timestamp=True, separator="|")
    assert record_line(record(b"k", b"v"), full) == b"1700000000000|2|41|k|v"


def test_headers_are_printed_as_kafkas_console_consumer_does() -> None:
    shown = Line(False, False, False, False, " ", headers=True)
    assert record_line(record(b"k", b"v"), shown) == b"h:\xff v"
    several = record(b"k", b"v")._replace(headers=[("a", b"1"), ("b", None), ("a", b"")])
    assert record_line(several, shown) == b"a:1,b:null,a: v"
    assert record_line(several._replace(headers=[]), shown) == b"NO_HEADERS v"


def test_a_record_as_json_keeps_text_as_text_and_bytes_as_base64() -> None:
    row = record_row(record("ü".encode(), b"\xff"))
    assert row["key"] == "ü"
    assert row["value"] == {"base64": "/w=="}
    assert row["headers"] == [["h", {"base64": "/w=="}]]
    assert (row["topic"], row["partition"], row["offset"]) == ("t", 2, 41)
    json.dumps(row)


def test_a_line_is_split_at_the_first_separator_only() -> None:
    assert split_line(b"k:v:w", b":", 1) == (b"k", b"v:w")
    assert split_line(b"k:v", None, 1) == (None, b"k:v")
    with pytest.raises(CommandFailed, match="line 7"):
        split_line(b"nothing", b":", 7)


def test_a_separator_may_be_any_bytes(caplog: pytest.LogCaptureFixture) -> None:
    """A shell passes them on as they are, and Python as halves of characters."""
    # The command silences this logger; the fixture undoes that.
    caplog.set_level(logging.CRITICAL, "barnabas.producer")
    shown = Line(key=True, offset=False, partition=False, timestamp=False, separator="\udcff")
    assert record_line(record(b"k", b"v"), shown) == b"k\xffv"
    with pytest.raises(CommandFailed, match="line 7"):
        split_line(b"nothing", b"\xff", 7)
    result = CliRunner().invoke(
        app,
        ["-b", "127.0.0.1:1", "produce", "t", "--file", "/dev/null", "--key-separator", "\udcff"],
    )
    assert result.exit_code == 1 and "no broker could be reached" in result.stderr


async def test_lines_come_from_a_pipe_as_they_are_written() -> None:
    reader, writer = os.pipe()
    found = lines(reader)
    os.write(writer, b"one\nt")
    assert await anext(found) == b"one"
    os.write(writer, b"wo\r\n\nlast")
    assert await anext(found) == b"two\r"
    assert await anext(found) == b""
    os.close(writer)
    assert [line async for line in found] == [b"last"]
    os.close(reader)


async def test_a_line_without_end_is_read_until_its_reader_gives_up() -> None:
    """`produce < /dev/zero` must let the event loop run, so that Ctrl-C can cancel it."""
    descriptor = os.open("/dev/zero", os.O_RDONLY)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(lines(descriptor))
    os.close(descriptor)


async def test_lines_come_from_a_file_too(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "records")
    with open(path, "wb") as file:
        file.write(b"a\n" * 100_000)
    descriptor = os.open(path, os.O_RDONLY)
    assert [line async for line in lines(descriptor)] == [b"a"] * 100_000
    os.close(descriptor)


@pytest.mark.parametrize(
    "brokers, factor, configs, expected",
    [
        (3, None, {}, (3, {"min.insync.replicas": "2"})),
        (5, None, {}, (3, {"min.insync.replicas": "2"})),
        (2, None, {}, (2, {})),
        (1, None, {}, (1, {})),
        (3, 1, {}, (1, {})),
        (5, 5, {}, (5, {"min.insync.replicas": "2"})),
        (3, 3, {"min.insync.replicas": "3"}, (3, {"min.insync.replicas": "3"})),
    ],
)
def test_a_topic_is_safe_unless_told_otherwise(
    brokers: int,
    factor: int | None,
    configs: dict[str, str],
    expected: tuple[int, dict[str, str]],
) -> None:
    assert with_defaults(brokers, factor, configs) == expected


def replica(leads: bool, epoch: int, end: int, isr: list[int] | None = None) -> ReplicaDescription:
    return ReplicaDescription(
        "t", 0, is_leader=leads, leader_epoch=epoch, log_end_offset=end, in_sync_replicas=isr or []
    )


def test_lag_and_isr_are_told_by_the_leader_of_the_highest_epoch() -> None:
    rows = replica_rows(
        [
            BrokerReplicas(3, [replica(True, 4, 50, [1, 2, 3])]),
            BrokerReplicas(1, [replica(True, 5, 20, [1, 2])]),
            BrokerReplicas(2, [replica(False, 5, 17)]),
        ]
    )
    assert [row["broker"] for row in rows] == [1, 2, 3]
    assert [row["lag"] for row in rows] == [0, 3, 0]
    assert [row["in_sync"] for row in rows] == [True, True, False]
    assert all(row["in_sync_replicas"] == [1, 2] for row in rows)


def test_without_a_leader_lag_is_unknown() -> None:
    (row,) = replica_rows([BrokerReplicas(2, [replica(False, 5, 17)])])
    assert row["lag"] is None and row["in_sync"] is None


def test_internal_topics_are_left_out_on_request() -> None:
    topics = [TopicMetadata("__consumer_offsets", is_internal=True), TopicMetadata("orders")]
    assert shown(topics, False) == topics
    assert [topic.topic for topic in shown(topics, True)] == ["orders"]
