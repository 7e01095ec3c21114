"""A run as a file: options, faults and outcome. Unlike a seed, it survives code changes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas_simulator.campaign.faults.faults import Fault
from barnabas_simulator.campaign.options import Options


@dataclass(frozen=True)
class Replay:
    """`kind` and `violation` are the outcome when the file was written; empty if it was good."""

    options: Options
    faults: Sequence[Fault]
    kind: str = ""
    violation: str = ""

    def save(self, path: Path) -> None:
        plain = {
            "kind": self.kind,
            "violation": self.violation.splitlines(),
            "options": self.options.to_json(),
            "faults": [fault.to_json() for fault in self.faults],
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(plain, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Replay":
        """Read a file; raises OSError, and ValueError for anything but a saved run."""
        try:
            plain = json.loads(path.read_text())
            return cls(
                Options.from_json(plain["options"]),
                [Fault.from_json(fault) for fault in plain["faults"]],
                plain.get("kind", ""),
                "\n".join(plain.get("violation", [])),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = f"{type(error).__name__}: {error}"
            raise ValueError(f"{path} is not a run that was saved here ({why})") from error
