"""The partition state machine: new, online, offline, non-existent.

Changes to NEW, OFFLINE and NON_EXISTENT are bookkeeping. A change to ONLINE finds a leader: the
first one of a new partition, or the winner of an election.
"""

import logging
from collections.abc import Collection, Iterable, Mapping

from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.channels.request_batch import RequestBatch
from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.election.decision import Decision, Elected, Refused
from barnabas_controller.election.offline import first_leader
from barnabas_controller.eligibility.current import (
    current_eligibility,
    elect_after_wait,
    minimum_isrs_of_elrs,
    with_first_elr,
)
from barnabas_controller.eligibility.elections import (
    eligible_for_controlled_shutdown,
    eligible_offline,
    eligible_preferred,
    handle_unclean_shutdown,
)
from barnabas_controller.eligibility.raised_epoch import with_unused_epoch
from barnabas_controller.partitions.election_report import report_decision, report_refusal
from barnabas_controller.partitions.leadership import Decide, change_leadership
from barnabas_controller.partitions.log_queries import LogQueries
from barnabas_controller.state.states import PARTITION_PREVIOUS, PartitionState, legal
from barnabas_controller.store.leader_and_isr import NOT_CREATED, LeaderAndIsr

logger = logging.getLogger(__name__)

UNCLEAN_KEY = "unclean.leader.election.enable"
NEW_PARTITION = "the partition is new"


