"""Carries out decisions on leadership: decide, write, and after a conflict read and decide again.

Kafka reads the state before each election, because leaders once wrote it themselves. Here decisions
use the cached state first, because each write expects its version. Another version in ZooKeeper
means that an operator, or a leader that cannot reach the controller, changed the state; it is then
read.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.election.decision import Decision, Elected, Refused
from barnabas_controller.eligibility.current import with_elrs
from barnabas_controller.partitions.election_report import report_decision, report_foreign_change
from barnabas_controller.partitions.state_reading import read_states
from barnabas_controller.partitions.state_writing import write_states
from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr
from barnabas_controller.zookeeper.session import BadVersion

_UNKNOWN = "no leadership is known"
# Replicas hold a newer state than ZooKeeper. An election by ZooKeeper's could name a second leader
# for an epoch, or one that lacks records. `epoch_refusals.py` decides when all have answered.
_SETTLING = "replicas have refused its state in ZooKeeper as older than theirs; an election follows"

Decide = Callable[[TopicPartition, LeaderAndIsr], Decision]


async def change_leadership(
    term: ControllerTerm, partitions: Iterable[TopicPartition], decide: Decide
) -> dict[TopicPartition, Decision]:
    """Decide and write; return the decision on each partition, an `Elected` with the state written.

    A partition whose state cannot be read or written gets a `Refused`.
    """
    outcome: dict[TopicPartition, Decision] = {}
    remaining = list(partitions)
    while remaining:
        elected = _decide_all(term, remaining, decide, outcome)
        conflicts = await _write(term, elected, outcome)
        remaining = await adopt_foreign_changes(term, conflicts) if conflicts else []
        for partition in (p for p in conflicts if p not in remaining):
            why = term.context.invalid_states.get(partition, "it does not exist")
            outcome[partition] = Refused(f"its state znode is invalid: {why}")
    return outcome


def _decide_all(
    term: ControllerTerm,
    partitions: Iterable[TopicPartition],
    decide: Decide,
    outcome: dict[TopicPartition, Decision],
) -> dict[TopicPartition, Elected]:
    elected: dict[TopicPartition, Elected] = {}
    for partition in partitions:
        state = term.context.leadership.get(partition)
        if partition in term.context.held_roles:
            decision: Decision = Refused(_waiting(term, partition))
        else:
            decision = Refused(_UNKNOWN) if state is None else decide(partition, state)
        if isinstance(decision, Elected):
            elected[partition] = decision
        else:
            outcome[partition] = decision
    return elected


def _waiting(term: ControllerTerm, partition: TopicPartition) -> str:
    asked = term.context.unconfirmed.get(partition)
    if asked is None:
        return _SETTLING
    missing = [r for r in term.context.replicas(partition) if r not in asked.answered]
    return (
        "its state may come from an older copy of ZooKeeper; an election follows when the replicas"
        f" on {missing} have answered"
    )


async def _write(
    term: ControllerTerm,
    elected: dict[TopicPartition, Elected],
    outcome: dict[TopicPartition, Decision],
) -> list[TopicPartition]:
    """Write the decisions; return the partitions whose state was changed from outside."""
    conflicts = []
    states = await with_elrs(
        term,
        {p: e.state for p, e in elected.items()},
        outdated={p: e.proved for p, e in elected.items() if e.from_outdated},
    )
    results = await write_states(term, states)
    leadership = term.context.leadership
    for partition, result in results.items():
        decision = elected[partition]
        if isinstance(result, LeaderAndIsr):
            report_decision(term, partition, leadership[partition], result, decision.reason)
            leadership[partition] = result
            if result.leader != NO_LEADER:
                term.context.awaiting.pop(partition, None)
                term.context.told_logs.pop(partition, None)
            outcome[partition] = replace(decision, state=result)
        elif isinstance(result, BadVersion):
            conflicts.append(partition)
        else:
            outcome[partition] = Refused(f"ZooKeeper refused: {result!r}")
    return conflicts


async def adopt_foreign_changes(
    term: ControllerTerm, partitions: Iterable[TopicPartition]
) -> list[TopicPartition]:
    """Re-read states that were changed from outside; return the partitions whose state is valid."""
    states = await read_states(term, list(partitions))
    for partition, (state, _) in states.items():
        known = term.context.leadership[partition]
        why = "its state znode was changed from outside"
        report_foreign_change(term, partition, known, state, why)
        term.context.leadership[partition] = state
    return list(states)
