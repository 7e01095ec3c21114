"""Partitions whose states may come from an older copy of ZooKeeper: all replicas answer first.

A restored ZooKeeper has the ISRs of an earlier time. A member of such an ISR may have left it
since, and may lack committed records. Brokers notice at their start that they are ahead of
ZooKeeper, and say so in their registrations. A single state may have been written back by hand: a
replica then refuses its role, because it holds a newer one, or the broker of the new controller was
told of a newer one. The controller holds no election by such a state. It sends LeaderAndIsr with
`tell_only`, and the replicas answer with their roles and logs. Then the leader of the newest epoch
goes on, or the newest log leads (`raised_epoch.py`).

A new controller may find members in an ISR that its broker was not told of. It asks the leader, as
long as that is online and has not restarted. The leader's answer alone is enough.

All replicas must have answered. The answers of some are enough if the others have not registered,
or cannot use their logs, or have not answered for `eligible.leader.replicas.wait.ms`, and are fewer
than the minimum ISR: each acknowledged record is then on a replica that has answered. Replicas that
answer and may have lost records count as if they had not answered. Their number does not matter if
the topic allows unclean elections, or an administrator requests one.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from types import MappingProxyType

from barnabas_common.events import EventKind
from barnabas_common.messages.control import (
    HeldRole,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    UpdateMetadataPartition,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.election.decision import Decision, Elected, Unchanged
from barnabas_controller.eligibility.current import minimum_isrs
from barnabas_controller.eligibility.min_isr import NO_MINIMUM
from barnabas_controller.eligibility.raised_epoch import (
    is_confirmed_by,
    is_outdated,
    is_unconfirmed,
    leader_goes_on,
    may_lack_records,
)
from barnabas_controller.partitions.epoch_refusals import EpochRefusals
from barnabas_controller.partitions.leadership import change_leadership
from barnabas_controller.partitions.partition_state_machine import (
    PartitionStateMachine,
    unclean_allowed,
)
from barnabas_controller.state.context import Asked
from barnabas_controller.state.states import PartitionState
from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr

NONE_UNKNOWN: Mapping[TopicPartition, Collection[int]] = MappingProxyType({})

# The newest state that a broker was told of, of a partition of the topic with this id.
NewestState = Callable[[TopicPartition, str], UpdateMetadataPartition | None]


def no_state(_partition: TopicPartition, _topic_id: str) -> None:
    """The `NewestState` of a broker that was told of no partition."""


class UnconfirmedStates:
    """Finds such partitions, counts the answers of one controller term, and has them elected."""

    def __init__(
        self,
        term: ControllerTerm,
        partitions: PartitionStateMachine,
        refusals: EpochRefusals,
        newest_state: NewestState,
    ) -> None:
        self._term = term
        self._partitions = partitions
        self._context = term.context
        self._refusals = refusals
        self._newest_state = newest_state

    def find(self, partitions: Collection[TopicPartition] | None = None) -> list[TopicPartition]:
        """Hold back the elections of those with such states, of all or of some, and return them.

        Call it before the states are sent: the replicas are then asked instead.
        """
        context = self._context
        # Without eligible leader replicas states have no proofs, so none would be confirmed.
        is_restored = self._term.config.eligible_leader_replicas_enable and any(
            broker.ahead_since is not None for broker in context.brokers.values()
        )
        found = [
            partition
            for partition, state in context.leadership.items()
            if (partitions is None or partition in partitions)
            and partition not in context.unconfirmed
            and not context.is_being_deleted(partition.topic)
            and self._may_be_older(partition, state, is_restored)
        ]
        self._hold_back(found)
        return found

    def _may_be_older(
        self, partition: TopicPartition, state: LeaderAndIsr, is_restored: bool
    ) -> bool:
        """Whether the state in ZooKeeper may be older than one that was in force."""
        if self._newer_told(partition, state) is not None:
            return True
        context = self._context
        return is_restored and is_unconfirmed(state, context.replicas(partition), context.brokers)

    def _newer_told(self, partition: TopicPartition, state: LeaderAndIsr) -> HeldRole | None:
        """The newest role that this broker was told of, if the state in ZooKeeper is older."""
        topic_id = self._context.topic_ids.get(partition.topic, "")
        told = self._newest_state(partition, topic_id)
        if told is None:
            return None
        role = HeldRole(*partition, told.leader_epoch, told.leader, list(told.in_sync_replicas))
        return role if is_outdated(state, [role]) else None

    def unknown_members(
        self, written_at: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, list[int]]:
        """The members of each ISR that were not in it when this broker was last told of it, under
        the present leader epoch.

        They may have joined since, or an older state was written back, and they have left it. A
        leader that has not restarted since the state was written knows which: it is asked, and
        elections are held back until it has answered or is gone.
        """
        unknown = {partition: self._unknown_members(partition) for partition in written_at}
        asked = {
            partition: members
            for partition, members in unknown.items()
            if members and self._leader_knows(partition, written_at[partition])
        }
        self._hold_back([p for p in asked if p not in self._context.unconfirmed], asked)
        return unknown

    def _leader_knows(self, partition: TopicPartition, written_at: int) -> bool:
        context = self._context
        leader = context.leadership[partition].leader
        return context.is_online(leader, partition) and context.brokers[leader].epoch < written_at

    async def remove_unknown_members(self) -> None:
        """Remove them where the leader is gone before it has answered.

        They stay if no other member is online: then only they can lead. As a rule they are members.
        """
        context, leadership = self._context, self._context.leadership
        unknown = {
            p: asked.unknown
            for p, asked in context.unconfirmed.items()
            if asked.unknown and not context.is_online(leadership[p].leader, p)
        }
        for partition in unknown:
            del context.unconfirmed[partition], context.held_roles[partition]

        def decide(partition: TopicPartition, state: LeaderAndIsr) -> Decision:
            staying = [m for m in state.isr if m not in unknown[partition]]
            if not any(context.is_online(member, partition) for member in staying):
                return Unchanged(f"no other member of the ISR {list(state.isr)} is online")
            why = f"the leader is gone, and may have known an ISR without {unknown[partition]}"
            return Elected(state.with_leader(NO_LEADER, staying), (), why, from_outdated=True)

        await change_leadership(self._term, unknown, decide)

    def _unknown_members(self, partition: TopicPartition) -> list[int]:
        context = self._context
        state = context.leadership[partition]
        told = self._newest_state(partition, context.topic_ids.get(partition.topic, ""))
        if told is None or (told.leader_epoch, told.leader) != (state.leader_epoch, state.leader):
            return []
        return [member for member in state.isr if member not in told.in_sync_replicas]

    def ask_all(self, partitions: list[TopicPartition]) -> None:
        """Hold back their elections, and ask all their replicas."""
        self._hold_back(partitions)
        self.ask(partitions)

    def ask(self, partitions: list[TopicPartition]) -> None:
        """Ask the replicas that are online."""
        batch = self._term.batch()
        for partition in partitions:
            online = self._context.online_replicas(partition)
            state = self._context.leadership[partition]
            batch.leader_and_isr(online, partition, state, cause="its replicas are asked")
        self._term.send(batch)

    def _hold_back(
        self,
        partitions: list[TopicPartition],
        unknown: Mapping[TopicPartition, Collection[int]] = NONE_UNKNOWN,
    ) -> None:
        context, now = self._context, self._term.runtime.clock.monotonic()
        for partition in partitions:
            context.unconfirmed[partition] = Asked(now, unknown.get(partition, ()))
            context.held_roles.setdefault(partition, {})
            state, asked = context.leadership[partition], context.unconfirmed[partition]
            why = (
                "it may come from an older copy of ZooKeeper: its replicas are asked what they hold"
            )
            if asked.unknown:
                why = f"this broker knows an ISR without {list(asked.unknown)}: the leader is asked"
            self._term.events.record(
                EventKind.STATE_UNCONFIRMED,
                f"{why}, and no leader is elected by it",
                partition,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=state.isr,
            )
        known = [p for p in partitions if p in context.partition_states]
        self._partitions.change(known, PartitionState.OFFLINE)
        if partitions:
            asyncio.get_running_loop().call_later(
                self._term.config.eligible_leader_replicas_wait,
                self._term.enqueue,
                "the wait for answers is over",
                self.elect_where_answered,
            )

    def on_held(
        self, broker_id: int, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse
    ) -> None:
        """Enqueue what a broker holds."""
        if self._context.unconfirmed:
            name = f"roles answered by broker {broker_id}"
            self._term.enqueue(name, partial(self._on_answered, broker_id, request, response))

    async def _on_answered(
        self, broker_id: int, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse
    ) -> None:
        """Count what a replica holds; one that cannot use its log tells nothing."""
        broker = self._context.brokers.get(broker_id)
        if broker is None or broker.epoch != request.broker_epoch:
            return
        asked = {TopicPartition(p.topic, p.partition): p for p in request.partitions}
        for role in response.held:
            partition = TopicPartition(role.topic, role.partition)
            state = self._context.leadership.get(partition)
            found = self._context.unconfirmed.get(partition)
            question = asked.get(partition)
            if found is None or state is None or question is None or not question.tell_only:
                continue
            same_topic = question.topic_id == self._context.topic_ids.get(partition.topic, "")
            if same_topic and question.leader_epoch == state.leader_epoch:
                found.answered[broker_id] = broker.epoch
                self._context.held_roles[partition][broker_id] = role
        await self.elect_where_answered()

    async def elect_where_answered(self) -> None:
        """Elect where the answers that are there are enough."""
        await self._go_on_where_confirmed()
        await self._elect(await self._answered())

    async def _go_on_where_confirmed(self) -> None:
        """Hold ordinary elections where an answer shows that the state is not from an older copy.

        A replica that is ahead and registers late makes states unconfirmed that were written since.
        """
        context = self._context
        confirmed = [p for p in context.unconfirmed if self._is_confirmed(p)]
        for partition in confirmed:
            del context.unconfirmed[partition], context.held_roles[partition]
        if confirmed:
            why = "a replica has answered that proved the state after the restore"
            await self._partitions.elect(confirmed, why)

    def _is_confirmed(self, partition: TopicPartition) -> bool:
        context, state = self._context, self._context.leadership.get(partition)
        if state is None or context.unconfirmed[partition].unknown:
            return False
        answered = [r for r in context.replicas(partition) if r not in self._missing(partition)]
        return (
            any(is_confirmed_by(state, context.brokers[replica]) for replica in answered)
            and self._newer_told(partition, state) is None
            and not is_outdated(state, context.held_roles[partition].values())
        )

    async def elect_now(self, partitions: Iterable[TopicPartition]) -> None:
        """Elect by the answers that are there, although records may be lost."""
        await self._elect([p for p in partitions if p in self._context.unconfirmed])

    async def _answered(self) -> list[TopicPartition]:
        """The partitions of which enough replicas have answered."""
        missing = {p: self._awaited(p) for p in self._context.unconfirmed}
        complete = [partition for partition, replicas in missing.items() if not replicas]
        given_up = [
            partition
            for partition, replicas in missing.items()
            if replicas and all(self._is_given_up(r, partition) for r in replicas)
        ]
        minima = await minimum_isrs(self._term, given_up)
        unclean = await unclean_allowed(self._term, [p.topic for p in given_up])
        enough = [
            partition
            for partition in given_up
            if unclean.get(partition.topic, False)
            or len(missing[partition]) + self._may_lack_records(partition, missing[partition])
            < minima.get(partition, NO_MINIMUM).size
        ]
        return [*complete, *enough]

    def _awaited(self, partition: TopicPartition) -> list[int]:
        """The replicas whose answers are awaited; none if the leader knows, and has answered."""
        context, missing = self._context, self._missing(partition)
        held = {b: h for b, h in context.held_roles[partition].items() if b not in missing}
        replicas, online = context.replicas(partition), context.online_replicas(partition)
        if context.unconfirmed[partition].unknown and leader_goes_on(held, replicas, online):
            return []
        return missing

    def _missing(self, partition: TopicPartition) -> list[int]:
        """The replicas that have not answered, or have failed since."""
        context, answered = self._context, self._context.unconfirmed[partition].answered
        return [
            replica
            for replica in context.replicas(partition)
            if not context.is_alive(replica)
            or answered.get(replica) != context.brokers[replica].epoch
        ]

    def _may_lack_records(self, partition: TopicPartition, missing: list[int]) -> int:
        """How many of the replicas that have answered may have lost records."""
        context, state = self._context, self._context.leadership[partition]
        answered = [replica for replica in context.replicas(partition) if replica not in missing]
        return sum(may_lack_records(state, context.brokers[replica]) for replica in answered)

    def _is_given_up(self, replica: int, partition: TopicPartition) -> bool:
        context = self._context
        waited = self._term.runtime.clock.monotonic() - context.unconfirmed[partition].since
        return (
            replica in context.given_up
            or partition in context.failed_replicas.get(replica, ())
            # Timers of uvloop count milliseconds, and may fire a little early.
            or (replica in context.brokers and waited > self._wait - 0.01)
        )

    @property
    def _wait(self) -> float:
        return self._term.config.eligible_leader_replicas_wait

    async def _elect(self, partitions: list[TopicPartition]) -> None:
        context = self._context
        missing = {partition: self._missing(partition) for partition in partitions}
        for partition, away in missing.items():
            held = context.held_roles[partition]
            context.held_roles[partition] = {b: h for b, h in held.items() if b not in away}
            del context.unconfirmed[partition]
        if partitions:
            states = context.leadership
            told = {p: self._newer_told(p, states[p]) for p in partitions if p in states}
            await self._refusals.elect_above(partitions, unconfirmed=told, given_up=missing)
