"""Invariants of one replica in a broker's memory: I1, I3, I7, I8.

All are cheap, and checked after every event that changed the replica. They come from the TLA+
models of Kafka's replication by J. Gustafson and J. Vanlightly.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from barnabas_controller.store.leader_and_isr import LeaderAndIsr

from barnabas_simulator.invariants.logs.image import Batch
from barnabas_simulator.invariants.rule import rule
from barnabas_simulator.invariants.view import Replica


@rule("I1 TypeOk")
def type_ok(replica: Replica) -> str | None:
    """0 <= log start <= high watermark <= log end; the epoch cache increases strictly in both
    columns and lies within the log. (Gustafson, TypeOk; an epoch may start at the log's end.)"""
    if not 0 <= replica.log_start <= replica.high_watermark <= replica.log_end:
        return f"the offsets are out of order; {replica}"
    for before, after in pairwise(replica.epochs):
        if not (before[0] < after[0] and before[1] < after[1]):
            return f"the epoch cache does not rise from {before} to {after}; {replica}"
    if replica.epochs and replica.epochs[-1][1] > replica.log_end:
        return f"the epoch cache goes beyond the log's end; {replica}"
    return None


@rule("I3 QuorumSuperset")
def quorum_superset(leader: Replica, state: LeaderAndIsr) -> str | None:
    """The leader in ZooKeeper waits for every member of ZooKeeper's ISR: its maximal ISR contains
    all of them. (Vanlightly, ReplicationQuorumSuperset; KIP-497.)"""
    named = state.leader, state.leader_epoch
    if (leader.broker_id, leader.led_epoch) != named or leader.maximal_isr is None:
        return None
    ignored = [member for member in state.isr if member not in leader.maximal_isr]
    if not ignored:
        return None
    return f"the high watermark does not wait for {ignored} of {state}; {leader}"


@rule("I7 OneLeaderPerEpoch")
def one_leader_per_epoch(
    leader: Replica, elected: Mapping[int, int], led: Mapping[int, int]
) -> str | None:
    """At most one broker leads, and so appends, in one leader epoch: the one that the controller
    elected. `elected` and `led` give the broker of each epoch. (Gustafson, TypeOk of the quorum.)
    """
    epoch = leader.led_epoch
    if epoch is None:
        return None
    if led.get(epoch, leader.broker_id) != leader.broker_id:
        return f"broker {led[epoch]} has led epoch {epoch} too; {leader}"
    if elected.get(epoch, leader.broker_id) != leader.broker_id:
        return f"epoch {epoch} was given to broker {elected[epoch]}; {leader}"
    return None


@rule("I8 EpochMonotone")
def epoch_monotone(before: Replica, after: Replica) -> str | None:
    """Leader epoch and partition epoch never decrease in one broker's memory. (KIP-497.)"""
    if (
        after.leader_epoch >= before.leader_epoch
        and after.partition_epoch >= before.partition_epoch
    ):
        return None
    return f"an epoch went back; first {before}; then {after}"


@rule("I8 EpochMonotone")
def record_epochs_rise(replica: Replica, batches: Sequence[Batch]) -> str | None:
    """The epochs of the records never decrease along a log. (KIP-101.)"""
    for before, after in pairwise(batches):
        if after.epoch < before.epoch:
            return f"{after} follows {before}; {replica}"
    return None
