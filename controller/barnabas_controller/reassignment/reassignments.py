"""Moves partitions to other brokers, in the phases of KIP-455:

    U   write the reassignment into the topic's znode; remove replicas of an earlier target
    A   while the target is not in sync: send LeaderAndIsr, so that the new replicas fetch
    B   once it is in sync: elect a leader of the target, remove the other replicas from the ISR and
        delete them, and finally write the target alone into the znode

The topic's znode is the only durable record of the original replicas, so B writes it last. A new
controller finds every reassignment there and resumes it, so each phase may run twice.

Two rules are stricter than Kafka's. First, the removed replicas leave the ISR in the same write
that elects the leader. The leader does not wait for them any longer, so a controller that failed
between two writes would leave replicas in the ISR that miss records. Second, a cancel that would
delete the last in-sync replica is refused.
"""

import logging
from collections.abc import Iterable, Sequence
from functools import partial

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.election.decision import Decision, Elected, Refused
from barnabas_controller.election.reassign import begin_epoch
from barnabas_controller.eligibility.current import current_eligibility
from barnabas_controller.eligibility.elections import eligible_for_reassignment
from barnabas_controller.partitions.leadership import Decide, change_leadership
from barnabas_controller.partitions.partition_state_machine import PartitionStateMachine
from barnabas_controller.partitions.replica_state_machine import ReplicaStateMachine
from barnabas_controller.reassignment.reassignment_rules import (
    Rejected,
    is_complete,
    original_of,
    removed_replicas,
    target_of,
)
from barnabas_controller.reassignment.reassignment_znode import remove_from_znode
from barnabas_controller.state.context import Replica
from barnabas_controller.state.states import PartitionState, ReplicaState
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.znodes import ReplicaAssignment
from barnabas_controller.topics.topic_deletion_manager import TopicDeletionManager

logger = logging.getLogger(__name__)


