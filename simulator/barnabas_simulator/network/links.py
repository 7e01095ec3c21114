"""The links of the memory network, and their faults; a link is one direction between two hosts.

A cut may also be between two incarnations of nodes, and then ends with either.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

Link = tuple[str, str]
"""Sender and receiver, by host."""


def host_of(node: str) -> str:
    """Return the machine that an incarnation runs on: `broker-1` of `broker-1/2`."""
    return node.partition("/")[0]


def link_of(sender: str, receiver: str) -> Link:
    return host_of(sender), host_of(receiver)


@dataclass(frozen=True)
class NetworkConditions:
    """How the network behaves; times in seconds, sizes in bytes."""

    min_latency: float = 0.0001
    max_latency: float = 0.001
    late_chance: float = 0.0  # of a frame that takes up to `late_latency`: the long tail
    late_latency: float = 0.05
    window: int = 4 * 1024 * 1024  # sent and not yet read; a writer waits beyond that
    connect_timeout: float = 2.0
    connect_retry: float = 0.2
    silence_limit: float = 15.0  # a connection over a cut link breaks after that


class Links:
    """Latency and faults of all links. Asked once a frame: without faults this is cheap."""

    def __init__(self, chance: random.Random, conditions: NetworkConditions) -> None:
        self.conditions = conditions
        self.on_frame: Callable[[Link, object], None] | None = None  # for a trace
        self.chance = chance
        self._cuts: dict[Link, None] = {}
        self._delays: dict[Link, float] = {}
        self._flaky: dict[Link, float] = {}
        self._doomed: dict[Link, None] = {}
        self._dark: dict[str, None] = {}

    def latency(self, link: Link | None = None) -> float:
        """Return how long the next frame takes, in seconds."""
        conditions = self.conditions
        seconds = self.chance.uniform(conditions.min_latency, conditions.max_latency)
        if conditions.late_chance and self.chance.random() < conditions.late_chance:
            seconds += conditions.late_latency * self.chance.random()
        return seconds if link is None else seconds + self._extra_delay(link)

    def cut(self, link: Link, is_cut: bool) -> None:
        _set(self._cuts, link, None, is_cut)

    def delay(self, link: Link, seconds: float) -> None:
        """Delay each frame by up to `seconds` more; 0 undoes it."""
        _set(self._delays, link_of(*link), seconds, seconds > 0)

    def make_flaky(self, link: Link, chance: float) -> None:
        """Lose each frame with that chance, and its connection with it; 0 undoes it."""
        _set(self._flaky, link_of(*link), chance, chance > 0)

    def lose_next(self, link: Link) -> None:
        """Lose the next frame, and its connection with it."""
        self._doomed[link_of(*link)] = None

    def lose_nothing_more(self) -> None:
        """Undo every `lose_next` that has not taken effect."""
        self._doomed.clear()

    def darken(self, host: str, is_dark: bool) -> None:
        """Take a host's power: it sends nothing and refuses nothing."""
        _set(self._dark, host, None, is_dark)

    def is_dark(self, host: str) -> bool:
        return host in self._dark

    def swallows(self, link: Link) -> bool:
        """Whether what one node sends to another is silently dropped."""
        if not self._cuts and not self._dark:
            return False
        hosts = link_of(*link)
        if hosts[0] in self._dark or hosts[1] in self._dark:
            return True
        return link in self._cuts or hosts in self._cuts

    def _extra_delay(self, link: Link) -> float:
        """Return the delay of the next frame, in seconds."""
        if not self._delays or link not in self._delays:
            return 0.0
        return self._delays[link] * self.chance.random()

    def breaks(self, link: Link) -> bool:
        """Whether the frame to be sent now is lost with its connection."""
        if not self._doomed and not self._flaky:
            return False
        if link in self._doomed:
            del self._doomed[link]
            return True
        return link in self._flaky and self.chance.random() < self._flaky[link]


def _set(table: dict[K, V], key: K, value: V, present: bool) -> None:
    if present:
        table[key] = value
    else:
        table.pop(key, None)
