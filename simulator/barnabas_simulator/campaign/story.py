"""What happened in a run, in the order of virtual time: the faults, and every broker's events."""

import asyncio
from collections import Counter

from barnabas.events import Event, EventKind

from barnabas_simulator.cluster import SimulatedCluster


class Story:
    """`note` adds a line of the simulator's own; the brokers' events are read at the end."""

    def __init__(self, cluster: SimulatedCluster, tell: bool) -> None:
        self._cluster = cluster
        self._tell = tell
        self._notes: list[tuple[float, str]] = []
        self._start_ms: int | None = None

    def note(self, text: str) -> None:
        if self._tell:
            self._notes.append((asyncio.get_running_loop().time(), text))

    def event_counts(self) -> dict[str, int]:
        """How often each kind of event occurred; every kind is there, be it with 0."""
        counts = Counter({f"event: {kind}": 0 for kind in EventKind})
        for _, log in self._cluster.event_logs:
            for event in log.since(0):
                counts[f"event: {event.kind}"] += 1
        return dict(counts)

    def lines(self) -> list[str]:
        if not self._tell:
            return []
        clock = self._cluster.clock
        started = clock.wall_ms() - asyncio.get_running_loop().time() * 1000
        told = [(at, 0, f"*** {text}") for at, text in self._notes]
        for life, log in self._cluster.event_logs:
            for event in log.since(0):
                if event.kind is not EventKind.OFFSETS_MOVED:
                    told.append(((event.time_ms - started) / 1000, 1, _line(life, event)))
        told.sort(key=lambda one: one[:2])
        return [f"{at:9.3f} {text}" for at, _, text in told]


def _line(life: str, event: Event) -> str:
    where = f" {event.topic_partition}" if event.topic_partition is not None else ""
    details = ", ".join(f"{name} {value}" for name, value in event.details.items())
    return f"{life}: {event.kind}{where} ({details}): {event.cause}"
