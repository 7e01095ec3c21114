"""The partition state machine: new, online, offline, gone.

Moving to NEW, OFFLINE or NON_EXISTENT is bookkeeping. Moving to ONLINE means that a leader is
found: the first of a new partition, or the winner of an election.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from barnabas.topic_partition import TopicPartition

from barnabas_controller.election import (
    Decision,
    Elected,
    Refused,
    Unchanged,
    dismiss_earlier_lives,
    elect_for_controlled_shutdown,
    elect_offline,
    elect_preferred,
    first_leader,
)
from barnabas_controller.election_report import report_first_leader, report_refusal
from barnabas_controller.eligible import NO_DOUBTS, Doubts, doubts, first_account
from barnabas_controller.leader_and_isr import LeaderAndIsr
from barnabas_controller.leadership import Decide, change_leadership
from barnabas_controller.min_isr import minimum_isrs
from barnabas_controller.reign import Reign
from barnabas_controller.request_batch import RequestBatch
from barnabas_controller.states import PARTITION_PREVIOUS, PartitionState

logger = logging.getLogger(__name__)

UNCLEAN_KEY = "unclean.leader.election.enable"
NEW_PARTITION = "the partition is new"


class PartitionStateMachine:
    """All methods skip and log a partition whose present state does not allow the change."""

    def __init__(self, reign: Reign) -> None:
        self._reign = reign
        self._context = reign.context

    async def start(self, cause: str) -> None:
        """After failover: derive the states from the leadership, then find what leaders one can."""
        for partition in self._context.partitions():
            self.adopt(partition)
        await self.elect_where_missing(cause)

    def adopt(self, partition: TopicPartition) -> None:
        """Derive a partition's state from its leadership; one that is in doubt has none."""
        context, states = self._context, self._context.partition_states
        state = context.leadership.get(partition)
        if state is None:
            if partition not in context.doubtful:
                states[partition] = PartitionState.NEW
        elif context.is_online(state.leader, partition):
            states[partition] = PartitionState.ONLINE
        else:
            states[partition] = PartitionState.OFFLINE

    async def dismiss_earlier_lives(
        self, written_at: Mapping[TopicPartition, int], cause: str
    ) -> None:
        """Before anybody is told of a role: take seats from brokers that lost something since they
        got them. Where nothing is known of that, from those that registered after the partition's
        state was written: the zxid of the one and the broker epoch of the other are numbers of one
        sequence."""
        context = self._context
        is_known = self._reign.config.eligible_leader_replicas_enable

        def decide(partition: TopicPartition, state: LeaderAndIsr) -> Decision:
            lost = self._doubts(partition, state, {}).lost
            proved = state.proved_at if is_known else {}
            since = [
                b.broker_id
                for b in context.brokers.values()
                if b.epoch > written_at[partition] and b.broker_id not in proved
            ]
            replicas, online = context.replicas(partition), context.online_replicas(partition)
            return dismiss_earlier_lives(state, replicas, online, (*lost, *since), cause, lost)

        await change_leadership(self._reign, list(written_at), decide)

    def change(self, partitions: Iterable[TopicPartition], target: PartitionState) -> None:
        """Move to NEW, OFFLINE or NON_EXISTENT."""
        for partition in self._legal(partitions, target):
            if target is PartitionState.NON_EXISTENT:
                self._context.partition_states.pop(partition, None)
            else:
                self._context.partition_states[partition] = target

    def _legal(
        self, partitions: Iterable[TopicPartition], target: PartitionState
    ) -> list[TopicPartition]:
        legal = []
        for partition in partitions:
            present = self._context.partition_state(partition)
            if present in PARTITION_PREVIOUS[target]:
                legal.append(partition)
            else:
                logger.error("%s: cannot go from %s to %s", partition, present.name, target.name)
        return legal

    async def elect_where_missing(self, cause: str, topic: str | None = None) -> None:
        """Give every new or offline partition, of one topic or all, a leader if one can be had."""
        leaderless = self._context.partitions_without_leader()
        await self.elect([p for p in leaderless if topic in (None, p.topic)], cause)

    async def elect(
        self, partitions: Iterable[TopicPartition], cause: str, even_unclean: bool = False
    ) -> dict[TopicPartition, Decision]:
        """To ONLINE: a first leader for new partitions, an offline election for the others.

        Returns what became of the latter. `even_unclean`: whatever the topics' settings say.
        """
        legal = self._legal(partitions, PartitionState.ONLINE)
        new = [p for p in legal if self._context.partition_state(p) is PartitionState.NEW]
        old = [p for p in legal if self._context.partition_state(p) is not PartitionState.NEW]
        batch = self._reign.batch()
        await self._give_first_leaders(new, batch)
        unclean = await self._unclean_allowed(old)
        minima = await self._minima(old)

        def decide(partition: TopicPartition, state: LeaderAndIsr) -> Decision:
            replicas = self._context.replicas(partition)
            online = self._context.online_replicas(partition)
            allowed = even_unclean or unclean.get(partition.topic, False)
            suspected = self._context.suspected_brokers()
            doubts = self._doubts(partition, state, minima)
            return elect_offline(state, replicas, online, allowed, cause, suspected, doubts)

        outcome = await self._elect(old, decide, batch)
        self._reign.send(batch)
        return outcome

    async def elect_preferred(
        self, partitions: Iterable[TopicPartition], cause: str
    ) -> dict[TopicPartition, Decision]:
        """Hand leadership to the head of the assignment where that is possible; not to one that
        could not be told."""

        def decide(partition: TopicPartition, state: LeaderAndIsr) -> Decision:
            replicas = self._context.replicas(partition)
            online = self._context.online_replicas(partition)
            lost = self._doubts(partition, state, {}).lost
            unreachable = self._reign.channels.unreachable(replicas)
            return elect_preferred(state, replicas, online, cause, lost, unreachable)

        return await self._elect_online(partitions, decide)

    async def elect_for_shutdown(self, partitions: Iterable[TopicPartition], cause: str) -> None:
        """Hand leadership away from brokers that are shutting down, to one that can be told."""
        context = self._context

        def decide(partition: TopicPartition, state: LeaderAndIsr) -> Decision:
            replicas = context.replicas(partition)
            trusted = [b for b in context.brokers if context.is_trusted(b)]
            unreachable = self._reign.channels.unreachable(replicas)
            return elect_for_controlled_shutdown(
                state, replicas, trusted, context.shutting_down, cause, unreachable
            )

        await self._elect_online(partitions, decide)

    async def _elect_online(
        self, partitions: Iterable[TopicPartition], decide: Decide
    ) -> dict[TopicPartition, Decision]:
        batch = self._reign.batch()
        outcome = await self._elect(self._legal(partitions, PartitionState.ONLINE), decide, batch)
        self._reign.send(batch)
        return outcome

    async def _elect(
        self, partitions: list[TopicPartition], decide: Decide, batch: RequestBatch
    ) -> dict[TopicPartition, Decision]:
        outcome = await change_leadership(self._reign, partitions, decide)
        for partition, decision in outcome.items():
            if isinstance(decision, Elected):
                self._context.partition_states[partition] = PartitionState.ONLINE
                self._context.refused.pop(partition, None)
                batch.leader_and_isr(
                    decision.recipients, partition, decision.state, cause=decision.reason
                )
            elif isinstance(decision, Refused):
                is_news = report_refusal(self._reign, partition, decision)
                level = logging.ERROR if is_news else logging.DEBUG
                logger.log(level, "%s: no leader elected: %s", partition, decision.reason)
                if decision.awaits:
                    self._look_again_later(partition)
            elif isinstance(decision, Unchanged):
                logger.debug("%s: %s", partition, decision.reason)
        return outcome

    async def _give_first_leaders(
        self, partitions: list[TopicPartition], batch: RequestBatch
    ) -> None:
        context, epoch = self._context, self._reign.store.epoch.number
        states: dict[TopicPartition, LeaderAndIsr] = {}
        for partition in partitions:
            online = context.online_replicas(partition)
            first = first_leader(context.replicas(partition), online, epoch)
            if isinstance(first, Refused):
                logger.error("%s: created without a leader: %s", partition, first.reason)
                report_refusal(self._reign, partition, first)
            else:
                states[partition] = self._first_account(first)
        for partition, result in (await self._reign.store.create_states(states)).items():
            if not isinstance(result, LeaderAndIsr):
                logger.error("%s: its state could not be created: %r", partition, result)
                continue
            logger.info(
                "%s: created with leader %d, ISR %s", partition, result.leader, list(result.isr)
            )
            context.leadership[partition] = result
            context.partition_states[partition] = PartitionState.ONLINE
            context.refused.pop(partition, None)
            batch.leader_and_isr(result.isr, partition, result, True, NEW_PARTITION)
            report_first_leader(self._reign, partition, result)

    # ---- who has everything; see eligible.py

    async def _minima(self, partitions: list[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Of those partitions whose eligible replicas may have to stand in."""
        leadership = self._context.leadership
        wanting = [p for p in partitions if p in leadership and leadership[p].eligible]
        return await minimum_isrs(self._reign, wanting)

    def _doubts(
        self,
        partition: TopicPartition,
        state: LeaderAndIsr,
        minima: Mapping[TopicPartition, int],
    ) -> Doubts:
        context, config = self._context, self._reign.config
        if not config.eligible_leader_replicas_enable:
            return NO_DOUBTS
        found = doubts(
            state,
            context.replicas(partition),
            context.online_replicas(partition),
            context.brokers,
            is_under_min_isr=len(state.isr) < minima.get(partition, 0),
        )
        waited_since = context.awaiting.get(partition)
        now = self._reign.runtime.clock.monotonic()
        waited = 0.0 if waited_since is None else now - waited_since
        if waited >= config.eligible_leader_replicas_wait:
            return replace(found, awaited=())
        return found

    def _look_again_later(self, partition: TopicPartition) -> None:
        """Elect once more when the wait for a better candidate is over."""
        if partition in self._context.awaiting:
            return
        self._context.awaiting[partition] = self._reign.runtime.clock.monotonic()
        wait = self._reign.config.eligible_leader_replicas_wait
        cause = f"nobody better came back within {wait:g} s"

        async def elect() -> None:
            if self._context.partition_state(partition) is PartitionState.OFFLINE:
                await self.elect([partition], cause)

        asyncio.get_running_loop().call_later(
            wait, self._reign.enqueue, f"{partition}: the wait is over", elect
        )

    def _first_account(self, state: LeaderAndIsr) -> LeaderAndIsr:
        enabled = self._reign.config.eligible_leader_replicas_enable
        return first_account(state, self._context.brokers) if enabled else state

    async def _unclean_allowed(self, partitions: list[TopicPartition]) -> Mapping[str, bool]:
        """Per topic that has a partition without any online in-sync replica; not where its
        settings cannot be understood."""
        topics: dict[str, None] = {}
        for partition in partitions:
            state = self._context.leadership.get(partition)
            online = self._context.online_replicas(partition)
            if state is not None and not any(replica in state.isr for replica in online):
                topics[partition.topic] = None
        configs = await self._reign.store.store.topic_configs(list(topics))
        default = self._reign.config.unclean_leader_election_enable
        return {
            topic: default if value is None else is_true(value)
            for topic, value in ((t, config.get(UNCLEAN_KEY)) for t, config in configs.items())
        }


def is_true(value: str | None) -> bool:
    """Whether a setting's text says true."""
    return value is not None and value.strip().lower() == "true"
