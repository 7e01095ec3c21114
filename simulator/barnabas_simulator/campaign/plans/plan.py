"""Draws the faults of a run from its seed.

As in Jepsen's suites, every 20 s of the chaos a few kinds of faults are chosen, or none in a
quarter of the cases. A fault follows every few seconds, on roles as often as on named brokers.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

from barnabas_simulator.campaign.faults.faults import (
    OF_MEMBERS,
    OF_TRANSACTIONS,
    Fault,
    FaultKind,
)
from barnabas_simulator.campaign.options import Mode, Options
from barnabas_simulator.campaign.plans.connections import of_connections
from barnabas_simulator.campaign.plans.disks import of_disks, without_destruction
from barnabas_simulator.campaign.plans.drawing import broker_names, duration, random_times
from barnabas_simulator.campaign.plans.steps import steps
from barnabas_simulator.campaign.plans.zookeeper import of_zookeeper

EPOCH_SECONDS = 20.0
QUIET = 0.25

WEIGHTS = {
    FaultKind.KILL: 6,
    FaultKind.KILL_ALL: 1,
    FaultKind.STOP: 2,
    FaultKind.PAUSE: 4,
    FaultKind.LOSE_POWER: 4,
    FaultKind.WIPE: 2,
    FaultKind.SKEW: 2,
    FaultKind.KILL_CLIENT: 3,
    FaultKind.CUT: 3,
    FaultKind.PART: 3,
    FaultKind.ISOLATE: 3,
    FaultKind.RING: 1,
    FaultKind.UNPLUG: 2,
    FaultKind.CUT_CLIENTS: 1,
    FaultKind.RESET: 2,
    FaultKind.REJECT: 2,
    FaultKind.LOSE_ANSWER: 4,
    FaultKind.FLAKY: 2,
    FaultKind.SLOW: 2,
    FaultKind.FAIL_WRITE: 1,
    FaultKind.FAIL_FLUSH: 1,
    FaultKind.DISK_FULL: 1,
    FaultKind.SPOIL_CHECKPOINT: 1,
    FaultKind.LOSE_FOLDER: 2,
    FaultKind.EXPIRE: 3,
    FaultKind.PART_ZOOKEEPER: 3,
    FaultKind.LOSE_ZOOKEEPER_REQUEST: 3,
    FaultKind.LOSE_ZOOKEEPER_ANSWER: 3,
    FaultKind.ZOOKEEPER_DOWN: 1,
    FaultKind.SPOIL_SETTINGS: 1,
}
_PAIRS = (FaultKind.CUT, FaultKind.PART, FaultKind.RESET)
_WITHOUT_TARGET = (
    FaultKind.KILL_ALL,
    FaultKind.RING,
    FaultKind.ZOOKEEPER_DOWN,
    FaultKind.SPOIL_SETTINGS,
)
_AT_ONCE = (
    FaultKind.RESET,
    FaultKind.LOSE_ANSWER,
    FaultKind.EXPIRE,
    FaultKind.LOSE_ZOOKEEPER_REQUEST,
    FaultKind.LOSE_ZOOKEEPER_ANSWER,
)


CLIENTS_GAP_SECONDS = 12.0


def plan(options: Options) -> list[Fault]:
    """Draw the faults of a run, in order of time."""
    if options.mode is Mode.STEPS:
        return steps(options)
    faults = _of_brokers(options)
    # Drawn by themselves, so that the other faults of a seed stay the same without them.
    if options.groups:
        chance = random.Random(f"group faults {options.seed}")
        faults = [_instead_of_leaders(chance, fault, "coordinator") for fault in faults]
        faults += _of_members(options, chance)
    if options.has_transactions:
        chance = random.Random(f"transaction faults {options.seed}")
        faults = [_instead_of_leaders(chance, fault, "transactions") for fault in faults]
        faults += _of_transactional_clients(options, chance)
    faults += [*of_connections(options), *of_zookeeper(options), *of_disks(options)]
    if not options.keeps_last_replica:
        faults = without_destruction(faults)
    return sorted(faults, key=lambda fault: fault.at)


def _instead_of_leaders(chance: random.Random, fault: Fault, target: str) -> Fault:
    """Let half of the faults of leaders meet a coordinator instead."""
    at_leader = fault.target == "leader" and chance.random() < 0.5
    return replace(fault, target=target) if at_leader else fault


def _of_transactional_clients(options: Options, chance: random.Random) -> list[Fault]:
    """They last a moment, or longer than a transaction may take."""
    names = [*options.order_producer_names, *options.copier_names]
    longest = [0.5, 2.0, 1.5 * options.transaction_timeout_ms / 1000]
    return _at_random(options, chance, OF_TRANSACTIONS, names, longest)


def _of_members(options: Options, chance: random.Random) -> list[Fault]:
    """Faults of members last a moment, or longer than what they are held to."""
    names = [name for group in options.group_ids for name in options.member_names(group)]
    session, poll = options.member_session_ms / 1000, options.max_poll_ms / 1000
    longest = [1.0, 5.0, 1.5 * session, 1.5 * poll]
    return _at_random(options, chance, OF_MEMBERS, names, longest)


def _at_random(
    options: Options,
    chance: random.Random,
    kinds: Sequence[FaultKind],
    targets: Sequence[str],
    longest: Sequence[float],
) -> list[Fault]:
    faults: list[Fault] = []
    for at in random_times(chance, CLIENTS_GAP_SECONDS, options.chaos_seconds):
        seconds = duration(chance, longest)
        kind, target = chance.choice(kinds), chance.choice(targets)
        faults.append(Fault(at, kind, target, seconds=seconds))
    return faults


def _of_brokers(options: Options) -> list[Fault]:
    chance = random.Random(f"faults {options.seed}")
    faults: list[Fault] = []
    begin = 0.0
    while begin < options.chaos_seconds:
        end = min(begin + EPOCH_SECONDS, options.chaos_seconds)
        if chance.random() >= QUIET:
            faults += _epoch(options, chance, begin, end)
        begin = end
    return faults


def _epoch(options: Options, chance: random.Random, begin: float, end: float) -> list[Fault]:
    kinds = list(WEIGHTS)
    chosen = chance.choices(kinds, list(WEIGHTS.values()), k=chance.randrange(2, 7))
    gap = chance.choice([0.7, 2.0, 4.0])
    times = random_times(chance, gap, end, begin)
    return [_fault(options, chance, at, chance.choice(chosen)) for at in times]


def _fault(options: Options, chance: random.Random, at: float, kind: FaultKind) -> Fault:
    ids = broker_names(options)
    target = other = ""
    if kind in _PAIRS:
        target, other = chance.sample(ids, 2)
    elif kind is FaultKind.KILL_CLIENT:
        target = f"producer-{chance.randrange(options.producers)}"
    elif kind not in _WITHOUT_TARGET:
        target = chance.choice([*ids, "leader", "leader", "follower", "controller"])
    seconds = 0.0 if kind in _AT_ONCE else _seconds(options, chance)
    return Fault(at, kind, target, other, seconds)


def _seconds(options: Options, chance: random.Random) -> float:
    """Draw a duration, from a moment to well beyond every timeout."""
    session = options.session_timeout_ms / 1000
    longest = [0.05, 1.0, session, 2 * session, 2 * options.lag_max_ms / 1000]
    return max(0.01, duration(chance, longest))
