"""For all tests: whether a skip is a failure, and which tests share a process.

Without Docker or Java the tests that need them are skipped. `.ci/run` sets BARNABAS_REQUIRE_ALL=1,
so that no test can silently stop being run.

With `--numprocesses` and `--dist loadscope`, the tests of a file share a process, because they
share a cluster. Those of `kafka_tools` share one process, because they use most of the machine.
Those of `docker` share another with those of `spark` that read streams: Spark gives the Python
process of a stream's source 10 s to start, which was too little twice while containers ran beside
it. The other tests of `spark` share one Spark. Labs share nothing.

With `--cases N`, a test that has more cases runs with its first N. `make check` does that; all
cases run in `make test`.
"""

import os
import signal
from collections import Counter
from collections.abc import Generator
from pathlib import PurePath
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

# gRPC reads this when it is first loaded, which may be before `transport.grpc_network` sets it. The
# tests of Spark fork this process to start Java.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")

# With it, output that a command does not flush would be written all the same.
os.environ.pop("PYTHONUNBUFFERED", None)

# A shell starts background processes with SIGINT ignored, `nohup` with SIGHUP, and their children
# inherit that. The tests of Ctrl-C and of a closed terminal need the signals.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# How long an example takes says nothing on a busy machine.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

# Each process of a parallel run has its own ports.
_PORTS_OF_A_PROCESS = 2_500
_worker = os.environ.get("PYTEST_XDIST_WORKER")
if _worker is not None:
    _first = 10_240 + int(_worker.removeprefix("gw")) % 8 * _PORTS_OF_A_PROCESS
    os.environ["BARNABAS_PORT_RANGE"] = f"{_first}-{_first + _PORTS_OF_A_PROCESS - 1}"

REQUIRE_ALL = os.environ.get("BARNABAS_REQUIRE_ALL") == "1"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, but BARNABAS_REQUIRE_ALL=1: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if REQUIRE_ALL and report.outcome == "skipped":
        report.outcome = "failed"
        report.longrepr = f"skipped, but BARNABAS_REQUIRE_ALL=1: {report.longrepr}"
    return report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", type=int, metavar="N", help="only the first N cases of each test")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    most = config.getoption("--cases")
    if most is None:
        return
    cases = Counter[str]()
    kept, left_out = [], []
    for item in items:
        test = item.nodeid.partition("[")[0]
        cases[test] += 1
        (kept if cases[test] <= most else left_out).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)


_SHARED_BY_FOLDER = {"kafka_tools": "kafka_tools", "docker": "heavy", "spark": "heavy"}
_SPARK_WITHOUT_STREAMS = "spark without streams"
_SHARED_BY_FILE = {
    "spark/test_batch_options.py": _SPARK_WITHOUT_STREAMS,
    "spark/test_batch_read.py": _SPARK_WITHOUT_STREAMS,
    "spark/test_exact_ranges.py": _SPARK_WITHOUT_STREAMS,
    "spark/test_sink.py": _SPARK_WITHOUT_STREAMS,
    "spark/test_sink_examples.py": _SPARK_WITHOUT_STREAMS,
    "spark/test_sink_kills.py": _SPARK_WITHOUT_STREAMS,
}
_FOLDERS_APART = ("labs",)


class ByCluster(LoadScopeScheduling):
    """Gives tests that share a cluster, or a machine, to one process; see above."""

    def _split_scope(self, nodeid: str) -> str:
        file = PurePath(nodeid.partition("::")[0])
        if file.parent.name in _FOLDERS_APART:
            return nodeid
        shared = _SHARED_BY_FILE.get(f"{file.parent.name}/{file.name}")
        return shared or _SHARED_BY_FOLDER.get(file.parent.name, str(file))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return ByCluster(config, log) if config.getvalue("dist") == "loadscope" else None
