"""Ctrl-C and SIGTERM end each long-running command soon, with exit code 130 and no traceback.

It may come at any moment, so a command is also interrupted while it starts. A traceback is allowed
only while Python itself starts, because it is Python's.
"""

import array
import fcntl
import os
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from barnabas_tools.local.cluster import LocalCluster

from tests.support.shell import Shell

pytestmark = pytest.mark.integration

TOPIC = "interrupted"
_started: list[subprocess.Popen[str]] = []


@pytest.fixture(autouse=True)
def none_is_left() -> Iterator[None]:
    yield
    while _started:
        process = _started.pop()
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        shell = Shell(cluster.bootstrap)
        shell.ok("topic", "create", TOPIC, "--partitions", "4", "--replication-factor", "3")
        shell.ok("produce", TOPIC, "--partition", "2", stdin="x\n")
        yield cluster


def start(
    cluster: LocalCluster, *arguments: str, module: str = "barnabas_tools.cli.main"
) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env=Shell(cluster.bootstrap).environment,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    _started.append(process)
    return process


def first_line(stream: IO[str]) -> str:
    """Return the first line of a command's output, which must come within a minute."""
    ready, _, _ = select.select([stream], [], [], 60)
    assert ready, "nothing was printed"
    return stream.readline()


def interrupt(
    process: subprocess.Popen[str], number: signal.Signals = signal.SIGINT
) -> tuple[str, str]:
    """Send a signal to a command; return what it printed from then on."""
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "Traceback" not in err and "Exception" not in err
    return out, err


# The text to wait for on stdout or stderr: after it the command is at work.
LONG_COMMANDS = {
    "consume": (("consume", TOPIC, "--from-beginning"), "stdout"),
    "watch": (("watch", TOPIC, "--events-only", "--from-beginning"), "stdout"),
    "watch a group": (("watch", "--group", "nothing"), "stdout"),
    "simulate": (("simulate", "run", "1000", "--jobs", "1"), "stderr"),
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", LONG_COMMANDS)
def test_a_long_command_in_the_midst_of_its_work(
    cluster: LocalCluster, name: str, number: signal.Signals
) -> None:
    arguments, where = LONG_COMMANDS[name]
    process = start(cluster, *arguments)
    stream = process.stdout if where == "stdout" else process.stderr
    assert stream is not None and first_line(stream)
    out, err = interrupt(process, number)
    if name == "consume":
        assert (out, err) == ("", "1 record consumed\n")


def test_a_consumer_that_is_terminated_leaves_its_group_and_commits(cluster: LocalCluster) -> None:
    """Also in the background of a script, where the shell makes it ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = start(cluster, "consume", TOPIC, "--from-beginning", "--group", "terminated")
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.stdout is not None and first_line(process.stdout)
    interrupt(process, signal.SIGTERM)
    shell = Shell(cluster.bootstrap)
    (row,) = shell.rows("group", "describe", "terminated", "--state")
    assert (row["state"], row["members"], row["lag"]) == ("Empty", 0, 0)


@pytest.mark.parametrize("delay_ms", range(0, 1000, 50))
def test_a_command_that_has_just_started(cluster: LocalCluster, delay_ms: int) -> None:
    process = start(cluster, "consume", TOPIC, module="barnabas_tools.entry")
    time.sleep(delay_ms / 1000)  # the delay chooses the moment
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode in (130, 1, -signal.SIGINT), err
    assert "barnabas" not in err.replace("0 records consumed", "") and out == ""


SIMULATE = ("simulate", "run", "1000", "--jobs")


@pytest.mark.parametrize("moment", range(6))
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_simulation_at_any_moment(jobs: int, moment: int) -> None:
    """A shell interrupts the processes of a command together; none of them says anything else."""
    process = subprocess.Popen(
        [sys.executable, "-m", "barnabas_tools.entry", *SIMULATE, str(jobs)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    _started.append(process)
    assert process.stderr is not None
    assert first_line(process.stderr).startswith("0 of 1000 runs")
    time.sleep(0.5 * moment)  # the delay chooses the moment
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    line = r"interrupted after \d+ of 1000 runs, \d+ acknowledged records, 0 violations\n"
    assert re.fullmatch(rf"(?:1 of 1000 runs, 0 violations\n)?{line}", err)


def test_a_consumer_whose_reader_goes_away_leaves_and_commits_what_it_printed(
    cluster: LocalCluster,
) -> None:
    """As `consume --group | head` does it; the pipe is full when its reader goes."""
    shell = Shell(cluster.bootstrap)
    shell.ok("topic", "create", "long", "--partitions", "1", "--replication-factor", "1")
    shell.ok("produce", "long", stdin=f"{'x' * 100}\n" * 3_000)
    process = start(cluster, "consume", "long", "--from-beginning", "--group", "readers")
    assert process.stdout is not None and process.stderr is not None
    pipe = process.stdout.fileno()
    deadline = time.monotonic() + 60
    while bytes_in(pipe) < 60_000 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    printed = int(process.stderr.read().split()[0])
    assert 0 < printed < 700
    assert shell.rows("group", "describe", "readers", "--members") == []
    (row,) = shell.rows("group", "describe", "readers")
    assert row["current_offset"] == printed


def bytes_in(pipe: int) -> int:
    """How much was written to a pipe and not read."""
    counted = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, counted)
    return counted[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_produce_that_waits_for_input(cluster: LocalCluster, number: signal.Signals) -> None:
    process = start(cluster, "produce", TOPIC, "--output", "json")
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("first\n")
    process.stdin.flush()
    assert '"topic"' in first_line(process.stdout)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == "1 record delivered\n"


def test_a_question_that_is_not_answered_changes_nothing(cluster: LocalCluster) -> None:
    process = start(cluster, "topic", "delete", TOPIC, "--output", "json")
    assert process.stdin is not None and process.stderr is not None
    asked = "".join(process.stderr.read(1) for _ in "Delete")
    assert asked == "Delete"
    out, _ = interrupt(process)
    assert out == ""
    shell = Shell(cluster.bootstrap)
    refused = shell.run("topic", "delete", TOPIC, "--output", "json", stdin="n\n")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert TOPIC in [row["topic"] for row in shell.rows("topic", "list")]


def test_produce_that_cannot_deliver_names_a_partition_and_ends(tmp_path: Path) -> None:
    with LocalCluster(tmp_path) as cluster:
        shell = Shell(cluster.bootstrap)
        shell.ok("topic", "create", TOPIC, "--partitions", "4", "--replication-factor", "3")
        for broker in (1, 2):
            cluster.kill(broker)
        process = start(cluster, "produce", TOPIC, "--partition", "2")
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write("stuck\n")
        process.stdin.flush()
        told = first_line(process.stderr)
        assert told.startswith("1 record not acknowledged yet, still trying;")
        named = re.findall(r"`barnabas (explain \S+)`", told)
        assert named == [f"explain {TOPIC}-2"]
        assert "broker" in shell.ok(*named[0].split())
        began = time.monotonic()
        _, err = interrupt(process)
        assert time.monotonic() - began < 10
        assert "0 records delivered" in err
