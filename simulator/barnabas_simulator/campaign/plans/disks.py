"""Draws the faults of disks and of power, and says where each of them is not drawn.

Their random stream is their own, so that the other faults of a seed stay what they were.

- Power is not cut, and no disk loses data, where a rule of the last replica standing is switched
  off: then more may be lost than the judge could excuse exactly.
- All machines lose power only where everything is flushed, or where nothing but plain records
  depends on what is lost (`Options.may_lose_records`).
- Bits change only there too, because a group and a compacted log read their damaged records in
  other ways, and not where elections may be unclean: a sound replica might give way to a damaged
  one. Damage is found when it is read, and heals once another member of the ISR leads. So it may
  not heal in a core that has no other member, and is not drawn for liveness. An index needs no
  other replica. The indexes of times and of transactions stay whole: retention and readers believe
  them, as in Kafka.
"""

import random

from barnabas_simulator.campaign.faults.faults import DESTROYING, Fault, FaultKind
from barnabas_simulator.campaign.options import Mode, Options
from barnabas_simulator.campaign.plans.drawing import broker_names, duration, random_times

GAP_SECONDS = 15.0


def of_disks(options: Options) -> list[Fault]:
    """Draw the faults of disks of a run."""
    chance = random.Random(f"{options.seed}/disk faults")
    weights = _weights(options)
    targets = [*broker_names(options), "leader", "leader", "follower"]
    faults: list[Fault] = []
    for at in random_times(chance, GAP_SECONDS, options.chaos_seconds):
        (kind,) = chance.choices(list(weights), list(weights.values()))
        target = "" if kind is FaultKind.CUT_POWER else chance.choice(targets)
        faults.append(Fault(at, kind, target, seconds=_seconds(chance, kind)))
    return faults


def without_destruction(faults: list[Fault]) -> list[Fault]:
    """The faults after which every disk has what it had."""
    return [fault for fault in faults if fault.kind not in DESTROYING]


def _weights(options: Options) -> dict[FaultKind, int]:
    is_plain = options.may_lose_records
    may_rot = is_plain and options.mode is Mode.SAFETY and not options.unclean_elections
    weights = {
        FaultKind.FAIL_DIRECTORY: 3 * (options.log_dirs > 1),
        FaultKind.NO_DESCRIPTORS: 2,
        FaultKind.EVICT: 2,
        FaultKind.ROT: 3 * may_rot,
        FaultKind.ROT_INDEX: 1,
        FaultKind.ROT_CHECKPOINT: 1,
        FaultKind.CUT_POWER: 2 * (options.flush_all or is_plain),
    }
    if not options.keeps_last_replica:
        weights[FaultKind.EVICT] = weights[FaultKind.CUT_POWER] = 0
    return weights


def _seconds(chance: random.Random, kind: FaultKind) -> float:
    """A bit changes in a moment; a disk may fail for longer than everything else waits."""
    if kind in (FaultKind.ROT, FaultKind.ROT_INDEX):
        return 0.0
    longest = [60.0] if kind is FaultKind.FAIL_DIRECTORY else []
    return duration(chance, [1.0, 4.0, 10.0, *longest])
