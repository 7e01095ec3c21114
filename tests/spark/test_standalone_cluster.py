"""Spark's standalone cluster: the pipeline while an executor dies, and workers set up wrongly."""

import asyncio
import os
import signal
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from barnabas import Admin
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
    spark: SparkCluster,
    log: Path,
    program: Path,
    *arguments: str,
    python: str = sys.executable,
    archives: str = "",
) -> subprocess.Popen[bytes]:
    """Start a program on the cluster, in the folder of its log."""
    confs = [part for name, value in SETTINGS.items() for part in ("--conf", f"{name}={value}")]
    confs += ["--archives", archives] if archives else []
    interpreter = dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), python)
    with log.open("wb") as output:
        return subprocess.Popen(
            [SUBMIT, "--master", spark.master, *confs, program, *arguments],
            env=os.environ | interpreter,
            cwd=log.parent,
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


@pytest.fixture
def topics(cluster: LocalCluster, run: asyncio.Runner) -> Iterator[tuple[str, str]]:
    """One with records, and an empty one."""

    async def delete() -> None:
        async with Admin(cluster.bootstrap) as admin:
            await admin.delete_topics(["from", "to"])

    for topic in ("from", "to"):
        run.run(create_topic(cluster.bootstrap, topic, 1))
    run.run(produce(cluster.bootstrap, "from", 10, partitions=1))
    yield "from", "to"
    run.run(delete())


def copy(
    spark: SparkCluster, cluster: LocalCluster, folder: Path, **options: str
) -> tuple[int, str]:
    """Run the copying job to its end."""
    program, log = folder / "job.py", folder / "job.log"
    program.write_text(COPY)
    job = submit(spark, log, program, cluster.bootstrap, "from", "to", **options)
    return finish(job, log)


def executable(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in ("#!/bin/sh", *lines)))
    path.chmod(0o755)
    return path


def without_the_package(folder: Path) -> str:
    """A command for an interpreter that has everything but this project."""
    venv.create(folder / "venv", symlinks=True)
    site = next((folder / "venv" / "lib").glob("python3*")) / "site-packages"
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "barnabas" not in entry.name and not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    return f"unset PYTHONPATH; exec {folder}/venv/bin/python"


def another_version(folder: Path) -> str:
    """A command for this interpreter, which says that it is of another minor version."""
    (folder / "other").mkdir()
    (folder / "other" / "sitecustomize.py").write_text(
        "import collections, sys\n"
        "Version = collections.namedtuple('Version', 'major minor micro releaselevel serial')\n"
        "sys.version_info = Version(3, 99, 0, 'final', 0)\n"
    )
    return f"PYTHONPATH={folder}/other:$PYTHONPATH exec {sys.executable}"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (without_the_package, "No module named 'pyspark_barnabas'"),
        (another_version, "PYTHON_VERSION_MISMATCH"),
    ],
)
def test_workers_that_cannot_run_the_tasks_say_why_and_nothing_is_written(
    cluster: LocalCluster,
    run: asyncio.Runner,
    tmp_path: Path,
    topics: tuple[str, str],
    command: Callable[[Path], str],
    words: str,
) -> None:
    # The path is the same everywhere; what it leads to differs, as on several machines.
    python = executable(
        tmp_path / "python",
        f'[ "${ON_WORKER}" ] && {{ {command(tmp_path)} "$@"; }}',
        f'exec {sys.executable} "$@"',
    )
    environment = os.environ | {ON_WORKER: "1"}
    with SparkCluster(tmp_path / "spark", workers=1, environment=environment) as spark:
        code, said = copy(spark, cluster, tmp_path, python=str(python))
    assert code != 0
    assert words in said
    for isolation in ("read_committed", "read_uncommitted"):
        assert run.run(values(cluster.bootstrap, topics[1], isolation)) == []


def test_an_environment_that_is_shipped_with_the_job(
    cluster: LocalCluster, run: asyncio.Runner, tmp_path: Path, topics: tuple[str, str]
) -> None:
    executable(tmp_path / "environment" / "bin" / "python", f'exec {sys.executable} "$@"')
    with tarfile.open(tmp_path / "environment.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "environment", ".")
    shipped = "environment.tar.gz#environment"
    with SparkCluster(tmp_path / "spark", workers=1) as spark:
        code, said = copy(spark, cluster, tmp_path, python="./environment/bin/python")
        assert code != 0
        assert 'Cannot run program "./environment/bin/python"' in said
        assert run.run(values(cluster.bootstrap, topics[1], "read_uncommitted")) == []
        code, said = copy(
            spark, cluster, tmp_path, python="./environment/bin/python", archives=shipped
        )
        assert code == 0, said[-4000:]
    assert len(run.run(values(cluster.bootstrap, topics[1]))) == 10
