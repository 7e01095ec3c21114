"""Global options anywhere on the line; exit codes and messages of wrong usage."""

import json
import logging
import os
import re
import resource
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from barnabas_common.errors import NoBrokerReachableError
from barnabas_tools.cli.arguments import hoist_global_options
from barnabas_tools.cli.main import explain, main
from barnabas_tools.cli.settings import Settings, UsageFailed, parse_assignments


def barnabas(*arguments: str, input: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "barnabas_tools.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, input=input, timeout=30)


@pytest.mark.parametrize(
    "given, expected",
    [
        ("topic list --output json", "--output json topic list"),
        ("topic list --output=json", "--output=json topic list"),
        ("topic -b h:1 list -o json", "-b h:1 -o json topic list"),
        ("topic -bh:1 list -ojson", "-bh:1 -ojson topic list"),
        ("topic create x --set a=b", "topic create x --set a=b"),
        ("topic create -- --output", "topic create -- --output"),
        ("topic list --output", "topic list --output"),
    ],
)
def test_global_options_are_found_anywhere(given: str, expected: str) -> None:
    assert hoist_global_options(given.split()) == expected.split()


def test_assignments_keep_everything_after_the_first_equals_sign() -> None:
    assert parse_assignments(["a=b", "c = d=e "]) == {"a": "b", "c": "d=e"}
    with pytest.raises(UsageFailed, match="name=value"):
        parse_assignments(["retention.ms"])


def test_help_lists_what_exists_and_only_that_within_half_a_second() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = barnabas("--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert result.returncode == 0
    _, _, listed = result.stdout.partition("Commands")
    assert re.findall(r"^│ ([a-z]+) ", listed, re.MULTILINE) == [
        "broker",
        "cluster",
        "config",
        "consume",
        "doctor",
        "election",
        "explain",
        "group",
        "lab",
        "log",
        "produce",
        "reassign",
        "replica",
        "simulate",
        "topic",
        "transaction",
        "watch",
        "zk",
    ]
    assert used < 0.5 * 2, "CPU time: other tests may be running"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["topic", "create"],
        ["topic", "create", "t", "--partitions", "0"],
        ["topic", "create", "t", "--replication-factor", "0"],
        ["topic", "create", "t", "--set", "retention.ms"],
        ["topic", "list", "--output", "yaml"],
        ["topic", "list", "--bootstrap", "no-port"],
        ["topic", "nonsense"],
        ["cluster", "kill", "-1"],
        ["cluster", "kill", "two"],
        ["consume", "t", "--max-messages", "0"],
        ["produce", "t", "--file", "/"],
        ["produce", "t", "--acks", "2"],
        ["produce", "t", "--key-separator", ""],
        ["produce", "t", "--compression", "rar"],
        ["consume", "t", "--offset", "3"],
        ["consume", "t", "--partition", "0", "--offset", "soon"],
        ["consume", "t", "--partition", "0", "--offset", "²"],
        ["consume", "t", "--partition", "0", "--offset", "9" * 19],
        ["watch", "--for", "nan"],
        ["doctor", "--wait", "nan"],
        ["doctor", "--wait", "-1"],
        ["consume", "t", "--partition", "0", "--offset", "3", "--from-beginning"],
        ["consume", "t", "--isolation-level", "serializable"],
        ["cluster", "start", "--brokers", "0"],
        ["broker", "run", "--set", "broker.id"],
        ["broker", "health", "nonsense"],
        ["zk", "get", "no/slash"],
        ["zk", "get", "/a/../b"],
        ["zk", "tree", "/.", "--zookeeper", "127.0.0.1:1"],
        ["zk", "get", "/\udcff", "--zookeeper", "127.0.0.1:1"],
        ["config", "describe"],
        ["config", "describe", "--topic", "t", "--broker", "1"],
        ["config", "alter", "--topic", "t"],
        ["config", "alter", "--broker-default", "--set", "retention.ms"],
        ["config", "alter", "--topic", "t", "--set", "a=1", "--delete", "a"],
        ["topic", "alter", "t"],
        ["group", "reset-offsets", "", "--all-topics", "--to-latest"],
        ["election", "run", "--type", "unclean", "--topic", "t", "--partition", "4294967296"],
        ["transaction", "list", "--producer-id", "9" * 30],
        ["transaction", "list", "--duration-filter", "9" * 30],
        ["election", "run", "--all"],
        ["election", "run", "--type", "unclean"],
        ["election", "run", "--type", "odd", "--all"],
        ["election", "run", "--type", "preferred", "--topic", "t", "--all"],
        ["election", "run", "--type", "preferred", "--partition", "0", "--all"],
    ],
)
def test_wrong_usage_exits_with_2_and_says_why_in_one_line(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["barnabas", *arguments])
    monkeypatch.setattr(logging, "lastResort", None)
    with pytest.raises(SystemExit) as ended:
        main()
    said, complained = capsys.readouterr()
    assert ended.value.code == 2
    assert said == ""
    assert re.fullmatch(r"barnabas: .+\n", complained)


