"""The timeline of a run in virtual time: the faults, the brokers' events, what the checker noted.

The whole story has every line. The short one is about the partitions of which the run was wrong, on
a page: if there is too much, the least telling lines are left out, the oldest of them first.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from enum import IntEnum
from operator import attrgetter
from typing import NamedTuple

from barnabas_common.events import Event, EventKind
from barnabas_common.events.event_text import in_words, subject
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.campaign.conclusion import Conclusion, names
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import VirtualLoop

MAX_LINES = 40


class Weight(IntEnum):
    """How much a line tells about what went wrong; the lowest are left out first."""

    CLIENT = 0
    EVENT = 1
    STATE = 2
    MAIN = 3


MAIN_EVENTS = frozenset(
    {
        EventKind.BECAME_LEADER,
        EventKind.LOG_TRUNCATED,
        EventKind.COMMITTED_RECORDS_TRUNCATED,
        EventKind.LOG_RECOVERED,
        EventKind.LOG_DAMAGED,
        EventKind.CHECKPOINT_DAMAGED,
        EventKind.REPLICA_LOST,
        EventKind.REPLICA_DELETED,
        EventKind.EPOCH_RAISED,
        EventKind.STATE_UNCONFIRMED,
    }
)


class Line(NamedTuple):
    """`about`: the partition, group or transactional id; empty if it concerns all."""

    at: float
    text: str
    weight: Weight
    about: str = ""

    def __str__(self) -> str:
        return f"{self.at:9.3f} {self.text}"


class Story:
    """Records nothing unless `tell`; the brokers' events are read at the end."""

    def __init__(self, cluster: SimulatedCluster, tell: bool) -> None:
        self.tell = tell
        self._cluster = cluster
        self._lines: list[Line] = []
        self._opened: set[str] = set()

    # ---- while the run lasts

    def fault(self, text: str) -> None:
        self._add(f"*** {text}", Weight.STATE if text.startswith("end of ") else Weight.MAIN)

    def note(self, text: str) -> None:
        """Add what happened to a client."""
        self._add(f"*** {text}", Weight.CLIENT)

    def checked(self, text: str, about: TopicPartition | None) -> None:
        """Add what the checker has noted."""
        self._add(f"    {text}", Weight.STATE, "" if about is None else str(about))

    def watch_starts(self) -> None:
        """From now on note each log that a broker opens at its start."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        check = loop.after_turn

        def after_turn(nodes: set[str]) -> None:
            for incarnation in sorted(nodes - self._opened):
                self._look_for_logs(incarnation)
            if check is not None:
                check(nodes)

        loop.after_turn = after_turn

    def _look_for_logs(self, incarnation: str) -> None:
        """A broker records that it has started right after it has opened its logs."""
        events = self._cluster.event_logs.get(incarnation)
        kinds = [] if events is None else [event.kind for event in events.since(0)]
        if EventKind.BROKER_STARTED not in kinds:
            return
        self._opened.add(incarnation)
        broker = self._cluster.brokers().get(incarnation)
        for log in broker.log_manager.logs() if broker is not None else ():
            epochs = [[entry.epoch, entry.start_offset] for entry in log.leader_epochs.entries]
            self._add(
                f"    {incarnation} opens {log.topic_partition}:"
                f" log {log.log_start_offset}..{log.log_end_offset},"
                f" high watermark {log.high_watermark}, recovery point {log.recovery_point},"
                f" epochs {epochs}",
                Weight.MAIN,
                str(log.topic_partition),
            )

    def _add(self, text: str, weight: Weight, about: str = "") -> None:
        if self.tell:
            at = int(asyncio.get_running_loop().time() * 1000) / 1000  # like the events
            self._lines.append(Line(at, text, weight, about))

    # ---- at the end

    def event_counts(self) -> dict[str, int]:
        """Count the events by kind; every kind has an entry, even if it is 0."""
        counts = Counter({f"event: {kind}": 0 for kind in EventKind})
        counts.update(f"event: {event.kind}" for event in self._cluster.events())
        return dict(counts)

    def partitions(self) -> list[TopicPartition]:
        """Every partition that a broker's event was about."""
        found = {event.topic_partition for event in self._cluster.events()}
        return sorted(partition for partition in found if partition is not None)

    def lines(self) -> list[str]:
        """The whole story."""
        return [str(line) for line in self._all()]

    def short(self, conclusion: Conclusion) -> list[str]:
        """The story of what was wrong, with the conclusion at its end."""
        if not self.tell:
            return []
        every = self._all()
        kept = _most_telling([line for line in every if _is_about(line, conclusion)])
        left_out = f"({len(kept)} of {len(every)} lines; --whole prints all)"
        return [left_out, *map(str, kept), *conclusion.lines()]

    def _all(self) -> list[Line]:
        if not self.tell:
            return []
        events = [_line_of(at, event) for at, event in self._cluster.dated_events()]
        return sorted([*self._lines, *events], key=attrgetter("at"))


def _line_of(at: float, event: Event) -> Line:
    about = event.details.get("transactional_id") or event.details.get("group")
    weight = Weight.MAIN if event.kind in MAIN_EVENTS else Weight.EVENT
    return Line(at, in_words(event), weight, str(event.topic_partition or about or subject(event)))


def _is_about(line: Line, conclusion: Conclusion) -> bool:
    """Whether a line concerns all, or a partition or a group that is concluded to be wrong, and is
    no later than that: when a run ends, what still runs of it may fail."""
    if line.at > conclusion.at:
        return False
    if not line.about:
        return line.weight is not Weight.CLIENT or _names_one(line.text, conclusion)
    return names(conclusion.states, line.about) or (
        line.about in map(str, conclusion.partitions) or not conclusion.partitions
    )


def _names_one(text: str, conclusion: Conclusion) -> bool:
    return any(names(text, str(partition)) for partition in conclusion.partitions)


def _most_telling(lines: Iterable[Line]) -> list[Line]:
    """As many lines as fit beside the conclusion, in their order; of equal weight the newest."""
    lines = list(lines)
    room = MAX_LINES - 5  # the conclusion, and the line that counts what is left out
    numbered = sorted(enumerate(lines), key=lambda item: (item[1].weight, item[0]))
    return [line for _, line in sorted(numbered[-room:], key=lambda item: item[0])]
