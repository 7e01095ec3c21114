"""The programs in `examples/`, each killed in the middle, and what they did counted."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from barnabas import Admin, Consumer, Producer
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import create_topic
from tests.support.references import ROOT
from tests.support.shell import Shell

pytestmark = pytest.mark.integration

RECORDS = 600
KILLS = 2
BATCH = 20
QUIET_SECONDS = 2.0


def lines_of(file: Path) -> Counter[str]:
    return Counter(file.read_text().split() if file.exists() else ())


def rows_of(file: Path) -> Counter[str]:
    if not file.exists():
        return Counter()
    database = sqlite3.connect(file, timeout=10)
    try:
        return Counter(value for (value,) in database.execute("SELECT value FROM done"))
    except sqlite3.OperationalError:  # no table yet
        return Counter()
    finally:
        database.close()


async def prepared(cluster: LocalCluster, example: str, file: Path) -> list[str]:
    """Write the records into a topic of this example's own; the command that runs it."""
    topic = f"example-{example}-{file.stem}"
    await create_topic(cluster.bootstrap, topic, 3)
    async with Producer(cluster.bootstrap) as producer:
        for number in range(RECORDS):
            await producer.send(topic, b"%d" % number, partition=number % 3)
        await producer.flush()
    return [sys.executable, str(ROOT / "examples" / f"{example}.py"), topic, str(file)]


async def play(
    cluster: LocalCluster, example: str, file: Path, count: Callable[[Path], Counter[str]]
) -> Counter[str]:
    """Run it, kill it twice in the middle, and let it come to the end; what it has done."""
    command = await prepared(cluster, example, file)
    for run in range(KILLS + 1):
        enough = count(file).total() + 90
        process = subprocess.Popen(command, env=Shell(cluster.bootstrap).environment)
        try:
            if run < KILLS:
                await _until(lambda enough=enough: count(file).total() >= enough)
            else:
                await _until(lambda: len(count(file)) >= RECORDS - BATCH * KILLS)
                await _until_quiet(lambda: count(file).total())
            assert process.poll() is None
        finally:
            process.kill()
            process.wait()
    return count(file)


async def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline, "the example does not come to its end"
        await asyncio.sleep(0.02)


async def _until_quiet(total: Callable[[], int]) -> None:
    """Until nothing more was done for some time: the example reads on without end."""
    last, since = total(), time.monotonic()
    while time.monotonic() - since < QUIET_SECONDS:
        await asyncio.sleep(0.1)
        if total() != last:
            last, since = total(), time.monotonic()


async def test_at_least_once_leaves_nothing_out(cluster: LocalCluster, tmp_path: Path) -> None:
    done = await play(cluster, "at_least_once", tmp_path / "done", lines_of)
    assert len(done) == RECORDS
    assert RECORDS <= done.total() <= RECORDS + BATCH * KILLS, (
        "at most a batch is repeated for a kill"
    )


async def test_at_most_once_repeats_nothing(cluster: LocalCluster, tmp_path: Path) -> None:
    done = await play(cluster, "at_most_once", tmp_path / "done", lines_of)
    assert set(done.values()) == {1}
    assert RECORDS - BATCH * KILLS <= len(done) <= RECORDS, "at most a batch is left out for a kill"


async def test_exactly_once_with_a_database(cluster: LocalCluster, tmp_path: Path) -> None:
    done = await play(cluster, "exactly_once_sqlite", tmp_path / "done.db", rows_of)
    assert len(done) == RECORDS
    assert set(done.values()) == {1}
    async with Admin(cluster.bootstrap) as admin:
        assert await admin.list_group_offsets("exactly-once") == {}


async def test_exactly_once_although_a_member_stalls(cluster: LocalCluster, tmp_path: Path) -> None:
    """It has read records when it stops, and others have worked on them when it goes on."""
    file = tmp_path / "stalled.db"
    command = await prepared(cluster, "exactly_once_sqlite", file)
    environment = Shell(cluster.bootstrap).environment
    processes = [subprocess.Popen(command, env=environment)]
    try:
        await _until(lambda: rows_of(file).total() >= 90)
        await _stop_at_work(processes[0], file)
        processes.append(subprocess.Popen(command, env=environment))
        await _until(lambda: len(rows_of(file)) == RECORDS)
        processes[0].send_signal(signal.SIGCONT)
        await _until_quiet(lambda: rows_of(file).total())
        assert [process.poll() for process in processes] == [None, None]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert set(rows_of(file).values()) == {1}


async def _stop_at_work(process: "subprocess.Popen[bytes]", file: Path) -> None:
    """Stop it outside its transaction, whose lock would keep the others out."""
    while True:
        process.send_signal(signal.SIGSTOP)
        database = sqlite3.connect(file, timeout=1, isolation_level=None)
        try:
            database.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError:
            process.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.05)
        finally:
            database.close()


@pytest.mark.parametrize("example", ["exactly_once_copy", "exactly_once_loop"])
async def test_a_copy_has_the_headers_the_timestamps_and_the_nulls(
    cluster: LocalCluster, example: str
) -> None:
    source, target = f"{example}-from", f"{example}-to"
    await create_topic(cluster.bootstrap, source, 1)
    await create_topic(cluster.bootstrap, target, 1)
    async with Producer(cluster.bootstrap) as producer:
        headers: list[tuple[str, bytes | None]] = [("trace", b"\xff"), ("none", None)]
        await producer.send(source, b"a", b"k", timestamp_ms=5, headers=headers)
        await producer.send(source, None, b"k", timestamp_ms=6)
        await producer.send(source, b"", timestamp_ms=7)
    command = [sys.executable, str(ROOT / "examples" / f"{example}.py"), source, target, "1"]
    process = subprocess.Popen(command, env=Shell(cluster.bootstrap).environment)
    try:
        async with Consumer(
            target, bootstrap_servers=cluster.bootstrap, isolation_level="read_committed",
            auto_offset_reset="earliest",
        ) as consumer, asyncio.timeout(60):  # fmt: skip
            copies = [await anext(consumer) for _ in range(3)]
    finally:
        process.kill()
        process.wait()
    assert [(r.value, r.key, r.timestamp, r.headers) for r in copies] == [
        (b"A", b"k", 5, headers),
        (None, b"k", 6, []),
        (b"", None, 7, []),
    ]
