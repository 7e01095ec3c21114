"""Partitions whose states may come from an older copy of ZooKeeper: all replicas answer first.

A restored ZooKeeper has the ISRs of an earlier time. A member of such an ISR may have left it
since, and may lack committed records. Brokers notice at their start that they are ahead of
ZooKeeper, and say so in their registrations. A single state may have been written back by hand: a
replica then refuses its role, because it holds a newer one, or the broker of the new controller was
told of a newer one. The controller sends each replica the state as it is, and holds no election. A
replica whose log is as new or newer refuses its role and says what it holds. When all replicas have
answered, the newest log decides (`raised_epoch.py`).

The answers of some replicas are enough if the others have not registered for
`eligible.leader.replicas.wait.ms` and are fewer than the minimum ISR: each committed record is then
on a replica that has answered. An administrator can request an unclean election before. If the
leader of the state leads in its epoch already, it decides alone.
"""

from collections.abc import Callable, Iterable
from functools import partial

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import (
    HeldRole,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from barnabas_common.runtime import Message
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.channels.request_batch import ControlRequest
from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.eligibility.current import minimum_isrs
from barnabas_controller.eligibility.min_isr import NO_MINIMUM
from barnabas_controller.eligibility.raised_epoch import is_unconfirmed
from barnabas_controller.partitions.epoch_refusals import EpochRefusals
from barnabas_controller.partitions.partition_state_machine import PartitionStateMachine
from barnabas_controller.state.states import PartitionState
from barnabas_controller.store.leader_and_isr import LeaderAndIsr

LeaderEpochOf = Callable[[TopicPartition, str], int]


def no_leader_epoch(_partition: TopicPartition, _topic_id: str) -> int:
    """A `LeaderEpochOf` of a broker that was told of no partition."""
    return -1


class UnconfirmedStates:
    """Finds such partitions, counts the answers of one controller term, and has them elected."""

    def __init__(
        self,
        term: ControllerTerm,
        partitions: PartitionStateMachine,
        refusals: EpochRefusals,
        leader_epoch_of: LeaderEpochOf,
    ) -> None:
        self._term = term
        self._partitions = partitions
        self._context = term.context
        self._refusals = refusals
        self._leader_epoch_of = leader_epoch_of

    def find(self) -> list[TopicPartition]:
        """Hold back the elections of the partitions with such states, and return them.

        They wait for answers to the states as they are; so call it before the states are sent.
        """
        context = self._context
        found = [
            partition
            for partition, state in context.leadership.items()
            if partition not in context.unconfirmed
            and not context.is_being_deleted(partition.topic)
            and self._may_be_older(partition, state)
        ]
        self._hold_back(found)
        return found

    def _may_be_older(self, partition: TopicPartition, state: LeaderAndIsr) -> bool:
        """By what this broker was told before it became controller, or by what replicas say."""
        context = self._context
        topic_id = context.topic_ids.get(partition.topic, "")
        if self._leader_epoch_of(partition, topic_id) > state.leader_epoch:
            return True
        # Without eligible leader replicas states have no proofs, so none would be confirmed.
        has_proofs = self._term.config.eligible_leader_replicas_enable
        return has_proofs and is_unconfirmed(state, context.replicas(partition), context.brokers)

    def ask_all(self, partitions: list[TopicPartition]) -> None:
        """Hold back their elections, and send all their replicas the states as they are."""
        self._hold_back(partitions)
        self.send_states(partitions)

    def send_states(self, partitions: list[TopicPartition]) -> None:
        """Send the replicas that are online the states of their partitions, to be answered."""
        batch = self._term.batch()
        for partition in partitions:
            online = self._context.online_replicas(partition)
            state = self._context.leadership[partition]
            batch.leader_and_isr(online, partition, state, cause="its replicas are asked")
        self._term.send(batch)

    def _hold_back(self, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            self._context.unconfirmed[partition] = set()
            self._context.held_roles.setdefault(partition, {})
        known = [p for p in partitions if p in self._context.partition_states]
        self._partitions.change(known, PartitionState.OFFLINE)

    def on_response(self, broker_id: int, request: ControlRequest, response: Message) -> None:
        """Enqueue the answer of a replica; called with every response, after `EpochRefusals`."""
        if (
            self._context.unconfirmed
            and isinstance(request, LeaderAndIsrRequest)
            and isinstance(response, LeaderAndIsrResponse)
            and response.error_code == ErrorCode.NONE
        ):
            name = f"roles answered by broker {broker_id}"
            self._term.enqueue(name, partial(self._on_answered, broker_id, request, response))

    async def _on_answered(
        self, broker_id: int, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse
    ) -> None:
        broker = self._context.brokers.get(broker_id)
        if broker is None or broker.epoch != request.broker_epoch:
            return
        refused = {TopicPartition(h.topic, h.partition) for h in response.held}
        led: list[TopicPartition] = []
        for answer in response.partitions:
            partition = TopicPartition(answer.topic, answer.partition)
            answered = self._context.unconfirmed.get(partition)
            state = self._context.leadership.get(partition)
            if answered is None or state is None:
                continue
            answered.add(broker_id)
            has_role = answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
            held = self._context.held_roles[partition]
            is_outdated = any(h.leader_epoch > state.leader_epoch for h in held.values())
            leads = has_role and partition not in refused and state.leader == broker_id
            if leads and not is_outdated:
                # It did not refuse the role but has it, so it leads in this epoch.
                role = HeldRole(*partition, state.leader_epoch, broker_id, [broker_id])
                held[broker_id] = role
                led.append(partition)
        await self._elect([*led, *(p for p in await self._answered() if p not in led)])

    async def give_up(self, cause: str) -> None:
        """Elect where the answers suffice, because others have not registered; `cause` says who."""
        await self._elect(await self._answered())

    async def elect_now(self, partitions: Iterable[TopicPartition]) -> None:
        """Elect by the answers that are there, although records may be lost."""
        await self._elect([p for p in partitions if p in self._context.unconfirmed])

    async def _answered(self) -> list[TopicPartition]:
        """The partitions of which enough replicas have answered."""
        context = self._context
        missing = {
            partition: [r for r in context.replicas(partition) if r not in answered]
            for partition, answered in context.unconfirmed.items()
        }
        given_up = [p for p, m in missing.items() if m and context.given_up.issuperset(m)]
        minima = await minimum_isrs(self._term, given_up)
        return [
            partition
            for partition, m in missing.items()
            if not m or (partition in given_up and len(m) < minima.get(partition, NO_MINIMUM).size)
        ]

    async def _elect(self, partitions: list[TopicPartition]) -> None:
        context = self._context
        for partition in partitions:
            answered = context.unconfirmed.pop(partition)
            state = context.leadership[partition]
            self._term.events.record(
                EventKind.STATE_UNCONFIRMED,
                "it may come from an older copy of ZooKeeper, so the logs decide, and not its ISR",
                partition,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=state.isr,
                answered=sorted(answered),
            )
        if partitions:
            await self._refusals.elect_above(partitions, unconfirmed=partitions)
