"""The replica state machine: which request each change of state sends to the replica's broker."""

import logging
from collections.abc import Iterable
from itertools import groupby

from barnabas_common.messages.control import SENT_AGAIN
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.channels.request_batch import RequestBatch
from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.election.decision import Decision, Elected, Refused
from barnabas_controller.eligibility.damaged_logs import damaged_eligible_removal
from barnabas_controller.eligibility.elections import eligible_removal
from barnabas_controller.eligibility.eligible_leader_replicas import LeaderEligibility, lost_members
from barnabas_controller.partitions.leadership import change_leadership
from barnabas_controller.state.context import Replica
from barnabas_controller.state.states import REPLICA_PREVIOUS, ReplicaState, legal
from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr

logger = logging.getLogger(__name__)


class ReplicaStateMachine:
    """`change` skips and logs a replica whose present state does not allow the change."""

    def __init__(self, term: ControllerTerm) -> None:
        self._term = term
        self._context = term.context

    async def start(self, cause: str) -> None:
        """At failover: send the online replicas LeaderAndIsr, remove the offline ones from ISRs."""
        await self.adopt(self._context.partitions(), cause)

    async def adopt(self, partitions: Iterable[TopicPartition], cause: str) -> None:
        """Derive the states of these partitions' replicas from their brokers, and notify them."""
        context = self._context
        online, offline = [], []
        for replica in context.replicas_of(partitions):
            if context.is_online(replica.broker_id, replica.partition):
                context.replica_states[replica] = ReplicaState.ONLINE
                online.append(replica)
            else:
                context.replica_states[replica] = ReplicaState.DELETION_INELIGIBLE
                offline.append(replica)
        await self.change(online, ReplicaState.ONLINE, cause)
        await self.change(offline, ReplicaState.OFFLINE, cause)

    async def change(
        self, replicas: Iterable[Replica], target: ReplicaState, cause: str = ""
    ) -> None:
        """Change the state of replicas and notify the brokers.

        Replicas that go offline leave their ISRs. `cause` is the cause in the events.
        """
        changed = legal(replicas, self._context.replica_state, target, REPLICA_PREVIOUS)
        batch = self._term.batch()
        match target:
            case ReplicaState.NEW:
                self._to_new(changed, batch, cause)
            case ReplicaState.ONLINE:
                self._to_online(changed, batch, cause)
            case ReplicaState.OFFLINE:
                await self._to_offline(changed, batch, cause)
            case ReplicaState.DELETION_STARTED:
                for replica in changed:
                    batch.stop_replica(replica.broker_id, replica.partition, True, cause)
        for replica in changed:
            if target is ReplicaState.NON_EXISTENT:
                self._context.replica_states.pop(replica, None)
            else:
                self._context.replica_states[replica] = target
        self._term.send(batch)

    def _to_new(self, replicas: list[Replica], batch: RequestBatch, cause: str) -> None:
        for replica in replicas:
            state = self._context.leadership.get(replica.partition)
            if state is not None:
                again = SENT_AGAIN + cause
                batch.leader_and_isr([replica.broker_id], replica.partition, state, True, again)

    def _to_online(self, replicas: list[Replica], batch: RequestBatch, cause: str) -> None:
        """Send LeaderAndIsr to all but new replicas, which received it with their first leader."""
        for replica in replicas:
            state = self._context.leadership.get(replica.partition)
            if state is not None and self._context.replica_state(replica) is not ReplicaState.NEW:
                again = SENT_AGAIN + cause
                batch.leader_and_isr([replica.broker_id], replica.partition, state, cause=again)

    async def _to_offline(self, replicas: list[Replica], batch: RequestBatch, cause: str) -> None:
        for replica in replicas:
            # A suspected broker that still runs keeps leaderships that no other replica can take.
            if not self._context.is_suspected(replica.broker_id):
                batch.stop_replica(replica.broker_id, replica.partition, False, cause)
        ordered = sorted(replicas, key=lambda replica: replica.broker_id)
        for broker_id, group in groupby(ordered, key=lambda replica: replica.broker_id):
            await self._leave_isrs(broker_id, [r.partition for r in group], batch, cause)

    async def _leave_isrs(
        self, broker_id: int, partitions: list[TopicPartition], batch: RequestBatch, cause: str
    ) -> None:
        context = self._context

        def decide(partition: TopicPartition, state: LeaderAndIsr) -> Decision:
            lost, suspected = lost_members(state, context.brokers), context.suspected_brokers()
            eligibility = LeaderEligibility(lost, suspected=tuple(suspected))
            replicas = context.replicas(partition)
            is_sound = broker_id in context.undamaged_replicas(partition)
            if broker_id in state.eligible and state.leader != NO_LEADER and not is_sound:
                return damaged_eligible_removal(state, broker_id, replicas, cause)
            return eligible_removal(state, broker_id, replicas, cause, eligibility)

        known = [p for p in partitions if p in context.leadership]
        outcome = await change_leadership(self._term, known, decide)
        for partition, decision in outcome.items():
            if isinstance(decision, Refused) and partition not in context.unconfirmed:
                logger.error("%s: %d stays in the ISR: %s", partition, broker_id, decision.reason)
            if isinstance(decision, Elected) and not context.is_being_deleted(partition.topic):
                batch.leader_and_isr(
                    decision.recipients, partition, decision.state, cause=decision.reason
                )
        # All brokers need the offline replicas, even if the ISR did not change.
        batch.update_metadata(context.registered_brokers(), partitions)
