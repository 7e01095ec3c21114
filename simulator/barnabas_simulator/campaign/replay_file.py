"""A run as a file: options, faults and outcome. Unlike a seed, it survives code changes."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas_simulator.campaign.faults.faults import Fault
from barnabas_simulator.campaign.options import Options

VERSION = 1
"""The first files had none; they are read like version 1."""


@dataclass(frozen=True)
class Replay:
    """`kind` and `violation` are the outcome when the file was written; empty if it was good."""

    options: Options
    faults: Sequence[Fault]
    kind: str = ""
    violation: str = ""

    @property
    def schedule(self) -> tuple[Options, list[Fault]]:
        """What decides the run."""
        return self.options, list(self.faults)

    def text(self, indent: int | None = 1) -> str:
        """The file's content; on one line without an indent."""
        plain = {
            "version": VERSION,
            "kind": self.kind,
            "violation": self.violation.splitlines(),
            "options": self.options.to_json(),
            "faults": [fault.to_json() for fault in self.faults],
        }
        return json.dumps(plain, indent=indent) + "\n"

    def save(self, path: Path) -> None:
        write_whole(path, self.text())

    @classmethod
    def load(cls, path: Path) -> "Replay":
        """Read a file; raises OSError, and ValueError for anything but a saved run."""
        try:
            return cls._from_plain(json.loads(path.read_text(encoding="utf-8")))
        except json.JSONDecodeError as error:
            why = f"it is cut short or is not JSON ({error})"
        except UnicodeDecodeError:
            why = "it is not text"
        except RecursionError:
            why = "its values are too deeply nested"
        except ValueError as error:
            why = str(error)
        raise ValueError(f"{path} is not a run that can be replayed: {why}")

    @classmethod
    def _from_plain(cls, plain: Any) -> "Replay":
        version = plain.get("version", VERSION) if isinstance(plain, dict) else VERSION
        if type(version) is not int or version != VERSION:
            raise ValueError(f"its version is {version!r}, and this program reads {VERSION}")
        if not isinstance(plain, dict) or not {"options", "faults"} <= plain.keys():
            raise ValueError("it has no options or no faults")
        faults, violation = plain["faults"], plain.get("violation", [])
        if not isinstance(faults, list):
            raise ValueError("its faults are no list")
        return cls(
            Options.from_json(plain["options"]),
            [Fault.from_json(fault) for fault in faults],
            str(plain.get("kind", "")),
            "\n".join(map(str, violation)) if isinstance(violation, list) else str(violation),
        )


def write_whole(path: Path, text: str) -> None:
    """Write a file, and its folder, whole or not at all; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise
