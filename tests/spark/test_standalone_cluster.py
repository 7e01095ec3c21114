"""Spark's standalone cluster: the pipeline while an executor dies, and workers set up wrongly."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest
from barnabas_tools.local.cluster import LocalCluster

from tests.spark.sink_chaos import committed_batches
from tests.spark.sink_support import values
from tests.spark.standalone import SHORT_LIFE, SUBMIT, SparkCluster, wait_for
from tests.spark.support import produce
from tests.support.cluster_state import create_topic

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.integration]

FOLDER = Path(__file__).parents[2] / "examples" / "spark_pipeline"
FLIGHTS = "12000"
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": SHORT_LIFE,
    "spark.executor.extraJavaOptions": SHORT_LIFE,
}


def submit(
    spark: SparkCluster, log: Path, program: Path, *arguments: str, python: str = sys.executable
) -> subprocess.Popen[bytes]:
    """Start a program on the cluster."""
    confs = [part for name, value in SETTINGS.items() for part in ("--conf", f"{name}={value}")]
    interpreter = dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), python)
    with log.open("wb") as output:
        return subprocess.Popen(
            [SUBMIT, "--master", spark.master, *confs, program, *arguments],
            env=os.environ | interpreter,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def finish(process: subprocess.Popen[bytes], log: Path, within: float = 400.0) -> tuple[int, str]:
    try:
        code = process.wait(within)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return code, log.read_text(errors="replace")


def test_the_pipeline_on_two_workers_of_which_one_loses_its_executor(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    bootstrap, checkpoint = cluster.bootstrap, tmp_path / "checkpoint"
    fill = [sys.executable, str(FOLDER / "produce.py"), "--flights", FLIGHTS]
    subprocess.run([*fill, "--bootstrap", bootstrap], check=True)
    log = tmp_path / "pipeline.log"
    arguments = ("--bootstrap", bootstrap, "--checkpoint", str(checkpoint), "--per-batch", "1500")
    with SparkCluster(tmp_path / "spark") as spark:
        query = submit(spark, log, FOLDER / "pipeline.py", *arguments)
        wait_for(
            lambda: len(committed_batches(checkpoint)) >= 2 or query.poll() is not None,
            "two micro-batches are done",
            400.0,
        )
        executors = spark.executors()
        assert len(executors) == 2, log.read_text()[-4000:]
        os.kill(executors[0], signal.SIGKILL)
        code, said = finish(query, log)
        assert code == 0, said[-4000:]
        assert "12,000 flights" in said and "0 of them too late" in said
        assert "Lost executor" in said, "the executor died while the query ran"
        log = tmp_path / "check.log"
        arguments = ("--bootstrap", bootstrap, "--flights", FLIGHTS)
        check = submit(spark, log, FOLDER / "check.py", *arguments)
        code, said = finish(check, log)
        assert code == 0, said[-4000:]


# ---- workers on which something is missing

ON_WORKER = "BARNABAS_TEST_ON_WORKER"
COPY = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.config("spark.log.level", "ERROR").getOrCreate()
records = spark.read.format("barnabas").option("kafka.bootstrap.servers", sys.argv[1])
rows = records.option("subscribe", sys.argv[2]).load().selectExpr("key", "value")
target = rows.write.format("barnabas").mode("append").option("topic", sys.argv[3])
target.option("kafka.bootstrap.servers", sys.argv[1]).option("delivery", "exactly-once").save()
"""


def without_the_package(folder: Path) -> str:
    """A command for an interpreter that has everything but this project."""
    venv.create(folder / "venv", symlinks=True)
    site = next((folder / "venv" / "lib").glob("python3*")) / "site-packages"
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "barnabas" not in entry.name and not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    return f"unset PYTHONPATH; exec {folder}/venv/bin/python"


def another_version(folder: Path) -> str:
    """A command for an interpreter of another minor version."""
    for minor in range(10, 16):
        found = shutil.which(f"python3.{minor}")
        if minor != sys.version_info.minor and found and _runs(found):
            return f"exec {found}"
    pytest.skip("there is no other version of Python here")


def _runs(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (without_the_package, "No module named 'pyspark_barnabas'"),
        (another_version, "PYTHON_VERSION_MISMATCH"),
    ],
)
def test_workers_that_cannot_run_the_tasks_say_why_and_nothing_is_written(
    cluster: LocalCluster, run: asyncio.Runner, tmp_path: Path, command: Any, words: str
) -> None:
    bootstrap, source, target = cluster.bootstrap, f"from-{words[:2]}", f"to-{words[:2]}"
    run.run(create_topic(bootstrap, source, 1))
    run.run(create_topic(bootstrap, target, 1))
    run.run(produce(bootstrap, source, 10, partitions=1))
    # The path is the same everywhere; what it leads to differs, as on several machines.
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\n[ "${ON_WORKER}" ] && {{ {command(tmp_path)} "$@"; }}\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    (tmp_path / "copy.py").write_text(COPY)
    environment = os.environ | {ON_WORKER: "1"}
    with SparkCluster(tmp_path / "spark", workers=1, environment=environment) as spark:
        log = tmp_path / "copy.log"
        arguments = (bootstrap, source, target)
        job = submit(spark, log, tmp_path / "copy.py", *arguments, python=str(python))
        code, said = finish(job, log)
    assert code != 0
    assert words in said
    for isolation in ("read_committed", "read_uncommitted"):
        assert run.run(values(bootstrap, target, isolation)) == []
