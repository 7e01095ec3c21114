"""The timeline of a run in virtual time: the faults, and every broker's events."""

import asyncio
from collections import Counter
from operator import itemgetter

from barnabas_common.events import EventKind

from barnabas_simulator.cluster import SimulatedCluster


class Story:
    """`note` adds a line of the simulator; the brokers' events are read at the end."""

    def __init__(self, cluster: SimulatedCluster, tell: bool) -> None:
        self._cluster = cluster
        self._tell = tell
        self._notes: list[tuple[float, str]] = []

    def note(self, text: str) -> None:
        if self._tell:
            self._notes.append((asyncio.get_running_loop().time(), text))

    def event_counts(self) -> dict[str, int]:
        """Count the events by kind; every kind has an entry, even if it is 0."""
        counts = Counter({f"event: {kind}": 0 for kind in EventKind})
        counts.update(f"event: {event.kind}" for event in self._cluster.events())
        return dict(counts)

    def lines(self) -> list[str]:
        if not self._tell:
            return []
        lines = [(at, f"*** {text}") for at, text in self._notes] + self._cluster.timeline()
        return [f"{at:9.3f} {text}" for at, text in sorted(lines, key=itemgetter(0))]
