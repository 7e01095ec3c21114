"""Eligibility in a controller term: reads what the decisions need, and keeps the states up to date.

The minimum ISR is read from ZooKeeper whenever a decision needs it: after it was lowered a replica
must not count as eligible any longer. `eligible.leader.replicas.enable` turns all of it on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.eligibility.eligible_leader_replicas import (
    EVERY_MEMBER_ELIGIBLE,
    LeaderEligibility,
    leader_eligibility,
    with_elr,
    with_initial_elr,
    without_elr,
)
from barnabas_controller.store.leader_and_isr import LeaderAndIsr

MIN_ISR_KEY = "min.insync.replicas"
NO_MINIMA: Mapping[TopicPartition, int] = MappingProxyType({})


async def minimum_isrs(
    term: ControllerTerm, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The effective minimum ISR of each partition: never more than it has replicas.

    A topic with malformed settings is left out: replicas that are eligible by another minimum than
    the topic's may miss committed records.
    """
    wanted = list(partitions)
    topics = list(dict.fromkeys(partition.topic for partition in wanted))
    configs = await term.store.topic_configs(topics)
    return {
        partition: minimum_isr(
            configs[partition.topic],
            term.config.min_insync_replicas,
            len(term.context.replicas(partition)),
        )
        for partition in wanted
        if partition.topic in configs
    }


def minimum_isr(overrides: Mapping[str, str], default: int, replica_count: int) -> int:
    """The effective minimum ISR of a partition, by its topic's overrides."""
    text = overrides.get(MIN_ISR_KEY, "")
    return min(int(text) if text.isascii() and text.isdigit() else default, replica_count)


async def minimum_isrs_of_elrs(
    term: ControllerTerm, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The minimum ISRs of those partitions that have eligible leader replicas."""
    leadership = term.context.leadership
    return await minimum_isrs(
        term, [p for p in partitions if p in leadership and leadership[p].eligible]
    )


def current_eligibility(
    term: ControllerTerm,
    partition: TopicPartition,
    state: LeaderAndIsr,
    minima: Mapping[TopicPartition, int] = NO_MINIMA,
) -> LeaderEligibility:
    """What is known now; no replica is awaited longer than `eligible.leader.replicas.wait.ms`."""
    context, config = term.context, term.config
    replicas = context.replicas(partition)
    known = EVERY_MEMBER_ELIGIBLE
    if config.eligible_leader_replicas_enable:
        online = context.online_replicas(partition)
        is_under_min_isr = len(state.isr) < minima.get(partition, 0)
        known = leader_eligibility(state, replicas, online, context.brokers, is_under_min_isr)
    now = term.runtime.clock.monotonic()
    if now - context.awaiting.get(partition, now) >= config.eligible_leader_replicas_wait:
        known = replace(known, awaited=())
    return replace(
        known,
        suspected=tuple(context.suspected_brokers()),
        unreachable=tuple(term.channels.unreachable(replicas)),
    )


def elect_after_wait(
    term: ControllerTerm,
    partition: TopicPartition,
    elect: Callable[[str], Awaitable[object]],
) -> None:
    """Call `elect(cause)` on the event queue when the wait for a better candidate is over."""
    if partition in term.context.awaiting:
        return
    term.context.awaiting[partition] = term.runtime.clock.monotonic()
    wait = term.config.eligible_leader_replicas_wait

    async def handle() -> None:
        await elect(f"no better candidate registered within {wait:g} s")

    asyncio.get_running_loop().call_later(
        wait, term.enqueue, f"{partition}: the wait is over", handle
    )


def with_first_elr(term: ControllerTerm, state: LeaderAndIsr) -> LeaderAndIsr:
    """The first state of a partition, to be written."""
    enabled = term.config.eligible_leader_replicas_enable
    return with_initial_elr(state, term.context.brokers) if enabled else state


async def with_elrs(
    term: ControllerTerm, changes: Mapping[TopicPartition, LeaderAndIsr]
) -> dict[TopicPartition, LeaderAndIsr]:
    """The states to be written, each with its eligible leader replicas."""
    context = term.context
    if not term.config.eligible_leader_replicas_enable:
        return {partition: without_elr(new) for partition, new in changes.items()}
    shrunk = [p for p, new in changes.items() if len(new.isr) < len(context.replicas(p))]
    minima = await minimum_isrs(term, shrunk)
    return {
        partition: with_elr(
            context.leadership[partition],
            new,
            context.replicas(partition),
            minima.get(partition, 0),
            context.brokers,
        )
        for partition, new in changes.items()
    }