class PartitionStateMachine:
    """Changes the states; skips and logs a partition whose present state forbids the change."""

    def __init__(self, term: ControllerTerm) -> None:
        self._term = term
        self._context = term.context
        self.log_queries = LogQueries(term, self._elect_offline)

    async def start(self, cause: str) -> None:
        """At failover: derive all states from the leadership, then elect missing leaders."""
        for partition in self._context.partitions():
            self.adopt(partition)
        await self.elect_where_missing(cause)

    def adopt(self, partition: TopicPartition) -> None:
        """Derive a partition's state from its leadership; if that is invalid it has no state."""
        context, states = self._context, self._context.partition_states
        state = context.leadership.get(partition)
        if state is None:
            if partition not in context.invalid_states:
                states[partition] = PartitionState.NEW
        elif partition in context.unconfirmed:
            states[partition] = PartitionState.OFFLINE
        elif context.is_online(state.leader, partition):
            states[partition] = PartitionState.ONLINE
        else:
            states[partition] = PartitionState.OFFLINE

    async def handle_unclean_shutdown(
        self,
        written_at: Mapping[TopicPartition, int],
        cause: str,
        unknown_members: Mapping[TopicPartition, Collection[int]],
    ) -> None:
        """Before any LeaderAndIsr is sent: remove brokers that lost records, and those that may not
        be members, from the ISRs.

        `written_at` has the zxid of the transaction that wrote each state. If a state has no proof
        of a broker, the broker is removed if it registered after the state was written. Its broker
        epoch is a zxid as well, so that the two can be compared.
        """
        context, brokers = self._context, self._context.brokers
        has_proofs = self._term.config.eligible_leader_replicas_enable

        def decide(partition: TopicPartition, state: LeaderAndIsr) -> Decision:
            lost = current_eligibility(self._term, partition, state).lost
            proved = state.proved_at if has_proofs else {}
            restarted = [
                b.broker_id
                for b in brokers.values()
                if b.epoch > written_at[partition] and b.broker_id not in proved
            ]
            replicas, online = context.replicas(partition), context.online_replicas(partition)
            unknown = unknown_members.get(partition, ())
            decision = handle_unclean_shutdown(
                state, replicas, online, (*lost, *restarted), cause, lost, unknown
            )
            leader = brokers.get(state.leader)
            if leader is not None and leader.has_restarted_since(written_at[partition]):
                return with_unused_epoch(state, decision, online, cause)
            return decision

        await change_leadership(self._term, list(written_at), decide)

    def change(self, partitions: Iterable[TopicPartition], target: PartitionState) -> None:
        """Change the state without an election; for ONLINE a leader must have been elected."""
        for partition in self._legal(partitions, target):
            if target is PartitionState.NON_EXISTENT:
                self._context.partition_states.pop(partition, None)
            else:
                self._context.partition_states[partition] = target

    def _legal(
        self, partitions: Iterable[TopicPartition], target: PartitionState
    ) -> list[TopicPartition]:
        return legal(partitions, self._context.partition_state, target, PARTITION_PREVIOUS)

    async def elect_where_missing(self, cause: str, topic: str | None = None) -> None:
        """Elect leaders for the new and offline partitions of one topic, or of all."""
        leaderless = self._context.partitions_without_leader()
        await self.elect([p for p in leaderless if topic in (None, p.topic)], cause)

    async def elect(
        self, partitions: Iterable[TopicPartition], cause: str, even_unclean: bool = False
    ) -> dict[TopicPartition, Decision]:
        """Give new partitions their first leaders, and hold offline elections for the others.

        Returns the decisions of the elections. `even_unclean` allows unclean elections whatever the
        topics' settings are.
        """
        electable = self._legal(partitions, PartitionState.ONLINE)
        new = [p for p in electable if self._context.partition_state(p) is PartitionState.NEW]
        old = [p for p in electable if self._context.partition_state(p) is not PartitionState.NEW]
        batch = self._term.batch()
        await self._give_first_leaders(new, batch)
        unclean = await self._unclean_allowed(old)
        minima = await minimum_isrs_of_elrs(self._term, old)

        def decide(partition: TopicPartition, state: LeaderAndIsr) -> Decision:
            return eligible_offline(
                state,
                self._context.replicas(partition),
                self._context.online_replicas(partition),
                even_unclean or unclean.get(partition.topic, False),
                cause,
                current_eligibility(self._term, partition, state, minima),
            )

        outcome = await self._elect(old, decide, batch)
        self._term.send(batch)
        return outcome

    async def elect_preferred(
        self, partitions: Iterable[TopicPartition], cause: str
    ) -> dict[TopicPartition, Decision]:
        """Hold preferred leader elections."""

        def decide(partition: TopicPartition, state: LeaderAndIsr) -> Decision:
            replicas = self._context.replicas(partition)
            online = self._context.online_replicas(partition)
            eligibility = current_eligibility(self._term, partition, state)
            return eligible_preferred(state, replicas, online, cause, eligibility)

        return await self._elect_online(partitions, decide)

    async def elect_for_shutdown(self, partitions: Iterable[TopicPartition], cause: str) -> None:
        """Move leadership away from brokers that are shutting down."""
        context = self._context

        def decide(partition: TopicPartition, state: LeaderAndIsr) -> Decision:
            replicas = context.replicas(partition)
            unsuspected = [b for b in context.brokers if not context.is_suspected(b)]
            eligibility = current_eligibility(self._term, partition, state)
            return eligible_for_controlled_shutdown(
                state, replicas, unsuspected, context.shutting_down, cause, eligibility
            )

        await self._elect_online(partitions, decide)

    async def _elect_online(
        self, partitions: Iterable[TopicPartition], decide: Decide
    ) -> dict[TopicPartition, Decision]:
        batch = self._term.batch()
        outcome = await self._elect(self._legal(partitions, PartitionState.ONLINE), decide, batch)
        self._term.send(batch)
        return outcome

    async def _elect(
        self, partitions: list[TopicPartition], decide: Decide, batch: RequestBatch
    ) -> dict[TopicPartition, Decision]:
        outcome = await change_leadership(self._term, partitions, decide)
        queries = {}
        for partition, decision in outcome.items():
            if isinstance(decision, Elected):
                self._context.partition_states[partition] = PartitionState.ONLINE
                self._context.refused.pop(partition, None)
                batch.leader_and_isr(
                    decision.recipients, partition, decision.state, cause=decision.reason
                )
            elif isinstance(decision, Refused):
                report_refusal(self._term, partition, decision)
                if decision.awaits:
                    self._elect_after_wait(partition)
                queries[partition] = decision.queries
        self.log_queries.ask(queries)
        return outcome

    def _elect_after_wait(self, partition: TopicPartition) -> None:
        elect_after_wait(
            self._term, partition, lambda cause: self._elect_offline([partition], cause)
        )

    async def _elect_offline(self, partitions: Iterable[TopicPartition], cause: str) -> None:
        state = self._context.partition_state
        await self.elect([p for p in partitions if state(p) is PartitionState.OFFLINE], cause)

    async def _give_first_leaders(
        self, partitions: list[TopicPartition], batch: RequestBatch
    ) -> None:
        context, epoch = self._context, self._term.fenced.epoch.number
        states: dict[TopicPartition, LeaderAndIsr] = {}
        for partition in partitions:
            online = context.online_replicas(partition)
            first = first_leader(context.replicas(partition), online, epoch)
            if isinstance(first, Refused):
                report_refusal(self._term, partition, first)
                batch.update_metadata(context.registered_brokers(), [partition])
            else:
                states[partition] = with_first_elr(self._term, first)
        for partition, result in (await self._term.fenced.create_states(states)).items():
            if not isinstance(result, LeaderAndIsr):
                logger.error("%s: its state could not be created: %r", partition, result)
                continue
            context.leadership[partition] = result
            context.partition_states[partition] = PartitionState.ONLINE
            context.refused.pop(partition, None)
            batch.leader_and_isr(result.isr, partition, result, True, NEW_PARTITION)
            report_decision(self._term, partition, NOT_CREATED, result, NEW_PARTITION)

    async def _unclean_allowed(self, partitions: list[TopicPartition]) -> Mapping[str, bool]:
        """By topic, whether unclean elections are allowed.

        Topics are left out if a member of the ISR is online for each of these partitions, or if
        their settings are malformed.
        """
        topics: dict[str, None] = {}
        for partition in partitions:
            state = self._context.leadership.get(partition)
            online = self._context.online_replicas(partition)
            if state is not None and not any(replica in state.isr for replica in online):
                topics[partition.topic] = None
        return await unclean_allowed(self._term, topics)


async def unclean_allowed(term: ControllerTerm, topics: Iterable[str]) -> Mapping[str, bool]:
    """By topic, whether unclean elections are allowed; not those with malformed settings."""
    configs = await term.store.topic_configs(list(dict.fromkeys(topics)))
    default = term.config.unclean_leader_election_enable
    return {
        topic: default if value is None else value.strip().lower() == "true"
        for topic, value in ((t, config.get(UNCLEAN_KEY)) for t, config in configs.items())
    }
