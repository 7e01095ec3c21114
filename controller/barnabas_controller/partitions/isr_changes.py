"""Handles AlterPartition (KIP-497): writes legal ISR changes, and notifies the brokers.

`alter_partition.py` decides which changes are legal.
"""

import logging
from collections.abc import Callable, Sequence

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import (
    AlteredPartition,
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.election.decision import Decision, Elected, Refused
from barnabas_controller.eligibility.current import with_elrs
from barnabas_controller.partitions.alter_partition import (
    AlreadyDone,
    Reject,
    Write,
    accepted,
    decide_alter_partition,
    rejected,
)
from barnabas_controller.partitions.leadership import adopt_foreign_changes, change_leadership
from barnabas_controller.partitions.state_writing import write_states
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.zookeeper.session import BadVersion

logger = logging.getLogger(__name__)

FOREIGN = "its state znode was changed from outside"


class IsrChanges:
    """Handles the requests; `on_accepted` receives the partitions whose ISR is as requested."""

    def __init__(
        self, term: ControllerTerm, on_accepted: Callable[[Sequence[TopicPartition]], None]
    ) -> None:
        self._term = term
        self._context = term.context
        self._on_accepted = on_accepted
        self._reported_stale: dict[int, int] = {}  # the last such epoch of a broker

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Handle a request; the response has every partition of the request, in its order."""
        broker = self._context.brokers.get(request.broker_id)
        if broker is None or broker.epoch != request.broker_epoch:
            self._report_stale(request, -1 if broker is None else broker.epoch)
            return AlterPartitionResponse(ErrorCode.STALE_BROKER_EPOCH)
        answers: dict[TopicPartition, AlteredPartition] = {}
        writes: dict[TopicPartition, tuple[AlterPartitionItem, Write]] = {}
        alive = self._context.alive_brokers()
        epochs = {broker.broker_id: broker.epoch for broker in self._context.brokers.values()}
        for item in request.partitions:
            partition = TopicPartition(item.topic, item.partition)
            decision = decide_alter_partition(
                item,
                self._context.leadership.get(partition),
                alive,
                request.broker_id,
                epochs,
                self._context.topic_ids.get(item.topic, ""),
            )
            if isinstance(decision, Write):
                writes[partition] = (item, decision)
            else:
                answers[partition] = self._answer(item, decision)
        answers |= await self._write(writes)
        behind = [p for p in answers if self._is_behind(request.broker_id, p, answers[p])]
        await self._announce_foreign_changes(behind)
        await self._announce_states_created_again(request)
        partitions = [TopicPartition(item.topic, item.partition) for item in request.partitions]
        self._term.update_metadata(self._context.registered_brokers(), partitions)
        self._on_accepted([p for p in partitions if not answers[p].error_code])
        return AlterPartitionResponse(ErrorCode.NONE, [answers[p] for p in partitions])

    def _report_stale(self, request: AlterPartitionRequest, registered: int) -> None:
        """Record one event for each broker epoch, because the leader repeats the request."""
        if self._reported_stale.get(request.broker_id) == request.broker_epoch:
            return
        self._reported_stale[request.broker_id] = request.broker_epoch
        self._term.events.record(
            EventKind.REQUEST_FENCED,
            f"an ISR change was requested under broker epoch {request.broker_epoch}, and the broker"
            + (" is not registered" if registered < 0 else f" is registered under {registered}"),
            broker=request.broker_id,
            meant_for_broker_epoch=request.broker_epoch,
            broker_epoch=registered,
        )

    async def _write(
        self, writes: dict[TopicPartition, tuple[AlterPartitionItem, Write]]
    ) -> dict[TopicPartition, AlteredPartition]:
        answers = {}
        leadership = self._context.leadership
        states = {partition: decision.state for partition, (_, decision) in writes.items()}
        results = await write_states(self._term, await with_elrs(self._term, states))
        for partition, result in results.items():
            item, _ = writes[partition]
            if isinstance(result, LeaderAndIsr):
                old, leadership[partition] = leadership[partition], result
                self._report_accepted(partition, old, result, item)
                answers[partition] = accepted(item, result)
            elif isinstance(result, BadVersion):
                answers[partition] = rejected(item, ErrorCode.INVALID_UPDATE_VERSION)
            else:
                logger.error("%s: ZooKeeper refused the ISR change: %r", partition, result)
                answers[partition] = rejected(item, ErrorCode.UNKNOWN_SERVER_ERROR)
        return answers

    def _is_behind(
        self, broker_id: int, partition: TopicPartition, answer: AlteredPartition
    ) -> bool:
        """Whether the broker leads, in this leader epoch, and does not know the state's version.

        Only its own changes keep the leader epoch, so another tool has written the state.
        """
        state = self._context.leadership.get(partition)
        is_late = answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        return is_late and state is not None and state.leader == broker_id

    async def _announce_foreign_changes(self, conflicts: Sequence[TopicPartition]) -> None:
        """Send the leaders the states that were changed from outside, which they wait for."""
        await self.announce(await adopt_foreign_changes(self._term, conflicts))

    async def _announce_states_created_again(self, request: AlterPartitionRequest) -> None:
        """Send the leader the states whose versions it knows to be higher than they are.

        Only its own leader epoch is in force, so the state znode was deleted, and created again.
        """
        leadership = self._context.leadership
        ahead = [
            TopicPartition(item.topic, item.partition)
            for item in request.partitions
            if _is_ahead(
                request.broker_id,
                item,
                leadership.get(TopicPartition(item.topic, item.partition)),
            )
        ]
        known = {partition: leadership[partition] for partition in ahead}
        await adopt_foreign_changes(self._term, ahead)
        await self.announce([p for p in ahead if leadership[p] == known[p]])

    async def announce(self, adopted: Sequence[TopicPartition]) -> None:
        """Send the leaders these states, whose versions they cannot know.

        The leader epoch grows, because brokers ignore a state of the epoch that they have already.
        """

        def decide(partition: TopicPartition, state: LeaderAndIsr) -> Decision:
            online = self._context.online_replicas(partition)
            if state.leader not in online:
                return Refused("its leader is not online")
            return Elected(state.with_leader(state.leader, state.isr), tuple(online), FOREIGN)

        batch = self._term.batch()
        for partition, decision in (await change_leadership(self._term, adopted, decide)).items():
            if isinstance(decision, Elected):
                batch.leader_and_isr(decision.recipients, partition, decision.state, cause=FOREIGN)
        self._term.send(batch)

    def _answer(self, item: AlterPartitionItem, decision: AlreadyDone | Reject) -> AlteredPartition:
        if isinstance(decision, AlreadyDone):
            return accepted(item, decision.state)
        self._term.events.record(
            EventKind.ISR_CHANGE_REFUSED,
            f"{decision.code.name}: {decision.reason}",
            TopicPartition(item.topic, item.partition),
            asked_for=item.new_isr,
            asked_because=item.cause,
            leader_epoch=item.leader_epoch,
        )
        return rejected(item, decision.code)

    def _report_accepted(
        self,
        partition: TopicPartition,
        old: LeaderAndIsr,
        new: LeaderAndIsr,
        item: AlterPartitionItem,
    ) -> None:
        self._term.events.record(
            EventKind.ISR_CHANGE_ACCEPTED if new.isr != old.isr else EventKind.LAST_REPLICA_DURABLE,
            item.cause or f"requested by broker {new.leader}, the leader",
            partition,
            isr_before=old.isr,
            isr=new.isr,
            leader=new.leader,
            leader_epoch=new.leader_epoch,
            partition_epoch=new.partition_epoch,
        )


def _is_ahead(broker_id: int, item: AlterPartitionItem, state: LeaderAndIsr | None) -> bool:
    return (
        state is not None
        and state.leader == broker_id
        and item.leader_epoch == state.leader_epoch
        and item.partition_epoch > state.partition_epoch
    )
