"""The folder of failing runs: each is saved as soon as it is found, and later what shrinking left.

Nothing that was saved is overwritten, except by the same run. If the folder cannot be written, the
run is printed instead, on one line that is a replay file when it is saved.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from barnabas_simulator.campaign.replay_file import Replay, write_whole

Print = Callable[[str], None]

SHRUNK = "-shrunk"


@dataclass
class SavedRuns:
    """`places` says of each failing run where it is: its file, or that it was printed."""

    folder: Path
    tell: Print
    places: list[str] = field(default_factory=list)

    def keep(self, replay: Replay) -> Path | None:
        """Save the whole schedule of a failing run; returns its file, None if it was printed."""
        path = self._free(replay)
        if not self._save(replay, path):
            self.places.append(f"printed above (seed {replay.options.seed})")
            return None
        self.places.append(str(path))
        self.tell(f"  saved: {path}")
        return path

    def keep_shrunk(self, replay: Replay, story: list[str], whole: Path | None) -> Path | None:
        """Save a shrunk run and its story beside the whole one."""
        whole = whole or self._free(replay)
        path = whole.with_stem(f"{whole.stem}{SHRUNK}")
        if not self._save(replay, path):
            return None
        try:
            write_whole(path.with_suffix(".story"), "\n".join(story) + "\n")
        except OSError as error:
            self.tell(f"  its story cannot be saved: {error.strerror}; the replay prints it")
        return path

    def _save(self, replay: Replay, path: Path) -> bool:
        try:
            replay.save(path)
        except OSError as error:
            self.tell(
                f"  {path} cannot be written: {error.strerror}; to replay the run, save the next"
                " line as a file"
            )
            self.tell(replay.text(indent=None).strip())
            return False
        return True

    def _free(self, replay: Replay) -> Path:
        """The first name that is free, or has this run already."""
        name = f"seed-{replay.options.seed}"
        names = (name if number == 1 else f"{name}-{number}" for number in count(1))
        paths = (self.folder / f"{one}.json" for one in names)
        return next(path for path in paths if _has_nothing_but(path, replay))


def _has_nothing_but(path: Path, replay: Replay) -> bool:
    try:
        return Replay.load(path).schedule == replay.schedule
    except OSError:
        return not os.path.exists(path)  # Path.exists raises if the folder may not be read
    except ValueError:
        return False
