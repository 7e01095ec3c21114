"""Spark's standalone cluster of two workers: the pipeline while an executor dies, and bad workers."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from barnabas_tools.local.cluster import LocalCluster

from tests.spark.sink_chaos import committed_batches
from tests.spark.standalone import SHORT_LIFE, SUBMIT, SparkCluster, wait_for

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
    spark: SparkCluster, log: Path, *arguments: str, workers_python: str = sys.executable
) -> subprocess.Popen[bytes]:
    """Start a program of the example on the cluster."""
    confs = [part for name, value in SETTINGS.items() for part in ("--conf", f"{name}={value}")]
    program, *others = arguments
    python = {"PYSPARK_PYTHON": workers_python, "PYSPARK_DRIVER_PYTHON": sys.executable}
    with log.open("wb") as output:
        return subprocess.Popen(
            [SUBMIT, "--master", spark.master, *confs, FOLDER / f"{program}.py", *others],
            env=os.environ | python,
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
        query = submit(spark, log, "pipeline", *arguments)
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
        check = submit(spark, log, "check", "--bootstrap", bootstrap, "--flights", FLIGHTS)
        code, said = finish(check, log)
        assert code == 0, said[-4000:]
