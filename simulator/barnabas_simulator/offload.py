"""Blocking work on virtual time: it takes a while, and its node's event loop continues."""

import asyncio
import random
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LONGEST_SECONDS = 0.002
STALL_CHANCE = 0.01
STALL_SECONDS = 0.5


class VirtualOffload:
    """An `Offload` in which each call waits for a thread, does its work, and reports back.

    The work itself takes one instant within that time; one call in a hundred stalls, as an fsync on
    a busy disk does.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        await asyncio.sleep(self._seconds())
        try:
            return function(*args, **kwargs)
        finally:
            await asyncio.sleep(self._seconds())

    def _seconds(self) -> float:
        longest = STALL_SECONDS if self._random.random() < STALL_CHANCE else LONGEST_SECONDS
        return longest * self._random.random()
