"""Writes partition states; a state znode that was deleted by hand is created again."""

from collections.abc import Mapping

from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.store import znodes
from barnabas_controller.store.fenced_store import StateResult
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.zookeeper.session import NoNode


async def write_states(
    term: ControllerTerm, states: Mapping[TopicPartition, LeaderAndIsr]
) -> dict[TopicPartition, StateResult]:
    """Replace each state; create one whose znode was deleted by hand, if the topic is the same."""
    results = await term.fenced.update_states(states)
    deleted = [partition for partition, result in results.items() if isinstance(result, NoNode)]
    nodes = await term.store.topic_assignments(list(dict.fromkeys(p.topic for p in deleted)))
    again = [
        p
        for p in deleted
        if p.topic in nodes and nodes[p.topic].topic_id == term.context.topic_ids.get(p.topic)
    ]
    for partition in again:
        why = "it was deleted, and is created again"
        term.store.report(MalformedZnode(znodes.state_path(partition), why), partition)
    return results | await term.fenced.create_states({p: states[p] for p in again})
