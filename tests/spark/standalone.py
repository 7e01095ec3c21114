"""Spark's standalone cluster on this machine: a master and workers, each a process of its own."""

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import pyspark
from barnabas_tools.local.ports import free_ports

SPARK_HOME = Path(pyspark.__file__).parent
SPARK_CLASS = SPARK_HOME / "bin" / "spark-class"
SUBMIT = SPARK_HOME / "bin" / "spark-submit"
START_SECONDS = 120.0
# Java's second compiler does not pay off in a process that runs for a minute.
SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_EXECUTOR = b"CoarseGrainedExecutorBackend"


class SparkCluster:
    """A master and `workers` workers of one core; `environment` is that of the workers."""

    def __init__(
        self, folder: Path, workers: int = 2, environment: Mapping[str, str] | None = None
    ) -> None:
        self._folder = folder
        self._count = workers
        self._port, self._web_port = free_ports(2)
        self._environment = {
            **(os.environ if environment is None else environment),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            # However often a test kills executors, the application stays.
            "SPARK_MASTER_OPTS": "-Dspark.deploy.maxExecutorRetries=-1",
            "SPARK_DAEMON_JAVA_OPTS": SHORT_LIFE,
        }
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        try:
            self._start(
                "master.Master", "--port", str(self._port), "--webui-port", str(self._web_port)
            )
            wait_for(lambda: self._state() is not None, "the master answers")
            for number in range(self._count):
                folder = str(self._folder / f"worker-{number}")
                self._start(
                    "worker.Worker", "--port", "0", "--webui-port", "0", "--cores", "1",
                    "--memory", "1g", "--work-dir", folder, self.master,
                )  # fmt: skip
            wait_for(lambda: self.alive_workers() == self._count, "the workers are registered")
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()

    def alive_workers(self) -> int:
        return int((self._state() or {}).get("aliveworkers", 0))

    def executors(self) -> list[int]:
        """The executors' processes, which are children of the workers."""
        workers = self._processes[1:]
        return [pid for worker in workers for pid in descendants(worker.pid) if is_executor(pid)]

    def said(self) -> str:
        """What executors have written to stderr: their Python workers' output too."""
        logs = sorted(self._folder.glob("worker-*/app-*/*/stderr"))
        return "\n".join(log.read_text(errors="replace") for log in logs)

    def _start(self, name: str, *arguments: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        log = self._folder / f"{name}-{len(self._processes)}.log"
        with log.open("wb") as output:
            self._processes.append(
                subprocess.Popen(
                    [
                        SPARK_CLASS,
                        f"org.apache.spark.deploy.{name}",
                        "--host",
                        "127.0.0.1",
                        *arguments,
                    ],
                    env=self._environment,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            )

    def _state(self) -> dict[str, object] | None:
        for process in self._processes:
            assert process.poll() is None, f"{process.args}: see the logs in {self._folder}"
        try:
            url = f"http://127.0.0.1:{self._web_port}/json/"
            with urllib.request.urlopen(url, timeout=10) as answer:
                return dict(json.load(answer))
        except OSError:
            return None

    def _stop(self) -> None:
        for process in reversed(self._processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(condition: Callable[[], bool], what: str, within: float = START_SECONDS) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not within {within} s: {what}"
        time.sleep(0.05)


def descendants(pid: int) -> list[int]:
    try:
        # A Java process starts its children from any of its threads.
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [c for task in tasks for c in (task / "children").read_text().split()]
    except OSError:
        return []
    found = [int(child) for child in children]
    return found + [each for child in found for each in descendants(child)]


def is_executor(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return _EXECUTOR in command and b"bash" not in command.split(b"\0", 1)[0]