def test_a_process_of_wrong_usage_exits_like_that() -> None:
    result = barnabas("consume", "t", "--offset", "3")
    assert (result.returncode, result.stdout) == (2, "")
    assert re.fullmatch(r"barnabas: .+\n", result.stderr)


@pytest.mark.parametrize("arguments", ["--version", "--help", "topic --help", "lab"])
def test_a_full_disk_is_one_line(arguments: str) -> None:
    command = [sys.executable, "-m", "barnabas_tools.cli.main", *arguments.split()]
    with open("/dev/full", "w") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=30)
    assert result.returncode == 1
    assert re.fullmatch(r"barnabas: .*No space left on device\n", result.stderr)


def test_the_version_is_that_of_the_package() -> None:
    result = barnabas("--version")
    assert (result.returncode, result.stdout) == (0, f"barnabas {version('barnabas')}\n")


@pytest.mark.parametrize(
    "command, defaults",
    [("", ["localhost:9092", "table"]), ("cluster start", ["(3)", "(9092)", ".barnabas"])],
)
def test_help_tells_the_defaults(command: str, defaults: list[str]) -> None:
    help_text = barnabas(*command.split(), "--help").stdout
    assert [default for default in defaults if default not in help_text] == []


def test_how_to_name_a_broker_is_told_to_those_who_named_none() -> None:
    error = NoBrokerReachableError("no broker could be reached")
    assert "--bootstrap" in explain(error, Settings())[0]
    assert explain(error, Settings("h:1", bootstrap_given=True)) == (str(error), 1)


def test_an_unreachable_cluster_is_one_line_that_names_the_address() -> None:
    result = barnabas("topic", "list", "--bootstrap", "127.0.0.1:1")
    assert result.returncode == 1
    assert result.stdout == ""
    assert "127.0.0.1:1" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_list_of_commands_loads_neither_broker_nor_simulator_nor_grpc() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "barnabas_tools.cli.main", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "typer" in loaded
    assert not loaded & {"barnabas_broker.server", "barnabas_simulator.cluster", "grpc"}


@pytest.mark.parametrize("command", ["explain", "lab", "simulate", "watch"])
def test_completion_is_an_option_of_the_front_door_only(command: str) -> None:
    help_text = barnabas(command, "--help").stdout
    assert "--help" in help_text and "--install-completion" not in help_text


def test_a_zookeeper_address_that_is_none_is_one_line() -> None:
    result = barnabas("zk", "tree", "--zookeeper", "localhost:port")
    assert result.returncode == 1
    assert result.stderr.startswith("barnabas: 'localhost:port' is no ZooKeeper address")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["m\u00fcnchen-0", "\udcff-0"])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_name_that_the_terminal_cannot_show_is_escaped(
    tmp_path: Path, encoding: str, name: str
) -> None:
    (tmp_path / name).mkdir()
    for suffix in ("log", "index", "timeindex"):
        (tmp_path / name / f"{0:020}.{suffix}").touch()
    (tmp_path / name / "\u00b2.log").touch()  # a digit, but no offset
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "barnabas_tools.entry", "log"]
    for arguments in (["dump"], ["verify"], ["verify", "-o", "json"]):
        result = subprocess.run(
            [*command, *arguments, tmp_path / name],
            env=environment,
            capture_output=True,
            timeout=30,
        )
        assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["partition"] == name


# Commands that print a result without a cluster.
TABLE = ["doctor", "--bootstrap", "127.0.0.1:1"]
LINES = ["doctor", "--bootstrap", "127.0.0.1:1", "-o", "json"]


def in_shell(arguments: list[str], redirection: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "barnabas_tools.entry", *arguments]
    line = f"{shlex.join(command)} {redirection}"
    return subprocess.run(
        ["sh", "-c", line], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-"])
@pytest.mark.parametrize(
    "arguments", [TABLE, LINES, ["produce", "t", "--bootstrap", "127.0.0.1:1"], ["--help"]]
)
def test_a_command_runs_with_closed_streams(arguments: list[str], closed: str) -> None:
    result = in_shell(arguments, closed)
    assert result.returncode == (0 if arguments == ["--help"] else 1)
    assert "Traceback" not in result.stderr and "Exception" not in result.stderr


@pytest.mark.parametrize("arguments", [TABLE, LINES])
def test_output_that_cannot_be_written_is_one_line_on_stderr(arguments: list[str]) -> None:
    result = in_shell(arguments, ">/dev/full")
    assert result.returncode == 1
    assert result.stderr == "barnabas: [Errno 28] No space left on device\n"
