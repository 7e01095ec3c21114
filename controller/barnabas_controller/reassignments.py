"""Partitions move to other brokers: the controller drives each through its phases.

The names of the phases are those of KIP-455:

    U   note the way in the topic's znode; replicas of an earlier target that are on it no more go
    A   while the target is not in sync: tell everybody, the new replicas begin to fetch
    B   once it is: the leader comes from the target, the others leave the ISR, are deleted, and
        last the znode says only where the partition is now

The topic's znode is the only durable record of where a partition was, so B writes it last, and a
new controller finds what is under way in it and goes on from there: each phase may run twice.

Two things are stricter than in Kafka. Replicas leave the ISR in the same write that takes the
leader from them: after it the leader no longer waits for them, and a controller that died in
between would leave replicas in the ISR that miss records. And nothing that would delete the last
in-sync replica is begun: such a cancel is refused.
"""

import logging
from collections.abc import Iterable, Sequence
from functools import partial

from barnabas.error_code import ErrorCode
from barnabas.events import EventKind
from barnabas.topic_partition import TopicPartition

from barnabas_controller.context import Replica
from barnabas_controller.election import (
    Decision,
    Elected,
    Refused,
    begin_epoch,
    elect_for_reassignment,
)
from barnabas_controller.eligible import lost_members
from barnabas_controller.leader_and_isr import LeaderAndIsr
from barnabas_controller.leadership import Decide, change_leadership
from barnabas_controller.partition_states import PartitionStateMachine
from barnabas_controller.reassignment import (
    Rejected,
    in_progress,
    is_complete,
    leaving,
    original_of,
    target_of,
)
from barnabas_controller.reassignment_znode import forget_reassignments
from barnabas_controller.reign import Reign
from barnabas_controller.replica_states import ReplicaStateMachine
from barnabas_controller.states import PartitionState, ReplicaState
from barnabas_controller.topic_deletion import TopicDeletion
from barnabas_controller.znodes import ReplicaAssignment

logger = logging.getLogger(__name__)


