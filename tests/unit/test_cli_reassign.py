"""`barnabas reassign` called wrongly: one line that says what is wanted, and exit code 2."""

from pathlib import Path

import pytest
from barnabas_tools.cli.main import app
from typer.testing import CliRunner


@pytest.mark.parametrize(
    ("complaint", "arguments"),
    [
        ("TOPIC-NUMBER", ["execute", "--move", "flights=1"]),
        ("TOPIC-NUMBER", ["cancel", "--partition", "flights-x"]),
        ("TOPIC-NUMBER", ["execute", "--move", "flights-4294967296=1"]),
        ("flights-0 twice", ["execute", "--move", "flights-0=1", "--move", "flights-0=2"]),
        ("numbers", ["execute", "--move", "flights-0=one"]),
        ("numbers", ["execute", "--move", "flights-0=4294967296"]),
        ("numbers", ["plan", "--brokers", "1;2"]),
        ("TOPIC-N=ID,...", ["execute", "--move", "flights-0"]),
        ("--throttle", ["execute", "--move", "flights-0=1", "--throttle", "0"]),
        ("either", ["execute"]),
        ("either", ["execute", "FILE", "--move", "flights-0=1"]),
        ("what to cancel", ["cancel"]),
        ("what to cancel", ["cancel", "--all", "--partition", "flights-0"]),
        ("not JSON", ["execute", "-"]),
        ("--timeout", ["execute", "--move", "flights-0=1", "--wait", "--timeout", "nan"]),
        ("--timeout", ["status", "--wait", "--timeout", "-1"]),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(
    complaint: str, arguments: list[str]
) -> None:
    result = CliRunner().invoke(app, ["reassign", *arguments])
    assert result.exit_code == 2
    assert complaint in result.stderr and result.stdout == ""


@pytest.mark.parametrize("name", ["flights", "flights-", "flights-²", "flights--", ""])
@pytest.mark.parametrize(
    "arguments", [["explain"], ["reassign", "cancel", "--partition"]], ids=["explain", "reassign"]
)
def test_every_command_wants_the_same_name_of_a_partition(arguments: list[str], name: str) -> None:
    result = CliRunner().invoke(app, [*arguments, name])
    assert result.exit_code == 2 and result.stdout == ""
    wanted = f"barnabas: a partition is TOPIC-NUMBER, a name like flights-0, not {name!r}\n"
    assert result.stderr == wanted


@pytest.mark.parametrize("text", ["[" * 100_000, "", "{}", '{"partitions": [1]}'])
def test_a_plan_that_is_none_is_one_line(text: str) -> None:
    result = CliRunner().invoke(app, ["reassign", "execute", "-"], input=text)
    assert result.exit_code == 2 and result.stderr.startswith("barnabas: ")
    assert result.stderr.count("\n") == 1


def test_a_plan_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for file in ("missing", "binary"):
        result = CliRunner().invoke(app, ["reassign", "execute", str(tmp_path / file)])
        assert result.exit_code == 1 and result.stderr.count(file) == 1


def test_a_topic_to_be_altered_needs_a_change() -> None:
    result = CliRunner().invoke(app, ["topic", "alter", "flights"])
    assert result.exit_code == 2 and "--partitions" in result.stderr
