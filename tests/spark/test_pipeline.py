"""The pipeline in `examples/`: its programs one after the other, and its notebook."""

import asyncio
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from barnabas import Admin
from barnabas_tools.local.cluster import LocalCluster

from tests.spark.standalone import SUBMIT

pytestmark = pytest.mark.spark

FOLDER = Path(__file__).parents[2] / "examples" / "spark_pipeline"
FLIGHTS = "6000"
FOR_SHORT_JOBS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
TOPICS = ("flights", "airlines", "delays")


@pytest.fixture(autouse=True)
def no_topics(cluster: LocalCluster, run: asyncio.Runner) -> Iterator[None]:
    """Each test makes the topics of its own."""
    yield

    async def delete() -> None:
        async with Admin(cluster.bootstrap) as admin:
            there = await admin.list_topics()
            await admin.delete_topics([topic for topic in TOPICS if topic in there])

    run.run(delete())


def example(cluster: LocalCluster, name: str, *arguments: str) -> str:
    """Run a program of the example; returns what it prints."""
    settings = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "JAVA_TOOL_OPTIONS": FOR_SHORT_JOBS,
    }
    command = [sys.executable] if name == "produce" else [str(SUBMIT), "--master", "local[2]"]
    done = subprocess.run(
        [*command, str(FOLDER / f"{name}.py"), "--bootstrap", cluster.bootstrap, *arguments],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    return done.stdout


def test_what_the_programs_publish_equals_what_pandas_computes(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    assert example(cluster, "produce", "--flights", FLIGHTS).startswith("6,000 flights")
    arguments = ("--checkpoint", str(tmp_path), "--per-batch", "2000")
    said = example(cluster, "pipeline", *arguments)
    assert said.startswith("6,000 flights") and ", 0 of them too late" in said
    # Started again, it has nothing to add.
    assert example(cluster, "pipeline", *arguments).startswith("0 flights")
    assert "rows of" in example(cluster, "check", "--flights", FLIGHTS)


def test_the_notebook_runs_from_its_first_cell_to_its_last(
    cluster: LocalCluster, spark: Any, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", cluster.bootstrap)
    monkeypatch.setenv("FLIGHTS", FLIGHTS)
    monkeypatch.setattr(sys, "path", [*sys.path])
    runpy.run_path(str(FOLDER / "notebook.py"))
    assert "rows, 0 differences" in capsys.readouterr().out


def test_no_flight_of_the_year_is_reported_after_its_day_is_closed(monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    import flights

    reported = (
        json.loads(value)["time_hour"] for _, value in flights.events(flights.load_flights())
    )
    times = pd.to_datetime(pd.Series(reported))
    assert len(times) == 336_776
    assert times.cummax().sub(times).max() < flights.WATERMARK


def test_the_check_finds_rows_that_are_missing_repeated_or_wrong(monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    import check
    import flights

    wanted = flights.expected(flights.load_flights(4000), flights.load_airlines())
    assert len(wanted) > 5
    first, second, *others = wanted
    assert check.differences([*others, second, first], wanted) == []
    found = check.differences([first, first, *others], wanted)
    assert found == [f"missing: {tuple(second)}", f"wrong or repeated: {tuple(first)}"]
    changed = second._replace(minutes=second.minutes + 1)
    assert len(check.differences([first, changed, *others], wanted)) == 2
