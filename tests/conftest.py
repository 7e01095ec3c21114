"""For all tests: where everything must run, a skip is a failure.

A machine without Docker or Java skips what needs them. `.ci/run` sets BARNABAS_REQUIRE_ALL=1, so
that a proof cannot silently stop being run.
"""

import os
import signal
from collections.abc import Generator

import pytest

# Read when gRPC is first loaded, which may be before `transport.grpc_network` sets it;
# the tests of Spark fork this very process to start Java.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")

# A shell starts what it puts in the background deaf to Ctrl-C, and children inherit that; the tests
# that press it need it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)

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
