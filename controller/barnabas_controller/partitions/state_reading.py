"""Reads partition states, and leaves out invalid ones.

Only the controller, and leaders that cannot reach it, write the state znodes. A state that is
malformed, or that neither would write, was changed from outside. No leader is elected from such a
state. The partition stays as it is, an event names the reason, and the znode is watched until it is
repaired. A state with an earlier leader epoch than the controller knows is not awaited: its
replicas are asked what they hold, and an election above that follows (`raised_epoch.py`).
"""

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.eligibility.raised_epoch import without_unknown_members
from barnabas_controller.errors import ControllerEpochBehind, MalformedZnode
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import (
    NO_LEADER,
    RECOVERED,
    RECOVERING,
    LeaderAndIsr,
)
from barnabas_controller.store.store import WrittenState
from barnabas_controller.zookeeper.requests import in_chunks
from barnabas_controller.zookeeper.session import Watch, WatchEvent

logger = logging.getLogger(__name__)

# No cluster has had so many controllers; a state that says so was damaged.
_ABSURD_EPOCH = 2**30


class OlderState(MalformedZnode):
    """A state with an earlier leader epoch than this controller has read or written."""


def why_invalid(
    state: LeaderAndIsr,
    assignment: Collection[int],
    controller_epoch: int,
) -> str | None:
    """Why a state is invalid, or None."""
    unassigned = [replica for replica in state.isr if replica not in assignment]
    if unassigned:
        return (
            f"{unassigned} of the ISR {list(state.isr)} are not among the replicas {[*assignment]}"
        )
    if len(set(state.isr)) != len(state.isr):
        return f"the ISR {list(state.isr)} names a broker twice"
    if state.leader != NO_LEADER and state.leader not in state.isr:
        return f"the leader {state.leader} is not in the ISR {list(state.isr)}"
    if state.leader_epoch < 0:
        return f"the leader epoch {state.leader_epoch} is negative"
    if state.recovery_state not in (RECOVERED, RECOVERING):
        return f"there is no recovery state {state.recovery_state}"
    if state.controller_epoch > controller_epoch:
        return f"controller epoch {state.controller_epoch} is later than {controller_epoch} now"
    return None


async def read_states(
    term: ControllerTerm, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, WrittenState]:
    """The valid states; `context.invalid_states` has the reason for each of the others."""
    found = await in_chunks(partial(_read, term), list(partitions))
    return {p: written for p, written in zip(partitions, found, strict=True) if written}


async def check_controller_epoch(
    term: ControllerTerm, partitions: Sequence[TopicPartition]
) -> None:
    """Raise ControllerEpochBehind if most states were written under a later controller epoch.

    Then it is `/controller_epoch` that was set back, and no broker remembers: all have restarted.
    """
    if len(term.context.invalid_states) * 2 <= len(partitions):
        return
    own, found = term.fenced.epoch.number, await in_chunks(partial(_epoch, term), list(partitions))
    later = [epoch for epoch in found if own < epoch < _ABSURD_EPOCH]
    if len(later) * 2 > len(partitions):
        why = f"most states were written under later controller epochs than {own}, up to"
        raise ControllerEpochBehind(f"{why} {max(later)}", max(later))


async def _epoch(term: ControllerTerm, partition: TopicPartition) -> int:
    """The controller epoch that wrote the state; -1 if it has none."""
    try:
        written = await term.store.written_state(partition)
    except MalformedZnode:
        return -1
    return -1 if written is None else written.state.controller_epoch


async def _read(
    term: ControllerTerm, partition: TopicPartition, watch: Watch | None = None
) -> WrittenState | None:
    """Read the state without a watch; if it is invalid, read it again with a watch."""
    try:
        written = await term.store.written_state(partition, watch)
        if written is not None:
            _check(term, partition, written.state)
            known = term.context.leadership.get(partition, written.state)
            state = without_unknown_members(known, written.state)
            written = written._replace(state=state)
    except MalformedZnode as error:
        if watch is None:
            return await _read(term, partition, partial(_changed, term, partition))
        term.store.report(error, partition)
        term.context.invalid_states[partition] = error.why
        if isinstance(error, OlderState):
            term.enqueue(f"{partition} has an older state", partial(_replace, term, partition))
        return None
    term.context.invalid_states.pop(partition, None)
    return written


def _check(term: ControllerTerm, partition: TopicPartition, state: LeaderAndIsr) -> None:
    context, epoch = term.context, term.fenced.epoch.number
    known = context.leadership.get(partition)
    path = znodes.state_path(partition)
    why = why_invalid(state, context.replicas(partition), epoch)
    if why is not None:
        raise MalformedZnode(path, why)
    if known is not None and state.leader_epoch < known.leader_epoch:
        raise OlderState(
            path, f"the leader epoch {state.leader_epoch} is below {known.leader_epoch}"
        )


def _changed(term: ControllerTerm, partition: TopicPartition, _: WatchEvent) -> None:
    term.enqueue(f"the state of {partition} changed", partial(_look_again, term, partition))


async def _replace(term: ControllerTerm, partition: TopicPartition) -> None:
    """Have an election held above a state that is older than the one this controller knows."""
    context = term.context
    known, written = context.leadership.get(partition), None
    if known is not None and partition in context.invalid_states:
        with suppress(MalformedZnode):
            written = await term.store.written_state(partition)
    if known is None or written is None or written.state.leader_epoch >= known.leader_epoch:
        return  # the watch tells when it is repaired
    del context.invalid_states[partition]
    version = written.state.partition_epoch
    context.leadership[partition] = replace(known, partition_epoch=version)
    if partition not in context.unconfirmed:
        term.ask_replicas([partition])


async def _look_again(term: ControllerTerm, partition: TopicPartition) -> None:
    """Re-read a state that was invalid."""
    if partition not in term.context.invalid_states:
        return
    states = await read_states(term, [partition])
    if partition not in states:
        return
    logger.warning("%s: its state was repaired: %s", partition, states[partition].state)
    await term.on_repaired(states, "its state znode was repaired")