class Reassignments:
    """Carries out reassignments; `ReassignmentRequests` checks which are legal."""

    def __init__(
        self,
        term: ControllerTerm,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        deletion: TopicDeletionManager,
    ) -> None:
        self._term = term
        self._context = term.context
        self._partitions = partitions
        self._replicas = replicas
        self._deletion = deletion

    # ---- when to continue

    async def resume(self, cause: str) -> None:
        """At failover: resume the reassignments in the topics' znodes."""
        for partition in list(self._context.reassigning):
            await self.go_on(partition, self._context.assignment(partition), cause)

    async def resume_on(self, broker_ids: Sequence[int], cause: str) -> None:
        """Resume the reassignments to these brokers, which have registered."""
        for partition in list(self._context.reassigning):
            assignment = self._context.assignment(partition)
            if any(replica in broker_ids for replica in target_of(assignment)):
                await self.go_on(partition, assignment, cause)

    def on_isr_changed(self, partitions: Iterable[TopicPartition]) -> None:
        """Enqueue the completion of reassignments whose target is now in the ISR."""
        for partition in partitions:
            if partition in self._context.reassigning and self._is_complete(partition):
                self._term.enqueue(
                    f"{partition}: its target is in sync", partial(self._complete, partition)
                )

    def on_topic_changed(self, topic: str) -> None:
        """Enqueue the completion of reassignments that could not be written: they can be now."""
        self.on_isr_changed([p for p in self._context.reassigning if p.topic == topic])

    async def _complete(self, partition: TopicPartition) -> None:
        """Complete a reassignment, in an event after the answer to the leader's AlterPartition."""
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
        """Continue a reassignment as far as possible.

        `wanted` is legal (`reassignment_rules.judge`), or the present assignment. A rejection means
        that the topic's znode has not changed.
        """
        current = self._context.assignment(partition)
        cancelled = current.is_being_reassigned and not wanted.is_being_reassigned
        if wanted != current:
            rejected = await self._update_assignment(partition, current, wanted, cause)
            if rejected is not None:
                return rejected
        self._context.reassigning[partition] = None
        if partition not in self._context.leadership:  # its first leader may come from the target
            await self._partitions.elect([partition], cause)
        if cancelled:
            await self._end(partition, EventKind.REASSIGNMENT_CANCELLED, cause)
        elif self._is_complete(partition):
            await self._complete_reassignment(partition, cause)
        else:
            await self._sync_target(partition, cause)
        return None

    async def _update_assignment(
        self,
        partition: TopicPartition,
        current: ReplicaAssignment,
        wanted: ReplicaAssignment,
        cause: str,
    ) -> Rejected | None:
        """Phase U. Replicas are removed before the znode is written. If the controller fails in
        between, the request has not been answered yet."""
        removed = removed_replicas(current, wanted)
        if removed and not await self._remove_replicas(partition, wanted, removed, cause):
            return Rejected(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"brokers {list(removed)} cannot be removed: none of {list(wanted.replicas)} is"
                f" online and in the ISR, and records would be lost",
            )
        if not await self._write(partition, wanted):
            self._context.set_assignment(partition, current)
            if removed:  # their logs are deleted; they catch up again
                await self._sync_target(partition, cause)
            return Rejected(ErrorCode.UNKNOWN_SERVER_ERROR, "its topic's znode cannot be written")
        if wanted.is_being_reassigned or not current.is_being_reassigned:
            self._record(EventKind.REASSIGNMENT_STARTED, partition, cause)
        return None

    async def _sync_target(self, partition: TopicPartition, cause: str) -> None:
        """Phase A. The leader must know the new replicas before they fetch. So the leader epoch
        grows, because brokers ignore a LeaderAndIsr with an epoch that they have already."""
        context = self._context
        assignment = context.assignment(partition)

        def decide(_: TopicPartition, state: LeaderAndIsr) -> Decision:
            return begin_epoch(state, assignment.replicas, f"a reassignment adds replicas: {cause}")

        decision = await self._change_state(partition, decide)
        if isinstance(decision, Elected):
            batch = self._term.batch()
            batch.leader_and_isr(
                original_of(assignment), partition, decision.state, cause=decision.reason
            )
            for broker_id in assignment.adding:
                # A replica in the ISR is not new: its broker must report it if the log is lost.
                is_new = broker_id not in decision.state.isr
                batch.leader_and_isr(
                    [broker_id], partition, decision.state, is_new, decision.reason
                )
            self._term.send(batch)
        new = self._in_state(partition, assignment.adding, ReplicaState.NON_EXISTENT)
        await self._replicas.change(new, ReplicaState.NEW, cause)
        self._record(EventKind.REASSIGNMENT_CATCHING_UP, partition, cause)
        offline = [r for r in target_of(assignment) if not context.is_online(r, partition)]
        if offline:
            why = f"brokers {offline} of its target are offline"
            self._record(EventKind.REASSIGNMENT_WAITS, partition, why)

    async def _complete_reassignment(self, partition: TopicPartition, cause: str) -> None:
        """Phase B; if no leader can be elected the reassignment waits."""
        assignment = self._context.assignment(partition)
        started = self._in_state(partition, assignment.adding, ReplicaState.NEW)
        await self._replicas.change(started, ReplicaState.ONLINE, cause)
        if assignment.is_being_reassigned:
            final = ReplicaAssignment(target_of(assignment))
            if not await self._remove_replicas(partition, final, assignment.removing, cause):
                self._record(EventKind.REASSIGNMENT_WAITS, partition, "no leader could be elected")
                return
            if not await self._write(partition, final):
                self._context.set_assignment(partition, assignment)
                why = "its topic's znode cannot be written"
                self._record(EventKind.REASSIGNMENT_WAITS, partition, why)
                return
        await self._end(partition, EventKind.REASSIGNMENT_COMPLETED, cause)

    async def _end(self, partition: TopicPartition, outcome: EventKind, cause: str) -> None:
        """The last steps of phase B (B7 and B8 of Kafka's `onPartitionReassignment`)."""
        self._context.reassigning.pop(partition, None)
        await remove_from_znode(self._term.fenced, {partition: self._context.replicas(partition)})
        self._term.update_metadata(self._context.registered_brokers(), [partition])
        self._record(outcome, partition, cause)
        await self._deletion.resume_topics([partition.topic])

    async def _remove_replicas(
        self,
        partition: TopicPartition,
        staying: ReplicaAssignment,
        removed: Sequence[int],
        cause: str,
    ) -> bool:
        """Reduce leader and ISR to `staying` and delete the logs of `removed`.

        The context then has `staying` as the assignment. Returns False if no leader is available;
        then nothing has changed.
        """
        context = self._context
        before = context.assignment(partition)
        context.set_assignment(partition, staying)

        def decide(_: TopicPartition, state: LeaderAndIsr) -> Decision:
            target, online = staying.replicas, context.online_replicas(partition)
            eligibility = current_eligibility(self._term, partition, state)
            return eligible_for_reassignment(state, target, online, cause, eligibility)

        if partition in context.leadership:
            decision = await self._change_state(partition, decide)
            if not isinstance(decision, Elected):
                context.set_assignment(partition, before)
                return False
            batch = self._term.batch()
            batch.leader_and_isr(
                decision.recipients, partition, decision.state, cause=decision.reason
            )
            self._term.send(batch)
        replicas = [Replica(partition, broker_id) for broker_id in removed]
        known = [r for r in replicas if r in context.replica_states]
        for state in (
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_STARTED,
            ReplicaState.DELETION_SUCCESSFUL,  # the response is not awaited, as in Kafka
            ReplicaState.NON_EXISTENT,
        ):
            await self._replicas.change(known, state, cause)
        if removed:
            self._record(EventKind.REPLICAS_REMOVED, partition, cause, removed=list(removed))
        return True

    async def _change_state(self, partition: TopicPartition, decide: Decide) -> Decision:
        """Write a new state of the partition, which is online if it has a leader."""
        decision = (await change_leadership(self._term, [partition], decide))[partition]
        if isinstance(decision, Elected) and decision.state.leader >= 0:
            self._partitions.change([partition], PartitionState.ONLINE)
        elif isinstance(decision, Refused):
            logger.error("%s: %s", partition, decision.reason)
        return decision

    async def _write(self, partition: TopicPartition, assignment: ReplicaAssignment) -> bool:
        changed = {partition.partition: assignment}
        if not await self._term.fenced.write_assignments(partition.topic, changed):
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
        self._term.events.record(
            kind,
            cause,
            partition,
            replicas=list(assignment.replicas),
            adding=list(assignment.adding),
            removing=list(assignment.removing),
            removed=list(removed),
            isr=list(state.isr) if state is not None else [],
        )
