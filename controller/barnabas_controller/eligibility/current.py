"""Eligibility in a controller term: reads what the decisions need, and keeps the states up to date.

The minimum ISR is read from ZooKeeper whenever a decision needs it, because a replica must not
count as eligible after the minimum has changed. `eligible.leader.replicas.enable` enables all this.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
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
from barnabas_controller.eligibility.min_isr import NO_MINIMUM, MinimumIsr, read_minimum_isrs
from barnabas_controller.state.context import ControllerContext
from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr

NO_MINIMA: Mapping[TopicPartition, MinimumIsr] = MappingProxyType({})
NONE_OUTDATED: Mapping[TopicPartition, Collection[int]] = MappingProxyType({})


async def minimum_isrs(
    term: ControllerTerm, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, MinimumIsr]:
    """The minimum ISRs of the partitions; those of topics with malformed settings are left out."""
    assignments = {partition: term.context.replicas(partition) for partition in partitions}
    return await read_minimum_isrs(term.store, assignments, term.config.min_insync_replicas)


async def minimum_isrs_of_elrs(
    term: ControllerTerm, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, MinimumIsr]:
    """The minimum ISRs of the partitions that have eligible leader replicas."""
    leadership = term.context.leadership
    return await minimum_isrs(
        term, [p for p in partitions if p in leadership and leadership[p].eligible]
    )


def current_eligibility(
    term: ControllerTerm,
    partition: TopicPartition,
    state: LeaderAndIsr,
    minima: Mapping[TopicPartition, MinimumIsr] = NO_MINIMA,
) -> LeaderEligibility:
    """The eligibility by what is known now.

    No replica is awaited longer than `eligible.leader.replicas.wait.ms`. A partition without an
    entry in `minima` has no eligible leader replicas.
    """
    context, config = term.context, term.config
    replicas = context.replicas(partition)
    known = EVERY_MEMBER_ELIGIBLE
    if config.eligible_leader_replicas_enable:
        online = context.online_replicas(partition)
        minimum = minima.get(partition, NO_MINIMUM)
        known = leader_eligibility(state, replicas, online, context.brokers, minimum)
    now = term.runtime.clock.monotonic()
    if now - context.awaiting.get(partition, now) >= config.eligible_leader_replicas_wait:
        known = replace(known, awaited=())
    return replace(
        known,
        suspected=tuple(context.suspected_brokers()),
        unreachable=tuple(term.channels.unreachable(replicas)),
        absent=tuple(r for r in replicas if r in context.absent),
        given_up=tuple(r for r in replicas if r in context.given_up),
        failed=tuple(r for r in replicas if partition in context.failed_replicas.get(r, ())),
        logs=_logs(context, partition),
    )


def _logs(context: ControllerContext, partition: TopicPartition) -> dict[int, tuple[int, int]]:
    """What the present incarnations of the replicas have told of their logs."""
    return {
        replica: log
        for (replica, epoch), log in context.told_logs.get(partition, {}).items()
        if log is not None
        if replica in context.brokers and context.brokers[replica].epoch == epoch
    }


def elect_after_wait(
    term: ControllerTerm,
    partition: TopicPartition,
    elect: Callable[[str], Awaitable[object]],
) -> None:
    """Call `elect(cause)` on the event queue when the wait for a better candidate is over."""
    if partition in term.context.awaiting:
        return
    since = term.runtime.clock.monotonic()
    term.context.awaiting[partition] = since
    wait = term.config.eligible_leader_replicas_wait

    async def handle() -> None:
        if term.context.awaiting.get(partition) == since:
            # Timers of uvloop count milliseconds, and may fire a little early.
            term.context.awaiting[partition] = -math.inf
        await elect(f"no better candidate registered within {wait:g} s")

    asyncio.get_running_loop().call_later(
        wait, term.enqueue, f"{partition}: the wait is over", handle
    )


def with_first_elr(term: ControllerTerm, state: LeaderAndIsr) -> LeaderAndIsr:
    """The first state of a partition with its proofs, as it is to be written."""
    enabled = term.config.eligible_leader_replicas_enable
    return with_initial_elr(state, term.context.brokers) if enabled else state


async def with_elrs(
    term: ControllerTerm,
    changes: Mapping[TopicPartition, LeaderAndIsr],
    outdated: Mapping[TopicPartition, Collection[int]] = NONE_OUTDATED,
) -> dict[TopicPartition, LeaderAndIsr]:
    """The states with their eligible leader replicas and proofs, as they are to be written.

    No replica is eligible by a state in ZooKeeper that is `outdated`. A leader that is elected
    above it has proved that it has every committed record, also if it led before, and so have the
    members of its ISR that `outdated` names.
    """
    context = term.context
    if not term.config.eligible_leader_replicas_enable:
        return {partition: without_elr(new) for partition, new in changes.items()}
    shrunk = [p for p, new in changes.items() if len(new.isr) < len(context.replicas(p))]
    minima = await minimum_isrs(term, shrunk)
    before = {
        p: replace(
            context.leadership[p],
            leader=NO_LEADER,
            isr=tuple(member for member in new.isr if member not in outdated[p]),
            eligible=(),
        )
        if p in outdated
        else context.leadership[p]
        for p, new in changes.items()
    }
    return {
        partition: with_elr(
            before[partition],
            new,
            context.undamaged_replicas(partition),
            minima.get(partition, NO_MINIMUM),
            context.brokers,
        )
        for partition, new in changes.items()
    }
