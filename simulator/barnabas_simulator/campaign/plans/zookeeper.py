"""Draws the faults of ZooKeeper: servers that lag behind, znodes that are damaged, and copies that
are restored.

Each kind has a random stream of its own, so that the other faults of a seed stay what they were.
"""

import random

from barnabas_simulator.campaign.faults.faults import Fault, FaultKind, Znode
from barnabas_simulator.campaign.options import Options
from barnabas_simulator.campaign.plans.drawing import broker_names, duration, random_times

LAG_GAP_SECONDS = 40.0
ZNODE_GAP_SECONDS = 40.0
RESTORED = 0.2
LAGS = (0.3, 1.0, 3.0, 8.0)
"""ZooKeeper parts with a follower that is further behind (`syncLimit`, usually ten seconds)."""
ZNODES = {
    FaultKind.DAMAGE_ZNODE: list(Znode),
    FaultKind.DELETE_ZNODE: [Znode.REGISTRATION, Znode.CONTROLLER],
    FaultKind.SET_BACK_EPOCH: [Znode.STATE, Znode.STATE, Znode.CONTROLLER_EPOCH],
}


def of_zookeeper(options: Options) -> list[Fault]:
    """Draw the faults of ZooKeeper of a run."""
    end = options.chaos_seconds
    chance = random.Random(f"zookeeper faults {options.seed}")
    times = list(random_times(chance, LAG_GAP_SECONDS, end))
    faults = [_lag(options, chance, at) for at in times]
    chance = random.Random(f"znode faults {options.seed}")
    times = list(random_times(chance, ZNODE_GAP_SECONDS, end))
    faults += [_of_znode(options, chance, at) for at in times]
    chance = random.Random(f"copies of zookeeper {options.seed}")
    return [*faults, *_restored_copy(options, chance)]


def _lag(options: Options, chance: random.Random, at: float) -> Fault:
    target = _broker(options, chance)
    seconds = duration(chance, [3.0, 15.0, 30.0], 0.3, 1.0)
    return Fault(at, FaultKind.LAG_ZOOKEEPER, target, f"{chance.choice(LAGS):g}", seconds)


def _of_znode(options: Options, chance: random.Random, at: float) -> Fault:
    """A state is set back only where the gate is on. Without it a lone member of an ISR exposes
    records, which are lost if that member is stopped then (`docs/failures.md`)."""
    (kind,) = chance.choices(list(ZNODES), [3, 2, 1])
    target = chance.choice(ZNODES[kind])
    if kind is FaultKind.SET_BACK_EPOCH and target is Znode.STATE and not options.has_gate:
        target = Znode.CONTROLLER_EPOCH
    other = _broker(options, chance) if target is Znode.REGISTRATION else ""
    seconds = duration(chance, [0.1, 2.0, 10.0, 20.0], 0.2, 1.0)
    seconds = 0.0 if kind is FaultKind.DELETE_ZNODE else seconds
    return Fault(at, kind, target.value, other, seconds)


def _restored_copy(options: Options, chance: random.Random) -> list[Fault]:
    """In one of five runs: the brokers are restarted soon, or after their sessions. Not where a
    topic is made again, which an older copy would undo, nor without eligible replicas: then no one
    knows that the copy is older."""
    if chance.random() >= RESTORED or options.recreated or not options.keeps_eligible_replicas:
        return []
    at = round(options.chaos_seconds * chance.uniform(0.3, 0.9), 3)
    age = duration(chance, [2.0, 10.0, 20.0], 0.3, 1.0)
    session = options.session_timeout_ms / 1000
    seconds = duration(chance, [1.0, 5.0, 2 * session], 0.3, 1.0)
    return [Fault(at, FaultKind.RESTORE_ZOOKEEPER, other=f"{age:g}", seconds=seconds)]


def _broker(options: Options, chance: random.Random) -> str:
    targets = [*broker_names(options), "leader", "controller", "controller", "follower"]
    return chance.choice(targets)
