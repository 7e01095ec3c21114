"""What a command prints about its progress decides nothing."""

import subprocess
from pathlib import Path

import pytest

from tests.support.own_cluster import OwnCluster
from tests.support.shell import COMMAND

pytestmark = pytest.mark.integration


def test_progress_that_cannot_be_written_decides_nothing(tmp_path: Path) -> None:
    own = OwnCluster(tmp_path)
    for command in (f"start --brokers 1 --port {own.port}", "stop"):
        line = f"{' '.join(COMMAND)} cluster {command} 2>&1 | head -1; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["bash", "-c", line], cwd=own.folder, env=own.environment, capture_output=True,
            text=True, timeout=120,
        )  # fmt: skip
        assert (done.returncode, done.stdout.count("\n")) == (0, 1), done.stdout + done.stderr
        assert len(own.processes()) == (2 if command.startswith("start") else 0)
    own.ok("cluster", "destroy", "--yes")
