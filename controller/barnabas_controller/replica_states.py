"""The replica state machine: what each broker is told about each of its replicas."""

import logging
from collections.abc import Iterable
from itertools import groupby

from barnabas.topic_partition import TopicPartition

from barnabas_controller.context import Replica
from barnabas_controller.election import Decision, Elected, Refused, remove_from_isr
from barnabas_controller.eligible import lost_members
from barnabas_controller.leader_and_isr import LeaderAndIsr
from barnabas_controller.leadership import change_leadership
from barnabas_controller.reign import Reign
from barnabas_controller.request_batch import RequestBatch
from barnabas_controller.states import REPLICA_PREVIOUS, ReplicaState

logger = logging.getLogger(__name__)


class ReplicaStateMachine:
    """`change` skips and logs a replica whose present state does not allow the change."""

    def __init__(self, reign: Reign) -> None:
        self._reign = reign
        self._context = reign.context

    async def start(self, cause: str) -> None:
        """After failover: tell the live brokers all their replicas, take the others out of ISRs."""
        await self.adopt(self._context.partitions(), cause)

    async def adopt(self, partitions: Iterable[TopicPartition], cause: str) -> None:
        """The same for the replicas of these partitions."""
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
        """Move replicas to a state and tell the brokers; `cause` explains a changed ISR."""
        legal = self._legal(replicas, target)
        batch = self._reign.batch()
        match target:
            case ReplicaState.NEW:
                self._to_new(legal, batch, cause)
            case ReplicaState.ONLINE:
                self._to_online(legal, batch, cause)
            case ReplicaState.OFFLINE:
                await self._to_offline(legal, batch, cause)
            case ReplicaState.DELETION_STARTED:
                for replica in legal:
                    batch.stop_replica(replica.broker_id, replica.partition, True, cause)
        for replica in legal:
            if target is ReplicaState.NON_EXISTENT:
                self._context.replica_states.pop(replica, None)
            else:
                self._context.replica_states[replica] = target
        self._reign.send(batch)

    def _legal(self, replicas: Iterable[Replica], target: ReplicaState) -> list[Replica]:
        legal = []
        for replica in replicas:
            present = self._context.replica_state(replica)
            if present in REPLICA_PREVIOUS[target]:
                legal.append(replica)
            else:
                logger.error(
                    "%s on broker %d: cannot go from %s to %s",
                    replica.partition,
                    replica.broker_id,
                    present.name,
                    target.name,
                )
        return legal

    def _to_new(self, replicas: list[Replica], batch: RequestBatch, cause: str) -> None:
        for replica in replicas:
            state = self._context.leadership.get(replica.partition)
            if state is not None:
                batch.leader_and_isr([replica.broker_id], replica.partition, state, True, cause)

    def _to_online(self, replicas: list[Replica], batch: RequestBatch, cause: str) -> None:
        """A new replica was told when its partition got its leader; others are told again."""
        for replica in replicas:
            state = self._context.leadership.get(replica.partition)
            if state is not None and self._context.replica_state(replica) is not ReplicaState.NEW:
                batch.leader_and_isr([replica.broker_id], replica.partition, state, cause=cause)

    async def _to_offline(self, replicas: list[Replica], batch: RequestBatch, cause: str) -> None:
        for replica in replicas:
            # A suspect that lives after all may lead what nobody else can.
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
            replicas, suspected = context.replicas(partition), context.is_suspected(broker_id)
            lost = lost_members(state, context.brokers)
            return remove_from_isr(state, broker_id, replicas, cause, suspected, lost)

        known = [p for p in partitions if p in context.leadership]
        outcome = await change_leadership(self._reign, known, decide)
        for partition, decision in outcome.items():
            if isinstance(decision, Refused):
                logger.error("%s: %d stays in the ISR: %s", partition, broker_id, decision.reason)
            if isinstance(decision, Elected) and not context.is_being_deleted(partition.topic):
                batch.leader_and_isr(
                    decision.recipients, partition, decision.state, cause=decision.reason
                )
        # All brokers learn which replicas are offline, whether the ISR changed or not.
        batch.update_metadata(context.registered_brokers(), partitions)
