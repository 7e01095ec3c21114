"""What happened in a run, in the order of virtual time: the faults, and every broker's events."""

import asyncio
from collections import Counter
from operator import itemgetter

from barnabas.events import EventKind
from barnabas.events.telling import in_words

from barnabas_simulator.cluster import SimulatedCluster


class Story:
    """`note` adds a line of the simulator's own; the brokers' events are read at the end."""

    def __init__(self, cluster: SimulatedCluster, tell: bool) -> None:
        self._cluster = cluster
        self._tell = tell
        self._notes: list[tuple[float, str]] = []

    def note(self, text: str) -> None:
        if self._tell:
            self._notes.append((asyncio.get_running_loop().time(), text))

    def event_counts(self) -> dict[str, int]:
        """How often each kind of event occurred; every kind is there, be it with 0."""
        counts = Counter({f"event: {kind}": 0 for kind in EventKind})
        counts.update(f"event: {event.kind}" for event in self._cluster.events())
        return dict(counts)

    def lines(self) -> list[str]:
        if not self._tell:
            return []
        start_ms = self._cluster.clock.start_ms
        told = [(at, f"*** {text}") for at, text in self._notes]
        for event in self._cluster.events():
            if event.kind is not EventKind.OFFSETS_MOVED:
                told.append(((event.time_ms - start_ms) / 1000, in_words(event)))
        told.sort(key=itemgetter(0))
        return [f"{at:9.3f} {text}" for at, text in told]
