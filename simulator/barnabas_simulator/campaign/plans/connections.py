"""Draws the faults of connections: late frames of abandoned ones, and leaders that are cut from the
controller.

Their random stream is their own, so that the other faults of a seed stay what they were.
"""

import random

from barnabas_simulator.campaign.faults.faults import Fault, FaultKind
from barnabas_simulator.campaign.options import Options
from barnabas_simulator.campaign.plans.drawing import broker_names, duration, random_times

LATE_GAP_SECONDS = 20.0
CUT_GAP_SECONDS = 80.0
LEADER_PATIENCE_SECONDS = 5.0
"""How long a leader waits for the controller before it writes the ISR itself, at most."""


def of_connections(options: Options) -> list[Fault]:
    """Draw the faults of connections of a run."""
    chance = random.Random(f"connection faults {options.seed}")
    times = list(random_times(chance, LATE_GAP_SECONDS, options.chaos_seconds))
    faults = [_late_frames(options, chance, at) for at in times]
    for at in list(random_times(chance, CUT_GAP_SECONDS, options.chaos_seconds)):
        faults += _cut_controller(options, chance, at)
    return faults


def _late_frames(options: Options, chance: random.Random, at: float) -> Fault:
    """A request travels from a controller, from a follower, or from a client: from a moment to
    longer than a session."""
    ids = broker_names(options)
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
    session = options.session_timeout_ms / 1000
    seconds = duration(chance, [0.5, 3.0, 2 * session], 0.2, 1.0)
    return Fault(at, FaultKind.LATE_FRAMES, target, other, seconds)


def _cut_controller(options: Options, chance: random.Random, at: float) -> list[Fault]:
    """A leader needs the controller once a follower is late: half of the time a broker stops."""
    lag = options.lag_max_ms / 1000
    seconds = round((lag + LEADER_PATIENCE_SECONDS) * chance.uniform(1.0, 2.0), 3)
    cut = Fault(
        at, FaultKind.CUT_CONTROLLER, "leader", chance.choice(["to", "from", "both"]), seconds
    )
    broker = chance.choice(broker_names(options))
    late = Fault(round(at + 0.5, 3), FaultKind.PAUSE, broker, seconds=seconds)
    return [cut, late] if chance.random() < 0.5 else [cut]
