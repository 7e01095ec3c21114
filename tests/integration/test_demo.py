"""`make demo`, as a user runs it: it succeeds, and Ctrl-C leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROOT = Path(__file__).resolve().parents[2]
DEMO = [sys.executable, str(ROOT / "demo" / "flights.py")]
LIMIT = 180.0
STOP_LIMIT = 30.0


def environment(tmp_path: Path) -> dict[str, str]:
    """The demo's folder is in `tmp_path`, which identifies the demo's processes."""
    return os.environ | {"TMPDIR": str(tmp_path), "COLUMNS": "160", "PYTHONUNBUFFERED": "1"}


def processes_of(folder: Path) -> list[str]:
    """Return the command lines of all processes that name the folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended meanwhile
        if str(folder) in line:
            found.append(line)
    return found


@pytest.fixture
def interrupted_demo(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        DEMO,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    yield process
    if process.poll() is None:
        process.kill()
        process.wait()


def test_the_demo_loses_nothing_and_spark_agrees(tmp_path: Path):
    began = time.monotonic()
    result = subprocess.run(
        DEMO, env=environment(tmp_path), capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert time.monotonic() - began < LIMIT
    said = " ".join(result.stdout.split())
    assert "336,776 flights" in said
    assert "Spark saw 336,776 distinct rows" in said
    assert re.search(r"kill -9 broker \d.* with [1-9][\d,]* rows not acknowledged", said)
    assert re.search(r"batches retried │ [1-9]", said)
    assert re.search(r"acknowledged and lost │ 0 ", said)
    assert re.search(r"new leaders in every partition, [\d.]+ s after the kill", said)
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize("when", ["the cluster serves", "kill -9"])
def test_ctrl_c_leaves_no_process_behind(
    tmp_path: Path, interrupted_demo: "subprocess.Popen[str]", when: str
):
    assert interrupted_demo.stdout is not None
    said = ""
    for line in interrupted_demo.stdout:
        said += line
        if when in line:
            break
    assert when in said, said
    assert processes_of(tmp_path)
    os.killpg(interrupted_demo.pid, signal.SIGINT)
    rest, _ = interrupted_demo.communicate(timeout=STOP_LIMIT)
    assert interrupted_demo.returncode == 130, said + rest
    assert "Traceback" not in rest
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seconds", [0.3, 1.0, 2.0])
def test_an_early_ctrl_c_leaves_no_traceback(
    tmp_path: Path, interrupted_demo: "subprocess.Popen[str]", seconds: float
):
    time.sleep(seconds)
    os.killpg(interrupted_demo.pid, signal.SIGINT)
    said, _ = interrupted_demo.communicate(timeout=STOP_LIMIT)
    assert interrupted_demo.returncode == 130, said
    assert "Traceback" not in said and "Exception ignored" not in said
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
