"""`barnabas watch --group` in a terminal, whatever the terminal and the cluster do."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from barnabas import Admin
from barnabas.sync import Consumer, Producer
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import create_topic
from tests.support.shell import COMMAND, Shell

pytestmark = pytest.mark.integration

GROUP = "watched"
ALTERNATE_SCREEN, END_OF_IT = "\x1b[?1049h", "\x1b[?1049l"
_COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3|9)\d(?:;\d+)*m")


class Terminal:
    """A command with a terminal of 120 columns and 30 lines; `seen` is everything it wrote."""

    def __init__(self, cluster: LocalCluster, *arguments: str, **environment: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            env=Shell(cluster.bootstrap).environment | {"TERM": "xterm"} | environment,
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self.seen = ""

    def read(self, seconds: float) -> bool:
        """Take what it writes; False if that was nothing."""
        ready, _, _ = select.select([self._master], [], [], seconds)
        try:
            data = os.read(self._master, 65536) if ready else b""
        except OSError:  # the command has ended
            data = b""
        self.seen += data.decode(errors="replace")
        return bool(data)

    def until(self, text: str, within: float = 30) -> None:
        deadline, start = time.monotonic() + within, len(self.seen)
        while text not in self.seen[start:]:
            assert time.monotonic() < deadline, (text, self.seen[-3000:])
            self.read(0.2)

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        while self.read(10.0):
            pass
        return self.process.wait(30)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)


@contextmanager
def terminal(cluster: LocalCluster, *arguments: str, **environment: str) -> Iterator[Terminal]:
    opened = Terminal(cluster, *arguments, **environment)
    try:
        yield opened
    finally:
        opened.close()


async def test_the_screen_follows_a_group_through_the_death_of_its_coordinator(
    cluster: LocalCluster,
) -> None:
    await create_topic(cluster.bootstrap, "watched-topic", 3)
    with Producer(cluster.bootstrap) as producer:
        for number in range(30):
            producer.send("watched-topic", b"x", partition=number % 3)
    with terminal(cluster, "watch", "--group", GROUP) as shown:
        shown.until("there is no such group yet")
        with Consumer(
            "watched-topic", bootstrap_servers=cluster.bootstrap, group_id=GROUP,
            client_id="till", auto_offset_reset="earliest", enable_auto_commit=False,
        ) as consumer:  # fmt: skip
            read = 0
            while read < 30:
                read += len(consumer.poll(timeout_ms=200))
            shown.until("Stable, generation 1, 1 member, range")
            shown.until("group-stable")
            consumer.commit()
            shown.until("lag 0")
            async with Admin(cluster.bootstrap) as admin:
                before = (await admin.describe_groups([GROUP]))[GROUP].coordinator
            cluster.kill(before)
            shown.until("coordinator-loaded")
            assert (
                f"generation 1, 1 member, range, coordinator {_other(shown, before)}" in shown.seen
            )
            cluster.restart(before)
        shown.until("Empty, generation 2, 0 members")
        assert shown.interrupt() == 130
    assert 0 <= shown.seen.rfind(ALTERNATE_SCREEN) < shown.seen.rfind(END_OF_IT)
    assert "Traceback" not in shown.seen


def _other(shown: Terminal, before: int) -> str:
    """The number of the next coordinator, once it is shown."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = re.findall(r"coordinator (\d)", shown.seen)
        if found and int(found[-1]) != before:
            return found[-1]
        shown.read(0.2)
    raise AssertionError(shown.seen[-3000:])


def test_without_colour(cluster: LocalCluster) -> None:
    with terminal(cluster, "watch", "--group", "nothing", NO_COLOR="1") as shown:
        shown.until("there is no such group yet")
        assert shown.interrupt() == 130
    assert not _COLOUR.search(shown.seen)
    assert END_OF_IT in shown.seen


def test_a_terminal_that_cannot_be_redrawn_gets_lines(cluster: LocalCluster) -> None:
    with terminal(cluster, "watch", "--group", "nothing", TERM="dumb") as shown:
        shown.until("there is no such group yet")
        assert shown.interrupt() == 130
    assert "\x1b" not in shown.seen


async def test_once_prints_the_state_and_the_stored_events(cluster: LocalCluster) -> None:
    await create_topic(cluster.bootstrap, "once-topic", 1)
    shell = Shell(cluster.bootstrap)
    assert "there is no such group yet" in shell.run("watch", "--group", "never", "--once").stdout
    with Producer(cluster.bootstrap) as producer:
        producer.send("once-topic", b"x")
    read = shell.run("consume", "once-topic", "--group", "once", "--max-messages", "1",
                     "--from-beginning")  # fmt: skip
    assert read.returncode == 0, read.stderr
    shown = shell.run("watch", "--group", "once", "--once")
    assert shown.returncode == 0, shown.stderr
    assert "Empty" in shown.stdout and "group-stable" in shown.stdout
    assert "--events-only" in shell.run("watch", "--group", "once", "--events-only").stderr


def test_without_a_cluster_it_says_so_at_once(cluster: LocalCluster) -> None:
    shell = Shell("localhost:1")
    result = shell.run("watch", "--group", "nothing")
    assert result.returncode == 1 and "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1
