"""For all tests: where everything must run, a skip is a failure; and what may run side by side.

A machine without Docker or Java skips what needs them. `.ci/run` sets BARNABAS_REQUIRE_ALL=1, so
that a proof cannot silently stop being run.

With `--numprocesses` and `--dist loadscope`, the tests of a file share a process, because they
share a cluster. Those of `docker`, `kafka_tools` and `spark` share one for the whole folder: each
of these uses most of the machine. Labs share nothing.
"""

import os
import signal
from collections.abc import Generator
from pathlib import PurePath
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

# Read when gRPC is first loaded, which may be before `transport.grpc_network` sets it;
# the tests of Spark fork this very process to start Java.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")

# A shell starts what it puts in the background deaf to Ctrl-C, and children inherit that; the tests
# that press it need it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Each process of a parallel run has ports of its own.
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


_FOLDERS_THAT_SHARE = ("docker", "kafka_tools", "spark")
_FOLDERS_APART = ("labs",)


class ByCluster(LoadScopeScheduling):
    """Gives what shares a cluster, or a machine, to one process; see above."""

    def _split_scope(self, nodeid: str) -> str:
        file = PurePath(nodeid.partition("::")[0])
        if file.parent.name in _FOLDERS_APART:
            return nodeid
        return str(file.parent if file.parent.name in _FOLDERS_THAT_SHARE else file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return ByCluster(config, log) if config.getvalue("dist") == "loadscope" else None
