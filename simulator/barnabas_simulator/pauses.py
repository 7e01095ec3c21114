"""Pause points in the simulator, held without files.

A hold survives the process it holds, as its file does in a real cluster.
"""

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas_common.runtime import PausePoint


class _Place(NamedTuple):
    broker_id: int
    point: PausePoint
    peer: int | None


@dataclass
class _Hold:
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)


class MemoryPauseControl:
    """Holds the brokers of a simulated cluster; the same calls as `FilePauseControl`."""

    def __init__(self) -> None:
        self._holds: dict[_Place, _Hold] = {}

    def of(self, broker_id: int) -> "MemoryPauses":
        """Return the pauses for a broker's `Runtime`."""
        return MemoryPauses(self._holds, broker_id)

    def hold(self, broker_id: int, point: PausePoint, peer: int | None = None) -> None:
        """Make the broker wait whenever it comes to the point, until `release`."""
        self._holds.setdefault(_Place(broker_id, point, peer), _Hold())

    async def reached(
        self, broker_id: int, point: PausePoint, peer: int | None = None, within: float = 20.0
    ) -> None:
        """Wait until the broker waits at the held point. TimeoutError after `within` seconds."""
        async with asyncio.timeout(within):
            await self._holds[_Place(broker_id, point, peer)].reached.wait()

    def release(self, broker_id: int, point: PausePoint, peer: int | None = None) -> None:
        """Let the broker continue; no error if it was not held."""
        hold = self._holds.pop(_Place(broker_id, point, peer), None)
        if hold is not None:
            hold.released.set()

    def release_all(self) -> None:
        """Let every broker continue."""
        for place in list(self._holds):
            self.release(*place)

    def died(self, broker_id: int) -> None:
        """Record that a broker's process ended, so that it waits at no held point."""
        for place, hold in self._holds.items():
            if place.broker_id == broker_id:
                hold.reached.clear()


class MemoryPauses:
    """One broker's side; see `Pauses`."""

    def __init__(self, holds: dict[_Place, _Hold], broker_id: int) -> None:
        self._holds = holds
        self._broker_id = broker_id

    async def at(self, point: PausePoint, peer: int | None = None) -> None:
        while self._holds and (hold := self._hold(point, peer)) is not None:
            hold.reached.set()
            await hold.released.wait()

    def _hold(self, point: PausePoint, peer: int | None) -> _Hold | None:
        everywhere = self._holds.get(_Place(self._broker_id, point, None))
        return everywhere or self._holds.get(_Place(self._broker_id, point, peer))
