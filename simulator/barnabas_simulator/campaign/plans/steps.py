"""Draws the faults of a short run: steps half a second apart on average, four in ten without a
fault, on brokers, links and sessions.

What one step breaks stays broken for a few steps, so that faults overlap in every order.
"""

import random
from bisect import bisect

from barnabas_simulator.campaign.faults.faults import Fault, FaultKind
from barnabas_simulator.campaign.options import Options
from barnabas_simulator.campaign.plans.drawing import broker_names

LONGEST_GAPS = (0.01, 0.1, 1.0, 3.0)
QUIET = 0.4

WEIGHTS = {
    FaultKind.KILL: 8,
    FaultKind.KILL_ALL: 0.3,
    FaultKind.STOP: 2,
    FaultKind.POWER_CYCLE: 4,
    FaultKind.CUT: 3,
    FaultKind.DELAY: 5,
    FaultKind.EXPIRE: 4,
    FaultKind.PART_ZOOKEEPER: 2,
}
MEAN_STEPS = {
    FaultKind.KILL: 2,
    FaultKind.KILL_ALL: 2,
    FaultKind.STOP: 3,
    FaultKind.CUT: 8,
    FaultKind.DELAY: 5,
    FaultKind.PART_ZOOKEEPER: 8,
}
"""How many steps later a fault ends on average; the others end at once."""


def steps(options: Options) -> list[Fault]:
    """Draw the faults of a run of steps, in order of time."""
    chance = random.Random(f"steps {options.seed}")
    times = _times(options, chance)
    return [_step(options, chance, times, at) for at in times if chance.random() >= QUIET]


def _times(options: Options, chance: random.Random) -> list[float]:
    times: list[float] = []
    at = 0.0
    while at < options.chaos_seconds:
        times.append(round(at, 3))
        at += chance.choice(LONGEST_GAPS) * chance.random()
    return times


def _step(options: Options, chance: random.Random, times: list[float], at: float) -> Fault:
    (kind,) = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
    target, other = chance.sample(broker_names(options), 2)
    if kind is FaultKind.KILL_ALL:
        target = ""
    if kind is FaultKind.DELAY:
        target = chance.choice(["controller", target])
    elif kind is not FaultKind.CUT:
        other = ""
    return Fault(at, kind, target, other, _seconds(chance, times, at, kind))


def _seconds(chance: random.Random, times: list[float], at: float, kind: FaultKind) -> float:
    """Draw at which later step a fault ends."""
    if kind not in MEAN_STEPS:
        return 0.0
    later = int(chance.expovariate(1 / MEAN_STEPS[kind]))
    ends = times[bisect(times, at) - 1 :]
    return round(ends[min(later, len(ends) - 1)] - at, 3)
