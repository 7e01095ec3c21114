"""Liveness: the smallest part of a cluster that must make progress without the rest."""

import random
from collections.abc import Collection, Iterable
from itertools import combinations

from barnabas_simulator.campaign.state import PartitionState


def can_progress(core: Collection[int], partitions: Iterable[PartitionState], min_isr: int) -> bool:
    """Whether `core` holds `min_isr` replicas of each partition, and one of them may lead: it is in
    the ISR and has not lost its log, or it is eligible while no member is registered."""
    return all(
        any(r in core and r not in found.lost for r in (*found.state.isr, *found.replacements))
        and len(set(found.replicas) & set(core)) >= min(min_isr, len(found.replicas))
        and (not found.is_older or _answers_are_enough(core, found, min_isr))
        for found in partitions
    )


def _answers_are_enough(core: Collection[int], found: PartitionState, min_isr: int) -> bool:
    """Whether a leader is elected from an older state: all replicas have answered, or so many that
    one of them has every acknowledged record."""
    missing = set(found.replicas) - set(core)
    return not missing or len(missing | set(found.may_lack)) < min_isr


def choose_core(
    brokers: Collection[int],
    partitions: Collection[PartitionState],
    min_isr: int,
    chance: random.Random,
) -> list[int]:
    """Choose one of the smallest sets of brokers that can progress; all if there is no smaller."""
    for size in range(min_isr, len(brokers)):
        fit = [c for c in combinations(brokers, size) if can_progress(c, partitions, min_isr)]
        if fit:
            return list(chance.choice(fit))
    return list(brokers)
