"""Carries decisions about leadership out: decide, write, and on a conflict read and decide again.

The cache is trusted at first, for only the controller writes the state znodes and every write
expects the version it knows. (Kafka reads before each election, from the days when leaders wrote
the znodes themselves.) A version that differs shows a change from outside; then ZooKeeper is read.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from barnabas.topic_partition import TopicPartition

from barnabas_controller.election import Decision, Elected, Refused
from barnabas_controller.election_report import report_decision
from barnabas_controller.leader_and_isr import NO_LEADER, LeaderAndIsr, describe_change
from barnabas_controller.min_isr import accounted
from barnabas_controller.reign import Reign
from barnabas_controller.state_reading import read_states
from barnabas_controller.zookeeper.session import BadVersion

logger = logging.getLogger(__name__)

Decide = Callable[[TopicPartition, LeaderAndIsr], Decision]


async def change_leadership(
    reign: Reign, partitions: Iterable[TopicPartition], decide: Decide
) -> dict[TopicPartition, Decision]:
    """What became of each partition; an `Elected` carries the state as written."""
    outcome: dict[TopicPartition, Decision] = {}
    remaining = list(partitions)
    while remaining:
        elected = _decide_all(reign, remaining, decide, outcome)
        conflicts = await _write(reign, elected, outcome)
        remaining = await _refresh(reign, conflicts, outcome)
    return outcome


def _decide_all(
    reign: Reign,
    partitions: Iterable[TopicPartition],
    decide: Decide,
    outcome: dict[TopicPartition, Decision],
) -> dict[TopicPartition, Elected]:
    elected: dict[TopicPartition, Elected] = {}
    for partition in partitions:
        state = reign.context.leadership.get(partition)
        decision = Refused("no leadership is known") if state is None else decide(partition, state)
        if isinstance(decision, Elected):
            elected[partition] = decision
        else:
            outcome[partition] = decision
    return elected


async def _write(
    reign: Reign,
    elected: dict[TopicPartition, Elected],
    outcome: dict[TopicPartition, Decision],
) -> list[TopicPartition]:
    """Write what was decided; returns the partitions that somebody else changed first."""
    conflicts = []
    states = await accounted(reign, {p: e.state for p, e in elected.items()})
    results = await reign.store.update_states(states)
    leadership = reign.context.leadership
    for partition, result in results.items():
        decision = elected[partition]
        if isinstance(result, LeaderAndIsr):
            logger.info(
                "%s", describe_change(partition, leadership[partition], result, decision.reason)
            )
            report_decision(reign, partition, leadership[partition], result, decision.reason)
            leadership[partition] = result
            if result.leader != NO_LEADER:
                reign.context.awaiting.pop(partition, None)
            outcome[partition] = replace(decision, state=result)
        elif isinstance(result, BadVersion):
            conflicts.append(partition)
        else:
            outcome[partition] = Refused(f"ZooKeeper refused: {result!r}")
    return conflicts


async def _refresh(
    reign: Reign, conflicts: list[TopicPartition], outcome: dict[TopicPartition, Decision]
) -> list[TopicPartition]:
    """Read what the others wrote; returns the partitions that may be decided again."""
    again = []
    states = await read_states(reign, conflicts)
    for partition in conflicts:
        if partition not in states:
            why = reign.context.doubtful.get(partition, "it is gone")
            outcome[partition] = Refused(f"its state znode cannot be trusted: {why}")
        else:
            state = states[partition].state
            logger.warning("%s: its state znode was changed from outside: %s", partition, state)
            known = reign.context.leadership[partition]
            report_decision(reign, partition, known, state, "its state znode was changed by others")
            reign.context.leadership[partition] = state
            again.append(partition)
    return again
