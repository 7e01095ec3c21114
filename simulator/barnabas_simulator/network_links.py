"""What is wrong with each link of the memory network; a link is one direction between two hosts.

Cuts may also be between two lives of nodes, and then end with either.
"""

import random
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

Link = tuple[str, str]
"""Sender and receiver, by host."""


def host_of(node: str) -> str:
    """The machine a life of a node runs on: `broker-1` of `broker-1/2`."""
    return node.partition("/")[0]


def link_of(sender: str, receiver: str) -> Link:
    return host_of(sender), host_of(receiver)


class Links:
    """The faults of all links; asked once a frame, so a network in good health costs nothing."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._cuts: dict[Link, None] = {}
        self._delays: dict[Link, float] = {}
        self._flaky: dict[Link, float] = {}
        self._doomed: dict[Link, None] = {}
        self._dark: dict[str, None] = {}

    def cut(self, link: Link, is_cut: bool) -> None:
        _set(self._cuts, link, None, is_cut)

    def delay(self, link: Link, seconds: float) -> None:
        """Each frame takes up to so much longer; 0 undoes it."""
        _set(self._delays, link, seconds, seconds > 0)

    def make_flaky(self, link: Link, chance: float) -> None:
        """Each frame is lost with that chance, and breaks its connection; 0 undoes it."""
        _set(self._flaky, link, chance, chance > 0)

    def lose_next(self, link: Link) -> None:
        """The next frame is lost, and breaks its connection."""
        self._doomed[link] = None

    def lose_nothing_more(self) -> None:
        """Undo every `lose_next` that has not struck."""
        self._doomed.clear()

    def darken(self, host: str, is_dark: bool) -> None:
        """A host without power sends nothing and refuses nothing."""
        _set(self._dark, host, None, is_dark)

    def is_dark(self, host: str) -> bool:
        return host in self._dark

    def swallows(self, link: Link) -> bool:
        """Whether what one node sends to another does not arrive, and nobody is told."""
        if not self._cuts and not self._dark:
            return False
        hosts = link_of(*link)
        if hosts[0] in self._dark or hosts[1] in self._dark:
            return True
        return link in self._cuts or hosts in self._cuts

    def extra_delay(self, link: Link) -> float:
        """Of the next frame, in seconds."""
        if not self._delays or link not in self._delays:
            return 0.0
        return self._delays[link] * self._chance.random()

    def breaks(self, link: Link) -> bool:
        """Whether the frame to be sent now is lost with its connection."""
        if not self._doomed and not self._flaky:
            return False
        if link in self._doomed:
            del self._doomed[link]
            return True
        return link in self._flaky and self._chance.random() < self._flaky[link]


def _set(table: dict[K, V], key: K, value: V, present: bool) -> None:
    if present:
        table[key] = value
    else:
        table.pop(key, None)
