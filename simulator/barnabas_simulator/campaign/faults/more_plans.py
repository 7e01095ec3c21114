"""Draws the faults that have a random stream of their own: without them a seed's others stay."""

import random
from collections.abc import Sequence

from barnabas_simulator.campaign.faults.faults import Fault, FaultKind, Znode
from barnabas_simulator.campaign.options import Options

LATE_GAP_SECONDS = 20.0
CUT_GAP_SECONDS = 80.0
ZOOKEEPER_LAG_GAP_SECONDS = 40.0
RESTORED = 0.2
ZNODE_GAP_SECONDS = 40.0
ZNODES = {
    FaultKind.DAMAGE_ZNODE: list(Znode),
    FaultKind.DELETE_ZNODE: [Znode.REGISTRATION, Znode.CONTROLLER],
    FaultKind.SET_BACK_EPOCH: [Znode.STATE, Znode.STATE, Znode.CONTROLLER_EPOCH],
}
ZOOKEEPER_LAGS = (0.3, 1.0, 3.0, 8.0)
"""ZooKeeper parts with a follower that is further behind (`syncLimit`, usually ten seconds)."""
LEADER_PATIENCE_SECONDS = 5.0
"""How long a leader waits for the controller before it writes the ISR itself, at most."""


def of_connections(options: Options) -> list[Fault]:
    """Draw late frames of abandoned connections, and leaders that are cut from the controller."""
    chance = random.Random(f"connection faults {options.seed}")
    faults = [_late_frames(options, chance, at) for at in _times(options, chance, LATE_GAP_SECONDS)]
    for at in _times(options, chance, CUT_GAP_SECONDS):
        faults += _cut_controller(options, chance, at)
    return faults


def _times(options: Options, chance: random.Random, gap: float) -> list[float]:
    times: list[float] = []
    at = chance.expovariate(1 / gap)
    while at < options.chaos_seconds:
        times.append(round(at, 3))
        at += chance.expovariate(1 / gap)
    return times


def _late_frames(options: Options, chance: random.Random, at: float) -> Fault:
    """A request travels from a controller, from a follower, or from a client."""
    ids = [str(broker_id) for broker_id in range(1, options.brokers + 1)]
    receivers = [*ids, "leader", "leader"]
    senders = ["controller", "controller", "follower", "leader", chance.choice(ids)]
    senders += [f"producer-{number}" for number in range(options.producers)]
    if options.groups:
        receivers.append("coordinator")
        senders.append(
            chance.choice([n for g in options.group_ids for n in options.member_names(g)])
        )
    if options.has_transactions:
        receivers.append("transactions")
        senders += [*options.order_producer_names, *options.copier_names]
    target, other = chance.choice(senders), chance.choice(receivers)
    return Fault(at, FaultKind.LATE_FRAMES, target, other, _late_seconds(options, chance))


def _late_seconds(options: Options, chance: random.Random) -> float:
    """From a moment to longer than a session."""
    longest = chance.choice([0.5, 3.0, 2 * options.session_timeout_ms / 1000])
    return round(longest * chance.uniform(0.2, 1.0), 3)


def _cut_controller(options: Options, chance: random.Random, at: float) -> Sequence[Fault]:
    """A leader needs the controller once a follower is late: half of the time a broker stops."""
    lag = options.lag_max_ms / 1000
    seconds = round((lag + LEADER_PATIENCE_SECONDS) * chance.uniform(1.0, 2.0), 3)
    cut = Fault(
        at, FaultKind.CUT_CONTROLLER, "leader", chance.choice(["to", "from", "both"]), seconds
    )
    broker = str(chance.randrange(1, options.brokers + 1))
    late = Fault(round(at + 0.5, 3), FaultKind.PAUSE, broker, seconds=seconds)
    return [cut, late] if chance.random() < 0.5 else [cut]


def of_zookeeper(options: Options) -> list[Fault]:
    """Draw servers of ZooKeeper that lag behind, and znodes that are damaged."""
    chance = random.Random(f"zookeeper faults {options.seed}")
    times = _times(options, chance, ZOOKEEPER_LAG_GAP_SECONDS)
    faults = [_lag(options, chance, at) for at in times]
    chance = random.Random(f"znode faults {options.seed}")
    times = _times(options, chance, ZNODE_GAP_SECONDS)
    faults += [_of_znode(options, chance, at) for at in times]
    chance = random.Random(f"copies of zookeeper {options.seed}")
    return [*faults, *_restored_copy(options, chance)]


def _restored_copy(options: Options, chance: random.Random) -> list[Fault]:
    """In one of five runs: the brokers are restarted soon, or after their sessions. Not where a
    topic is made again, which an older copy would undo."""
    if chance.random() >= RESTORED or options.recreated:
        return []
    at = round(options.chaos_seconds * chance.uniform(0.3, 0.9), 3)
    age = round(chance.choice([2.0, 10.0, 20.0]) * chance.uniform(0.3, 1.0), 3)
    session = options.session_timeout_ms / 1000
    seconds = round(chance.choice([1.0, 5.0, 2 * session]) * chance.uniform(0.3, 1.0), 3)
    return [Fault(at, FaultKind.RESTORE_ZOOKEEPER, other=f"{age:g}", seconds=seconds)]


def _of_znode(options: Options, chance: random.Random, at: float) -> Fault:
    (kind,) = chance.choices(list(ZNODES), [3, 2, 1])
    target = chance.choice(ZNODES[kind])
    other = _broker(options, chance) if target is Znode.REGISTRATION else ""
    seconds = round(chance.choice([0.1, 2.0, 10.0, 20.0]) * chance.uniform(0.2, 1.0), 3)
    seconds = 0.0 if kind is FaultKind.DELETE_ZNODE else seconds
    return Fault(at, kind, target.value, other, seconds)


def _broker(options: Options, chance: random.Random) -> str:
    ids = [str(broker_id) for broker_id in range(1, options.brokers + 1)]
    return chance.choice([*ids, "leader", "controller", "controller", "follower"])


def _lag(options: Options, chance: random.Random, at: float) -> Fault:
    target = _broker(options, chance)
    seconds = round(chance.choice([3.0, 15.0, 30.0]) * chance.uniform(0.3, 1.0), 3)
    lag = chance.choice(ZOOKEEPER_LAGS)
    return Fault(at, FaultKind.LAG_ZOOKEEPER, target, f"{lag:g}", seconds)
