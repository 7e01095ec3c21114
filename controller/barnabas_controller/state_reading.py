"""Partition states as the controller may act by them: what cannot be true is left out.

Only the controller writes the state znodes, so one that is malformed, or says what no controller
would write, was changed by somebody else. By such a state nobody is elected: the partition is left
as it is, with an event that says why, and its znode is watched until it is mended.
"""

import logging
from collections.abc import Collection, Sequence
from functools import partial

from barnabas.topic_partition import TopicPartition

from barnabas_controller import znodes
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.gathering import in_chunks
from barnabas_controller.leader_and_isr import NO_LEADER, RECOVERED, RECOVERING, LeaderAndIsr
from barnabas_controller.reign import Reign
from barnabas_controller.store import WrittenState
from barnabas_controller.zookeeper.session import Watch, WatchEvent

logger = logging.getLogger(__name__)


def doubt(
    state: LeaderAndIsr,
    assignment: Collection[int],
    known: LeaderAndIsr | None,
    controller_epoch: int,
) -> str | None:
    """Why a state cannot be true, or None. `known` is what the controller last knew of it."""
    strangers = [replica for replica in state.isr if replica not in assignment]
    if strangers:
        return (
            f"{strangers} of the ISR {list(state.isr)} are not among the replicas {[*assignment]}"
        )
    if len(set(state.isr)) != len(state.isr):
        return f"the ISR {list(state.isr)} names a broker twice"
    if state.leader != NO_LEADER and state.leader not in state.isr:
        return f"the leader {state.leader} is not in the ISR {list(state.isr)}"
    if state.leader_epoch < 0:
        return f"the leader epoch {state.leader_epoch} is negative"
    if known is not None and state.leader_epoch < known.leader_epoch:
        return f"the leader epoch {state.leader_epoch} is below {known.leader_epoch}, a past one"
    if state.recovery_state not in (RECOVERED, RECOVERING):
        return f"there is no recovery state {state.recovery_state}"
    if state.controller_epoch > controller_epoch:
        return (
            f"controller epoch {state.controller_epoch} is yet to come, {controller_epoch} is now"
        )
    return None


async def read_states(
    reign: Reign, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, WrittenState]:
    """Those that can be trusted; `context.doubtful` has the others, with the reason."""
    found = await in_chunks(partial(_read, reign), list(partitions))
    return {p: written for p, written in zip(partitions, found, strict=True) if written}


async def _read(
    reign: Reign, partition: TopicPartition, watch: Watch | None = None
) -> WrittenState | None:
    """Read without a watch, as states are; if that gives no sense, once more with one."""
    try:
        written = await reign.store.store.written_state(partition, watch)
        if written is not None:
            _check(reign, partition, written.state)
    except MalformedZnode as error:
        if watch is None:
            return await _read(reign, partition, partial(_changed, reign, partition))
        reign.store.store.report(error, partition)
        reign.context.doubtful[partition] = error.why
        return None
    reign.context.doubtful.pop(partition, None)
    return written


def _check(reign: Reign, partition: TopicPartition, state: LeaderAndIsr) -> None:
    context, epoch = reign.context, reign.store.epoch.number
    known = context.leadership.get(partition)
    why = doubt(state, context.replicas(partition), known, epoch)
    if why is not None:
        raise MalformedZnode(znodes.state_path(partition), why)


def _changed(reign: Reign, partition: TopicPartition, _: WatchEvent) -> None:
    reign.enqueue(f"the state of {partition} changed", partial(_look_again, reign, partition))


async def _look_again(reign: Reign, partition: TopicPartition) -> None:
    """The znode of a doubtful state was changed, by who mends it or by who spoilt it."""
    if partition not in reign.context.doubtful:
        return
    states = await read_states(reign, [partition])
    if partition not in states:
        return
    logger.warning("%s: its state was mended: %s", partition, states[partition].state)
    reign.context.leadership[partition] = states[partition].state
    await reign.on_mended(partition)
