"""The `barnabas` command, run in a separate process as users run it."""

import json
import os
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "barnabas_tools.cli.main"]


class Shell:
    """Runs commands in `folder` against the cluster at `bootstrap`."""

    def __init__(self, bootstrap: str, folder: Path | None = None) -> None:
        self.folder = folder
        self.environment = {**os.environ, "BARNABAS_BOOTSTRAP": bootstrap}

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command and return its result, whatever the exit code."""
        return subprocess.run(
            [*COMMAND, *arguments],
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def ok(self, *arguments: str, stdin: str = "") -> str:
        """Run a command that must succeed; returns its output."""
        result = self.run(*arguments, stdin=stdin)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def rows(self, *arguments: str, stdin: str = "") -> list[dict[str, object]]:
        """Run a command with `--output json`; returns the objects that it prints, one per line."""
        lines = self.ok(*arguments, "-o", "json", stdin=stdin).splitlines()
        return [json.loads(line) for line in lines]
