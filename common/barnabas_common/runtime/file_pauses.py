"""Pause points of a real process, controlled by files.

The file `follower-before-fetch@2` in the pause directory holds broker 2 at that point for every
leader, `follower-before-fetch@2:3` only where it fetches from broker 3. When the broker reaches the
point it creates a file of the same name with the suffix `.reached`, and it continues when the first
file is removed.
"""

import asyncio
from pathlib import Path

from barnabas_common.runtime.pauses import PausePoint

_REACHED = ".reached"
_POLL_SECONDS = 0.003


def hold_file(directory: Path, broker_id: int, point: PausePoint, peer: int | None) -> Path:
    """The file that holds a broker at a point, for one peer or, if that is None, for all peers."""
    suffix = "" if peer is None else f":{peer}"
    return directory / f"{point}@{broker_id}{suffix}"


def reached_file(hold: Path) -> Path:
    """The file that exists while the broker waits at the point of this file."""
    return hold.with_name(hold.name + _REACHED)


class FilePauses:
    """One broker's side; see `Pauses`. Creates the directory if necessary."""

    def __init__(self, directory: Path, broker_id: int) -> None:
        self._directory = directory
        self._broker_id = broker_id
        directory.mkdir(parents=True, exist_ok=True)
        for left_over in directory.glob(f"*@{broker_id}*{_REACHED}"):
            left_over.unlink(missing_ok=True)

    async def at(self, point: PausePoint, peer: int | None = None) -> None:
        while (hold := self._hold(point, peer)) is not None:
            reached = reached_file(hold)
            reached.touch()
            try:
                while hold.exists():  # noqa: ASYNC110 - a file cannot wake a task
                    await asyncio.sleep(_POLL_SECONDS)
            finally:
                reached.unlink(missing_ok=True)

    def _hold(self, point: PausePoint, peer: int | None) -> Path | None:
        for narrowed in (None, peer):
            hold = hold_file(self._directory, self._broker_id, point, narrowed)
            if hold.exists():
                return hold
        return None


class FilePauseControl:
    """The side of a test or a lab, which holds brokers of a cluster on this machine."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def hold(self, broker_id: int, point: PausePoint, peer: int | None = None) -> None:
        """From now on the broker waits when it reaches the point, until `release`."""
        self._directory.mkdir(parents=True, exist_ok=True)
        hold = hold_file(self._directory, broker_id, point, peer)
        if not hold.exists():
            reached_file(hold).unlink(missing_ok=True)
            hold.touch()

    async def reached(
        self, broker_id: int, point: PausePoint, peer: int | None = None, within: float = 20.0
    ) -> None:
        """Wait until the broker has reached the held point. TimeoutError after `within` seconds."""
        reached = reached_file(hold_file(self._directory, broker_id, point, peer))
        try:
            async with asyncio.timeout(within):
                while not reached.exists():  # noqa: ASYNC110
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            message = f"broker {broker_id} did not reach {point} within {within:g} s"
            raise TimeoutError(message) from None

    def release(self, broker_id: int, point: PausePoint, peer: int | None = None) -> None:
        """Let the broker continue; no error if it was not held."""
        hold_file(self._directory, broker_id, point, peer).unlink(missing_ok=True)

    def release_all(self) -> None:
        """Let all brokers continue."""
        for hold in self._directory.glob("*@*"):
            if not hold.name.endswith(_REACHED):
                hold.unlink(missing_ok=True)
