"""What the controller does when brokers refuse its requests because they hold newer epochs.

If a broker has accepted a higher controller epoch, this controller raises its own by a new
election. If a replica holds a newer leader epoch, its partition gets a state with a higher one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from types import MappingProxyType

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import (
    HeldRole,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from barnabas_common.runtime import Message
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.channels.request_batch import ControlRequest
from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.election.decision import Decision, Elected
from barnabas_controller.eligibility.eligible_leader_replicas import lost_members
from barnabas_controller.eligibility.raised_epoch import (
    elect_above,
    is_outdated,
    leader_goes_on,
)
from barnabas_controller.errors import ControllerEpochBehind
from barnabas_controller.partitions.leadership import change_leadership
from barnabas_controller.partitions.partition_state_machine import PartitionStateMachine
from barnabas_controller.state.states import PartitionState
from barnabas_controller.store.leader_and_isr import LeaderAndIsr

# The time to wait for the refusals of the other replicas: together they show which one has the
# newest log. No other election is held in this time (`leadership.py`).
SETTLE_SECONDS = 0.5
NONE_UNCONFIRMED: Mapping[TopicPartition, HeldRole | None] = MappingProxyType({})
NONE_GIVEN_UP: Mapping[TopicPartition, Collection[int]] = MappingProxyType({})


class EpochRefusals:
    """Collects the refusals of one controller term and acts on them.

    `ask_all(partitions)` is called if the leader of the newest epoch has not refused, so that the
    other replicas must answer before an election. `elected(partitions)` is awaited after the
    elections.
    """

    def __init__(
        self,
        term: ControllerTerm,
        partitions: PartitionStateMachine,
        ask_all: Callable[[list[TopicPartition]], None],
        elected: Callable[[list[TopicPartition]], Awaitable[None]],
    ) -> None:
        self._term = term
        self._ask_all = ask_all
        self._elected = elected
        self._context = term.context
        self._partitions = partitions
        self._held = self._context.held_roles
        self._not_new: set[TopicPartition] = set()
        self._epoch_behind = False

    def on_response(self, broker_id: int, request: ControlRequest, response: Message) -> None:
        """Enqueue the work if the response is a refusal; called with every response."""
        own = self._term.fenced.epoch.number
        if (
            response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
            and response.controller_epoch > own
            and not self._epoch_behind
        ):
            self._epoch_behind = True
            epoch = response.controller_epoch
            why = f"broker {broker_id} has accepted controller epoch {epoch}, above {own} here"
            error = ControllerEpochBehind(why, epoch)
            self._term.enqueue("the controller epoch is behind", partial(_raise, error))
        refused = response.held if isinstance(response, LeaderAndIsrResponse) else []
        if refused and isinstance(request, LeaderAndIsrRequest):
            name = f"roles refused by broker {broker_id}"
            asked = {TopicPartition(s.topic, s.partition): s for s in request.partitions}
            self._term.enqueue(name, partial(self._on_refused, broker_id, asked, refused))

    async def _on_refused(
        self,
        broker_id: int,
        asked: Mapping[TopicPartition, LeaderAndIsrPartition],
        refused: list[HeldRole],
    ) -> None:
        """`asked` are the states of the request. What a replica of another topic holds says nothing
        about the topic that has the name now.

        A replica that refuses the first state of a partition has records, or a role: the partition
        is not new, and its state znode was deleted.
        """
        settled = []
        for held in refused:
            partition = TopicPartition(held.topic, held.partition)
            state = self._context.leadership.get(partition)
            question = asked.get(partition)
            topic_id = self._context.topic_ids.get(held.topic, "")
            if question is None or question.topic_id != topic_id:
                continue
            if state is None or held.leader_epoch < state.leader_epoch:
                continue  # the refusal is late: a newer state has been sent since
            if question.tell_only:
                continue  # it has told its log, and has refused nothing
            if question.is_new and question.leader_epoch == 0 == state.partition_epoch:
                self._not_new.add(partition)
            waits = partition in self._held
            self._held.setdefault(partition, {})[broker_id] = held
            if not waits:
                settled.append(partition)
        outdated = [
            p
            for p in settled
            if p in self._not_new
            or is_outdated(self._context.leadership[p], [self._held[p][broker_id]])
        ]
        await self._raise([p for p in settled if p not in outdated])
        if outdated:
            asyncio.get_running_loop().call_later(
                SETTLE_SECONDS,
                self._term.enqueue,
                "the refusals have settled",
                partial(self._raise, outdated),
            )

    async def _raise(self, partitions: list[TopicPartition]) -> None:
        """Hold elections where the refusals decide; elsewhere more replicas must answer first."""
        context = self._context
        here = [p for p in partitions if p in self._held and p not in context.unconfirmed]
        undecided = [p for p in here if p in context.leadership and not self._decides(p)]
        decided = [p for p in here if p not in undecided]
        not_new = dict.fromkeys(p for p in decided if p in self._not_new)
        self._not_new.difference_update(partitions)
        await self.elect_above(decided, unconfirmed=not_new)
        self._ask_all(undecided)

    def _decides(self, partition: TopicPartition) -> bool:
        context, held = self._context, self._held[partition]
        is_over = partition in self._not_new or is_outdated(
            context.leadership[partition], held.values()
        )
        return not is_over or leader_goes_on(
            held, context.replicas(partition), context.online_replicas(partition)
        )

    async def elect_above(
        self,
        partitions: list[TopicPartition],
        unconfirmed: Mapping[TopicPartition, HeldRole | None] = NONE_UNCONFIRMED,
        given_up: Mapping[TopicPartition, Collection[int]] = NONE_GIVEN_UP,
    ) -> None:
        """Hold elections under epochs above those that the replicas hold.

        `unconfirmed` has those of the partitions whose state is not to be relied on, each with the
        newer role that this broker was told of, if any. `given_up` has the replicas of a partition
        whose answers are not needed.
        """
        held = {partition: self._held.pop(partition, {}) for partition in partitions}

        def decide(partition: TopicPartition, state: LeaderAndIsr) -> Decision:
            context = self._context
            return elect_above(
                state,
                held[partition],
                context.replicas(partition),
                context.online_replicas(partition),
                _cause(state, held[partition], confirmed=partition not in unconfirmed),
                confirmed=partition not in unconfirmed,
                told=unconfirmed.get(partition),
                lost=lost_members(state, context.brokers),
                given_up=given_up.get(partition, ()),
            )

        context = self._context
        present = [
            p
            for p in partitions
            if p in context.leadership and not context.is_being_deleted(p.topic)
        ]
        before = {partition: context.leadership[partition] for partition in present}
        outcome = await change_leadership(self._term, present, decide)
        batch = self._term.batch()
        for partition, decision in outcome.items():
            if isinstance(decision, Elected):
                self._report(partition, before[partition], decision)
                batch.leader_and_isr(
                    decision.recipients, partition, decision.state, cause=decision.reason
                )
                is_led = context.is_online(decision.state.leader, partition)
                target = PartitionState.ONLINE if is_led else PartitionState.OFFLINE
                self._partitions.change([partition], target)
        self._term.send(batch)
        await self._partitions.elect_where_missing("a leader epoch was raised")
        await self._elected(present)

    def _report(self, partition: TopicPartition, before: LeaderAndIsr, decision: Elected) -> None:
        self._term.events.record(
            EventKind.EPOCH_RAISED,
            decision.reason,
            partition,
            epoch_before=before.leader_epoch,
            leader_epoch=decision.state.leader_epoch,
            leader_before=before.leader,
            leader=decision.state.leader,
            isr=decision.state.isr,
        )


async def _raise(error: ControllerEpochBehind) -> None:
    raise error


def _cause(state: LeaderAndIsr, held: Mapping[int, HeldRole], confirmed: bool) -> str:
    """The cause of the election: which brokers refused the state, and what that means."""
    told = ", ".join(f"broker {b} holds {h.leader_epoch}" for b, h in sorted(held.items()))
    refused = f"leader epoch {state.leader_epoch} was refused, {told}" if told else ""
    if is_outdated(state, held.values()):
        why = "the state in ZooKeeper is older than the replicas"
    elif not confirmed:
        why = "the state in ZooKeeper may be older than the replicas"
    else:
        why = "its log has records of that epoch, and it has not led in it since it started"
    return f"{refused}: {why}" if refused else why