class Reassignments:
    """The reassignments of one reign; who may ask for one is checked by `ReassignmentRequests`."""

    def __init__(
        self,
        reign: Reign,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        deletion: TopicDeletion,
    ) -> None:
        self._reign = reign
        self._context = reign.context
        self._partitions = partitions
        self._replicas = replicas
        self._deletion = deletion

    # ---- when to go on

    async def resume(self, cause: str) -> None:
        """After failover: go on with what the topics' znodes say is under way."""
        for partition in list(self._context.reassigning):
            await self.go_on(partition, self._context.assignment(partition), cause)

    async def resume_on(self, broker_ids: Sequence[int], cause: str) -> None:
        """These brokers came up: they may be what a target was waiting for."""
        for partition in list(self._context.reassigning):
            assignment = self._context.assignment(partition)
            if any(replica in broker_ids for replica in target_of(assignment)):
                await self.go_on(partition, assignment, cause)

    def on_isr_changed(self, partitions: Iterable[TopicPartition]) -> None:
        """Leaders got the ISRs they had asked for, or had them already."""
        for partition in partitions:
            if partition in self._context.reassigning and self._is_complete(partition):
                self._reign.enqueue(
                    f"{partition}: its target is in sync", partial(self._complete, partition)
                )

    async def _complete(self, partition: TopicPartition) -> None:
        """In a turn of its own, after the leader has its answer; if it is still so by then."""
        if partition in self._context.reassigning and self._is_complete(partition):
            assignment = self._context.assignment(partition)
            cause = "it is reassigned, and all replicas of the target are in sync"
            await self.go_on(partition, assignment, cause)

    def _is_complete(self, partition: TopicPartition) -> bool:
        context = self._context
        return is_complete(
            context.assignment(partition),
            context.leadership.get(partition),
            context.online_replicas(partition),
        )

    # ---- the phases

    async def go_on(
        self, partition: TopicPartition, wanted: ReplicaAssignment, cause: str
    ) -> Rejected | None:
        """Take a partition as far on its way as it can go now.

        `wanted` is legal (`reassignment.judge`). A rejection means that nothing has changed.
        """
        current = self._context.assignment(partition)
        cancelled = in_progress(current) and not in_progress(wanted)
        if wanted != current:
            rejected = await self._set_out(partition, current, wanted, cause)
            if rejected is not None:
                return rejected
        self._context.reassigning[partition] = None
        if partition not in self._context.leadership:  # its first leader may come from the target
            await self._partitions.elect([partition], cause)
        if cancelled:
            await self._forget(partition, EventKind.REASSIGNMENT_CANCELLED, cause)
        elif self._is_complete(partition):
            await self._arrive(partition, cause)
        else:
            await self._have_target_fetch(partition, cause)
        return None

    async def _set_out(
        self,
        partition: TopicPartition,
        current: ReplicaAssignment,
        wanted: ReplicaAssignment,
        cause: str,
    ) -> Rejected | None:
        """U. What leaves goes first, the znode is written last: dying in between takes nothing
        back but an answer that was never given."""
        gone = leaving(current, wanted)
        if gone and not await self._let_go(partition, wanted, gone, cause):
            return Rejected(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"brokers {list(gone)} cannot be left: none of {list(wanted.replicas)} is online,"
                f" in the ISR and fit to lead, and records would be lost",
            )
        if not await self._write(partition, wanted):
            return Rejected(ErrorCode.UNKNOWN_SERVER_ERROR, "its topic's znode cannot be written")
        if in_progress(wanted) or not in_progress(current):
            self._record(EventKind.REASSIGNMENT_STARTED, partition, cause)
        return None

    async def _have_target_fetch(self, partition: TopicPartition, cause: str) -> None:
        """A. The leader must know the new replicas before it lets them fetch, so its epoch grows:
        brokers ignore a LeaderAndIsr of an epoch they know."""
        context = self._context
        assignment = context.assignment(partition)

        def decide(_: TopicPartition, state: LeaderAndIsr) -> Decision:
            return begin_epoch(state, assignment.replicas, f"a reassignment adds replicas: {cause}")

        decision = await self._change_state(partition, decide)
        if isinstance(decision, Elected):
            batch = self._reign.batch()
            batch.leader_and_isr(
                original_of(assignment), partition, decision.state, cause=decision.reason
            )
            for broker_id in assignment.adding:
                # One that is in sync already is not new: a log that is lost there is missed.
                is_new = broker_id not in decision.state.isr
                batch.leader_and_isr(
                    [broker_id], partition, decision.state, is_new, decision.reason
                )
            self._reign.send(batch)
        new = self._in_state(partition, assignment.adding, ReplicaState.NON_EXISTENT)
        await self._replicas.change(new, ReplicaState.NEW, cause)
        self._record(EventKind.REASSIGNMENT_CATCHING_UP, partition, cause)
        offline = [r for r in target_of(assignment) if not context.is_online(r, partition)]
        if offline:
            why = f"brokers {offline} of its target are offline"
            self._record(EventKind.REASSIGNMENT_WAITS, partition, why)

    async def _arrive(self, partition: TopicPartition, cause: str) -> None:
        """B."""
        assignment = self._context.assignment(partition)
        started = self._in_state(partition, assignment.adding, ReplicaState.NEW)
        await self._replicas.change(started, ReplicaState.ONLINE, cause)
        if in_progress(assignment):
            final = ReplicaAssignment(target_of(assignment))
            if not await self._let_go(partition, final, assignment.removing, cause):
                self._record(EventKind.REASSIGNMENT_WAITS, partition, "no leader could be elected")
                return
            if not await self._write(partition, final):
                return
        await self._forget(partition, EventKind.REASSIGNMENT_COMPLETED, cause)

    async def _forget(self, partition: TopicPartition, outcome: EventKind, cause: str) -> None:
        """B7 and B8: it is over."""
        self._context.reassigning.pop(partition, None)
        await forget_reassignments(
            self._reign.store, {partition: self._context.replicas(partition)}
        )
        self._reign.update_metadata(self._context.registered_brokers(), [partition])
        self._record(outcome, partition, cause)
        await self._deletion.resume_topics([partition.topic])

    async def _let_go(
        self,
        partition: TopicPartition,
        staying: ReplicaAssignment,
        gone: Sequence[int],
        cause: str,
    ) -> bool:
        """The leader and the ISR come from `staying`; the logs of `gone` are deleted.

        In memory the assignment is `staying` from then on. False: no leader could be had, and
        nothing has changed.
        """
        context = self._context
        before = context.assignment(partition)
        context.set_assignment(partition, staying)

        def decide(_: TopicPartition, state: LeaderAndIsr) -> Decision:
            target, online = staying.replicas, context.online_replicas(partition)
            unreachable = self._reign.channels.unreachable(target)
            unfit = self._unfit_to_lead(state)
            return elect_for_reassignment(state, target, online, cause, unfit, unreachable)

        if partition in context.leadership:
            decision = await self._change_state(partition, decide)
            if not isinstance(decision, Elected):
                context.set_assignment(partition, before)
                return False
            batch = self._reign.batch()
            batch.leader_and_isr(
                decision.recipients, partition, decision.state, cause=decision.reason
            )
            self._reign.send(batch)
        replicas = [Replica(partition, broker_id) for broker_id in gone]
        known = [r for r in replicas if r in context.replica_states]
        for state in (
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_STARTED,
            ReplicaState.DELETION_SUCCESSFUL,  # the answer is not awaited, as in Kafka
            ReplicaState.NON_EXISTENT,
        ):
            await self._replicas.change(known, state, cause)
        if gone:
            self._record(EventKind.REPLICAS_REMOVED, partition, cause, removed=list(gone))
        return True

    def _unfit_to_lead(self, state: LeaderAndIsr) -> list[int]:
        """Suspected to be dead, or without records that only its page cache held."""
        suspected = self._context.suspected_brokers()
        if not self._reign.config.eligible_leader_replicas_enable:
            return list(suspected)
        return [*suspected, *lost_members(state, self._context.brokers)]

    async def _change_state(self, partition: TopicPartition, decide: Decide) -> Decision:
        """Write a new state of the partition, which is then online if it has a leader."""
        decision = (await change_leadership(self._reign, [partition], decide))[partition]
        if isinstance(decision, Elected) and decision.state.leader >= 0:
            self._context.partition_states[partition] = PartitionState.ONLINE
        elif isinstance(decision, Refused):
            logger.error("%s: %s", partition, decision.reason)
        return decision

    async def _write(self, partition: TopicPartition, assignment: ReplicaAssignment) -> bool:
        changed = {partition.partition: assignment}
        if not await self._reign.store.write_assignments(partition.topic, changed):
            return False
        self._context.set_assignment(partition, assignment)
        return True

    def _in_state(
        self, partition: TopicPartition, broker_ids: Iterable[int], state: ReplicaState
    ) -> list[Replica]:
        replicas = (Replica(partition, broker_id) for broker_id in broker_ids)
        return [r for r in replicas if self._context.replica_state(r) is state]

    def _record(
        self,
        kind: EventKind,
        partition: TopicPartition,
        cause: str,
        removed: Sequence[int] = (),
    ) -> None:
        assignment = self._context.assignment(partition)
        state = self._context.leadership.get(partition)
        logger.info("%s: %s, %s: %s", partition, kind.value, list(assignment.replicas), cause)
        self._reign.events.record(
            kind,
            cause,
            partition,
            replicas=list(assignment.replicas),
            adding=list(assignment.adding),
            removing=list(assignment.removing),
            removed=list(removed),
            isr=list(state.isr) if state is not None else [],
        )
