"""What all plans draw in the same way: times, durations and brokers."""

import random
from collections.abc import Iterator, Sequence

from barnabas_simulator.campaign.options import Options


def random_times(
    chance: random.Random, gap: float, end: float, begin: float = 0.0
) -> Iterator[float]:
    """Yield times that are `gap` seconds apart on average and independent of each other.

    Each is drawn when it is asked for, after what the caller has drawn for the one before.
    """
    at = begin + chance.expovariate(1 / gap)
    while at < end:
        yield round(at, 3)
        at += chance.expovariate(1 / gap)


def duration(
    chance: random.Random, longest: Sequence[float], least: float = 0.2, most: float = 1.2
) -> float:
    """Draw one of these durations, and which part of it: from `least` to `most`."""
    return round(chance.choice(longest) * chance.uniform(least, most), 3)


def broker_names(options: Options) -> list[str]:
    """Return the ids of all brokers, as faults name them."""
    return [str(broker_id) for broker_id in range(1, options.brokers + 1)]
