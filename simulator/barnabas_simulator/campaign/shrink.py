"""Reduces a failing run: fewer faults, a shorter chaos, fewer clients, but the same broken rule.

Faults are dropped by delta debugging (Zeller's ddmin): halves first, then smaller parts.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from barnabas_simulator.campaign.faults.faults import Fault
from barnabas_simulator.campaign.options import Options
from barnabas_simulator.campaign.schedule import run_schedule

Fails = Callable[[Options, Sequence[Fault]], bool]

MAX_RUNS = 150
LEEWAY_SECONDS = 3.0


class _Spent(Exception):
    """No more runs are allowed; the smallest run found so far is the result."""


def fails_alike(kind: str) -> Fails:
    """Return a predicate: whether a run breaks the same rule."""
    return lambda options, faults: run_schedule(options, faults).kind == kind


def shrink(
    options: Options, faults: Sequence[Fault], fails: Fails, max_runs: int = MAX_RUNS
) -> tuple[Options, list[Fault]]:
    """Return the smallest options and faults found that still fail; the given ones must fail."""
    return _Shrinking(options, list(faults), fails, max_runs).run()


class _Shrinking:
    def __init__(self, options: Options, faults: list[Fault], fails: Fails, runs: int) -> None:
        self._options = options
        self._faults = faults
        self._fails = fails
        self._runs = runs

    def run(self) -> tuple[Options, list[Fault]]:
        try:
            self._drop_faults()
            self._simplify()
            self._drop_faults()
        except _Spent:
            pass
        return self._options, self._faults

    def _try(self, options: Options, faults: list[Fault]) -> bool:
        """Keep the smaller run if it fails too."""
        if self._runs == 0:
            raise _Spent
        self._runs -= 1
        if not self._fails(options, faults):
            return False
        self._options, self._faults = options, faults
        return True

    def _drop_faults(self) -> None:
        size = len(self._faults)
        while size >= 1:
            start = 0
            while start < len(self._faults):
                rest = self._faults[:start] + self._faults[start + size :]
                if not self._try(self._options, rest):
                    start += size
            size //= 2

    def _simplify(self) -> None:
        last = max((fault.at + fault.seconds for fault in self._faults), default=0.0)
        shorter = min(self._options.chaos_seconds, round(last + LEEWAY_SECONDS, 1))
        for change in (
            {"chaos_seconds": shorter},
            {"has_admin": False},
            {"producers": 1},
            {"consumers": 1},
            {"recreated": 0},
            {"expiring": 0},
            {"low_acks": ""},
            {"seekers": 0},
            {"growth": 0},
            {"codec": "none"},
            {"groups": 0},
            {"groups": min(1, self._options.groups)},
            {"members": min(2, self._options.members)},
            {"order_producers": 0, "copiers": 0},
            {"copiers": 0},
            {"copiers": min(1, self._options.copiers)},
            {"order_producers": min(1, self._options.order_producers)},
            {"order_partitions": 1},
            {"partitions": 1},
            {"late_chance": 0.0},
            {"brokers": 3},
        ):
            options = replace(self._options, **change)
            if options != self._options and options.replication_factor <= options.brokers:
                self._try(options, self._faults)
