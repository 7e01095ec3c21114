"""Kills inside the system calls of a pass: a process of its own, real files, SIGKILL.

After each death a start finds the log: the newest record of every key at its offset, and nothing
that was not written. Every third process dies twice, the second time perhaps while it recovers.
"""

import asyncio
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.compacted import KeyedRecord, newest, put, records_in
from tests.support.compacting_process import NAME, started

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
RECORDS = 300
LIMIT_SECONDS = 60


async def prepared(folder: Path) -> list[KeyedRecord]:
    """A log of many segments, of which a pass has compacted a part; all that was ever written."""
    manager, log = await started(folder)
    chance = random.Random(5)
    written: list[KeyedRecord] = []
    for number in range(RECORDS):
        key = b"key-%d" % chance.randrange(60)
        value = None if number % 11 == 10 else b"%d " % number * 20
        written.append((log.log_end_offset, key, value))
        put(log, (key, value), epoch=number // 50)
        if number == RECORDS // 2:
            log.roll()
            await manager.flush(log)
            await manager.cleaner.clean(log)
    log.roll()
    await manager.flush(log)
    await manager.stop()
    manager.unlock_directories()
    return written


async def found_in(folder: Path) -> tuple[list[KeyedRecord], list[KeyedRecord]]:
    """The records that a start finds, and those that are left by a whole pass after it."""
    manager, log = await started(folder)
    assert not log.cut_at_start
    assert (log.log_start_offset, log.log_end_offset) == (0, RECORDS)
    names = [path.name for path in (folder / str(NAME)).iterdir()]
    assert not [name for name in names if name.endswith((".cleaned", ".swap"))]
    found = records_in(log)
    await manager.flush(log)
    await manager.cleaner.clean(log)
    left = records_in(log)
    await manager.stop()
    manager.unlock_directories()
    return found, left


def compact(folder: Path, *death: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.support.compacting_process", str(folder)]
    return subprocess.run(
        [*command, *map(str, death)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


def check(folder: Path, written: list[KeyedRecord], how: str) -> None:
    found, left = asyncio.run(found_in(folder))
    assert set(found) <= set(written), f"{how}: a record came back changed, or at another offset"
    assert [one[0] for one in found] == sorted({one[0] for one in found}), how
    assert set(newest(written)) <= set(found), f"{how}: a record is lost"
    assert left == newest(written), how


@pytest.mark.parametrize("kills", [25, pytest.param(200, marks=pytest.mark.slow)])
def test_a_process_that_is_killed_inside_a_call_of_a_pass(kills: int, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    written = asyncio.run(prepared(origin))
    whole = tmp_path / "whole"
    shutil.copytree(origin, whole)
    done = compact(whole)
    assert done.returncode == 0, done.stderr
    calls = int(done.stdout)
    assert calls > 50, "a pass renames, flushes and removes many files"
    check(whole, written, "no death")
    chance = random.Random(kills)
    killed = 0
    while killed < kills:
        folder = tmp_path / f"death-{killed}"
        shutil.copytree(origin, folder)
        told = []
        for _ in range(2 if killed % 3 == 0 else 1):
            when = chance.choice(("before", "during", "after"))
            death = (chance.randint(1, calls), when, chance.randrange(400))
            done = compact(folder, *death)
            assert done.returncode in (0, -9), done.stderr
            killed += done.returncode == -9
            told.append(f"{death}: {done.returncode}")
        check(folder, written, " then ".join(told))
        shutil.rmtree(folder)


def test_a_lost_segment_and_one_that_is_back_are_noticed(tmp_path: Path) -> None:
    """The check itself, on faults that are planted."""
    written = asyncio.run(prepared(tmp_path / "origin"))
    lost, back = tmp_path / "lost", tmp_path / "back"
    for folder in (lost, back):
        shutil.copytree(tmp_path / "origin", folder)
        assert compact(folder).returncode == 0
    segments = sorted((lost / str(NAME)).glob("*.log"))
    newest_one = max(segments[:-1], key=lambda path: path.stat().st_size)
    for path in (lost / str(NAME)).glob(f"{newest_one.stem}.*"):
        path.unlink()
    with pytest.raises(AssertionError, match="a record is lost"):
        check(lost, written, "planted")
    shutil.copytree(tmp_path / "origin" / str(NAME), back / str(NAME), dirs_exist_ok=True)
    with pytest.raises(AssertionError):
        check(back, written, "planted")
