"""A broker started outside any local cluster: how it ends, and what it prints."""

import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from barnabas_broker.config.properties import format_properties
from barnabas_tools.local.cluster import LocalCluster
from barnabas_tools.local.ports import HOST, free_ports

COMMAND = [sys.executable, "-m", "barnabas_tools.cli.cluster.run_broker"]
# Log lines begin with a date; the other lines are for the operator.
_LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


@dataclass(frozen=True)
class Outcome:
    """How the process ended; `complaints` are the lines on stderr that are not log lines."""

    code: int
    complaints: list[str]
    stderr: str
    seconds: float

    def assert_one_line(self, *words: str) -> None:
        """Assert that it ended with exit code 1 and one line with these words, and no traceback."""
        assert "Traceback" not in self.stderr, self.stderr
        assert self.code == 1, self.stderr
        assert len(self.complaints) == 1, self.stderr
        for word in words:
            assert word in self.complaints[0], self.complaints[0]


def spare_properties(cluster: LocalCluster, broker_id: int, data: Path) -> dict[str, str]:
    """Return the settings of an additional broker of this cluster, with its own free ports."""
    client, internal = free_ports(2)
    return {
        **cluster.layout.properties(cluster.broker_ids[0]),
        "broker.id": str(broker_id),
        "listeners": f"CLIENT://{HOST}:{client},INTERNAL://{HOST}:{internal}",
        "log.dirs": str(data),
    }


def run_broker(properties: Mapping[str, str], folder: Path, within: float = 30.0) -> Outcome:
    """Run a broker that should not be able to start, until it has ended."""
    file = folder / "server.properties"
    file.write_text(format_properties(dict(properties)))
    return run([*COMMAND, str(file)], within)


def run(command: list[str], within: float = 30.0) -> Outcome:
    """Run a command until it ends. It is killed, and the test fails, after `within` seconds."""
    began = time.monotonic()
    result = subprocess.run(command, capture_output=True, text=True, timeout=within)
    complaints = [line for line in result.stderr.splitlines() if line and not _LOG_LINE.match(line)]
    return Outcome(result.returncode, complaints, result.stderr, time.monotonic() - began)
