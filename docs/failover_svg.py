"""Record docs/failover.svg: a cluster starts, a leader is killed, nothing is lost.

Every line of the picture is the output of the command above it, run against real brokers on ports
9092 to 9094. The commands appear one after the other when the picture is shown; a viewer that does
not animate shows the whole.

    .venv/bin/python docs/failover_svg.py
"""

import io
import json
import os
import re
import subprocess
import tempfile
import textwrap
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).with_name("failover.svg")
WIDTH = 110
# How long after one command the next one appears, in seconds.
STEP = 2.5
BOOTSTRAP = "localhost:9092,localhost:9093,localhost:9094"


class Recording:
    """Runs shell commands and keeps each with its output."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._environment = {**os.environ, "BARNABAS_BOOTSTRAP": BOOTSTRAP}
        self.console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
        # The first line of each command in the picture.
        self.starts: list[int] = []
        self._lines = 0

    def output_of(self, command: str) -> str:
        """Run a command that is not shown."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self._directory,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        return done.stdout

    def show(self, command: str) -> None:
        """Run a command and record it with what it prints."""
        self.starts.append(self._lines)
        self._print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        for line in self.output_of(command).splitlines():
            indent = re.match(r" *(\S+ {2,})?", line)
            hanging = " " * (indent.end() if indent else 0)
            for part in textwrap.wrap(line, WIDTH, subsequent_indent=hanging) or [""]:
                self._print(_coloured(part))
        self._print(Text())

    def _print(self, text: Text) -> None:
        self.console.print(text)
        self._lines += 1


def _coloured(line: str) -> Text:
    text = Text(line)
    text.highlight_regex(r"^ +\d\d:\d\d:\d\d\.\d+|^ +now\b", "cyan")
    text.highlight_regex(r"^Wh.*$", "bold yellow")
    return text


def animated(svg: str, starts: list[int]) -> str:
    """Return the picture, in which each command and its output appear at their time."""
    style = (
        "@keyframes appear { from { opacity: 0 } to { opacity: 1 } }\n"
        "    text[data-at] { animation: appear 0.2s both }\n"
        "    @media (prefers-reduced-motion) { text[data-at] { animation: none } }\n    "
    )

    def delayed(found: re.Match[str]) -> str:
        step = sum(start <= int(found[2]) for start in starts) - 1
        delay = step * STEP
        return f'<text data-at="{step}" style="animation-delay: {delay:g}s"{found[1]}'

    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)  # fetched from elsewhere
    svg = svg.replace("</style>", style + "</style>", 1)
    return re.sub(r"<text((?=[^>]*-line-(\d+)\)))", delayed, svg)


def victim(recording: Recording) -> tuple[int, int]:
    """Return a partition and its leader, a broker that is not the controller."""
    controller = json.loads(recording.output_of("barnabas zk get /controller | head -1"))[
        "brokerid"
    ]
    described = recording.output_of("barnabas -o json topic describe flights").splitlines()
    leaders = {row["partition"]: row["leader"] for row in map(json.loads, described)}
    return next((p, leader) for p, leader in leaders.items() if leader != controller)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        recording = Recording(directory)
        try:
            recording.show("barnabas cluster start | head -1")
            recording.show("barnabas topic create flights --partitions 3")
            recording.show("seq 30000 | barnabas produce flights")
            partition, leader = victim(recording)
            recording.show(
                f"date +%T.%3N; barnabas cluster kill {leader}      # kill -9 of a leader"
            )
            time.sleep(1)
            explain = f"barnabas explain flights-{partition}"
            reasons = recording.output_of(explain).partition("\n\nWhat ")[0]
            recording.show(f"{explain} | head -{len(reasons.splitlines())}")
            recording.show("barnabas consume flights --from-beginning --max-messages 30000 | wc -l")
        finally:
            subprocess.run(["barnabas", "cluster", "destroy", "--yes"], cwd=directory, check=False)
    svg = recording.console.export_svg(title="barnabas", unique_id="failover")
    PICTURE.write_text(animated(svg, recording.starts))


if __name__ == "__main__":
    main()
