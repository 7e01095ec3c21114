"""The `barnabas` command, run as people run it: in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "barnabas_tools.cli.main"]


class Shell:
    """Its commands go to the cluster at `bootstrap`, and are run in `folder`."""

    def __init__(self, bootstrap: str, folder: Path | None = None) -> None:
        self.folder = folder
        self.environment = {**os.environ, "BARNABAS_BOOTSTRAP": bootstrap}

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Whatever becomes of it."""
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
        """What it prints; it must succeed."""
        result = self.run(*arguments, stdin=stdin)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def rows(self, *arguments: str, stdin: str = "") -> list[dict[str, object]]:
        """What it prints as JSON, an object a line."""
        lines = self.ok(*arguments, "-o", "json", stdin=stdin).splitlines()
        return [json.loads(line) for line in lines]
