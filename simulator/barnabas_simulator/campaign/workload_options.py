"""Options of the clients that only some runs have; each kind is drawn from a stream of its own,
so that the other options of a seed stay what they were (see `Options.may_lose_records` too)."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Chance = random.Random


@dataclass(frozen=True, kw_only=True)
class WorkloadOptions:
    """`growth`: how many partitions the common topic gets while it is in use, one at a time.
    `codec`: what producers compress with. `seekers` read the common topic.

    `recreated`, `expiring`, `low_acks_partitions`: partitions of the topic that is deleted and made
    again, of the one with `expiring_ms` and `expiring_bytes` as limits of retention, and of that of
    the producers `low_acks`, one for each acks that is named. `expiring_reset`: the policy of the
    reader that falls behind. `burst`: how many records are sent at once now and then.
    """

    growth: int = 0
    codec: str = "none"
    seekers: int = 0
    recreated: int = 0
    expiring: int = 0
    expiring_ms: int = -1
    expiring_bytes: int = -1
    expiring_segment_bytes: int = 1_048_576
    expiring_reset: str = "earliest"
    low_acks: str = ""
    low_acks_partitions: int = 1
    low_acks_in_flight: int = 5
    low_acks_segment_bytes: int = 1_048_576
    burst: int = 1


def draw_workload(seed: int, deletes: bool) -> dict[str, Any]:
    """Draw these options of a seed: those that differ from their defaults. `deletes`: whether
    topics can be deleted, and every broker is back in the end."""
    found: dict[str, Any] = {}
    for name, one_in, draw in KINDS:
        chance = random.Random(f"{seed}/workload {name}")
        if not chance.randrange(one_in) and (deletes or name != "recreated"):
            found |= draw(chance)
    return found


def _expiring(chance: Chance) -> dict[str, Any]:
    limits = chance.choice([(2_000, -1), (6_000, -1), (-1, 600), (-1, 3_000), (6_000, 2_000)])
    return {
        "expiring": chance.choice([1, 2]),
        "expiring_ms": limits[0],
        "expiring_bytes": limits[1],
        "expiring_segment_bytes": chance.choice([300, 600, 2_000]),
        "expiring_reset": chance.choice(["earliest", "latest", "none"]),
    }


def _low_acks(chance: Chance) -> dict[str, Any]:
    return {
        "low_acks": chance.choice(["0,1", "1,all", "0,1,all"]),
        "low_acks_partitions": chance.choice([1, 2]),
        "low_acks_in_flight": chance.choice([1, 5]),
        "low_acks_segment_bytes": chance.choice([8_192, 1_048_576]),
        "burst": chance.choice([1, 20, 60]),
    }


KINDS: tuple[tuple[str, int, Callable[[Chance], dict[str, Any]]], ...] = (
    ("growth", 12, lambda chance: {"growth": chance.choice([1, 1, 2])}),
    ("codec", 6, lambda chance: {"codec": chance.choice(["gzip", "snappy", "lz4", "zstd"])}),
    ("seekers", 9, lambda chance: {"seekers": chance.choice([1, 1, 2])}),
    ("recreated", 7, lambda chance: {"recreated": chance.choice([1, 2])}),
    ("expiring", 10, _expiring),
    ("low acks", 8, _low_acks),
)
"""Each kind of clients, in one of how many runs there are such, and how they are drawn."""
