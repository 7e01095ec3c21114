"""Writes ISR changes of this broker's leaders to ZooKeeper while no controller can be reached.

Kafka's leaders did so before KIP-497 (`ReplicationUtils.updateLeaderAndIsr`). It is safe because
each write expects the version of the state that the leader acts on, and that of
`/controller_epoch`: after an election by any controller it fails. A leader only removes members in
this way; additions wait for the controller. It then leaves a notification, so that the controller
reads the state again.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, EventLog
from barnabas_common.messages.control import (
    AlterPartitionItem,
    LeaderAndIsrPartition,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.eligibility.eligible_leader_replicas import with_elr, without_elr
from barnabas_controller.eligibility.min_isr import NO_MINIMUM, MinimumIsr, read_minimum_isrs
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.partitions.alter_partition import (
    AlreadyDone,
    AlterPartitionDecision,
    Reject,
    Write,
    accepted,
    decide_alter_partition,
    rejected,
)
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.requests import in_chunks
from barnabas_controller.zookeeper.session import (
    BadVersion,
    Check,
    SetData,
    Stat,
    State,
    ZooKeeperError,
)

from barnabas_broker.replica.leader.isr_writer import IsrWriteResult

logger = logging.getLogger(__name__)

SOURCE = "the state in ZooKeeper"


@dataclass(frozen=True)
class LeaderFacts:
    """The facts about this broker that the writer needs.

    `hears_a_broker` returns whether a follower has fetched lately. `topic_id` returns the id of the
    topic that this broker's replica belongs to. `min_insync` returns the broker's own default.
    """

    broker_id: int
    broker_epoch: Callable[[], int]
    hears_a_broker: Callable[[], bool]
    topic_id: Callable[[TopicPartition], str | None]
    min_insync: Callable[[], int]
    eligible_leader_replicas: bool
    take_role: Callable[[LeaderAndIsrRequest], Awaitable[LeaderAndIsrResponse]]


def decide_without_controller(
    item: AlterPartitionItem,
    current: LeaderAndIsr,
    sender: int,
    broker_epochs: Mapping[int, int],
    hears_a_broker: bool,
) -> AlterPartitionDecision | None:
    """Whether the leader may write its change itself; None if it must wait for the controller.

    A later partition epoch under the leader's own leader epoch is the leader's own proposal: it was
    written, by the controller or by the leader, and the answer was lost. A leader that would remain
    alone while no other broker fetches from it is probably the one that is cut off.
    """
    if current.leader_epoch > item.leader_epoch or current.leader != sender:
        epochs = f"leader {current.leader}, leader epoch {current.leader_epoch}"
        return Reject(ErrorCode.FENCED_LEADER_EPOCH, epochs)
    if (current.leader_epoch, current.partition_epoch) < (item.leader_epoch, item.partition_epoch):
        return None  # read from a server that is behind
    if current.partition_epoch > item.partition_epoch:
        return AlreadyDone(current)
    if not set(item.new_isr) < set(current.isr):
        return None
    if item.new_isr == [sender] and not hears_a_broker:
        return None
    return decide_alter_partition(item, current, broker_epochs, sender, broker_epochs)


@dataclass(frozen=True)
class _Snapshot:
    """The state of ZooKeeper that one round of writes is based on."""

    store: Store
    controller_epoch: int
    fence: Check
    brokers: Mapping[int, znodes.Broker]
    topics: Mapping[str, znodes.TopicZnode]
    minima: Mapping[TopicPartition, MinimumIsr]
    why: str


@dataclass
class ZooKeeperIsrWriter:
    """An `IsrWriter`. `store` returns None while there is no session."""

    store: Callable[[], Store | None]
    facts: LeaderFacts
    events: EventLog
    _conflicts: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)

    async def write(self, items: Sequence[AlterPartitionItem], why: str) -> list[IsrWriteResult]:
        """See `IsrWriter.write`; without a connection to ZooKeeper all of them wait."""
        store = self.store()
        if store is None or store.session.state is not State.CONNECTED:
            return []
        try:
            snapshot = await self._snapshot(store, items, why)
            if snapshot is None:
                return []
            found = await in_chunks(partial(self._write_one, snapshot), items)
            results = [result for result in found if result is not None]
            await self._notify(store, results)
            for result in results:
                answer = result.answer
                self._conflicts.pop(TopicPartition(answer.topic, answer.partition), None)
        except (ZooKeeperError, MalformedZnode) as error:
            logger.info("ISR changes could not be written to ZooKeeper: %r", error)
            return []
        return results

    async def _snapshot(
        self, store: Store, items: Sequence[AlterPartitionItem], why: str
    ) -> _Snapshot | None:
        found = await store.get(znodes.CONTROLLER_EPOCH)
        if found is None:
            return None
        data, stat = found
        topics = await store.topic_assignments(list(dict.fromkeys(item.topic for item in items)))
        assignments = {
            TopicPartition(topic, number): assignment.replicas
            for topic, node in topics.items()
            for number, assignment in node.partitions.items()
        }
        return _Snapshot(
            store,
            znodes.decode_controller_epoch(data),
            Check(znodes.CONTROLLER_EPOCH, stat.version),
            await store.brokers(),
            topics,
            await read_minimum_isrs(store, assignments, self.facts.min_insync()),
            why,
        )

    async def _notify(self, store: Store, results: Sequence[IsrWriteResult]) -> None:
        """Notify the controller before the leaders get the results: if this fails, the next round
        finds the states written, and notifies again."""
        written = [r.answer for r in results if not r.answer.error_code]
        if written:
            await store.propagate_isr_change(
                [TopicPartition(a.topic, a.partition) for a in written]
            )

    async def _write_one(
        self, snapshot: _Snapshot, item: AlterPartitionItem
    ) -> IsrWriteResult | None:
        partition = TopicPartition(item.topic, item.partition)
        topic = snapshot.topics.get(item.topic)
        current = await snapshot.store.state(partition)
        if current is None or topic is None or item.partition not in topic.partitions:
            return None
        if topic.topic_id != self.facts.topic_id(partition):
            return None  # created again under the same name
        decision = decide_without_controller(
            item,
            current,
            self.facts.broker_id,
            {broker.broker_id: broker.epoch for broker in snapshot.brokers.values()},
            self.facts.hears_a_broker(),
        )
        match decision:
            case Write():
                return await self._write(snapshot, item, current, decision.state)
            case AlreadyDone():
                return IsrWriteResult(
                    accepted(item, decision.state), f"{snapshot.why}; read from ZooKeeper"
                )
            case Reject(ErrorCode.FENCED_LEADER_EPOCH):
                await self._take_role(snapshot, partition, current)
                return IsrWriteResult(rejected(item, decision.code), SOURCE)
            case _:
                # The change waits, also if it is refused here: the controller may have received it,
                # and may still accept it.
                return None

    async def _write(
        self,
        snapshot: _Snapshot,
        item: AlterPartitionItem,
        current: LeaderAndIsr,
        wanted: LeaderAndIsr,
    ) -> IsrWriteResult | None:
        partition = TopicPartition(item.topic, item.partition)
        state = self._with_elr(snapshot, partition, current, wanted)
        # The write belongs to the epoch that it is fenced by.
        state = replace(state, controller_epoch=snapshot.controller_epoch)
        write = SetData(
            znodes.state_path(partition), znodes.encode_state(state), current.partition_epoch
        )
        # Not repeated after a connection loss: the next round reads what has become of it.
        fence, result = await snapshot.store.session.multi([snapshot.fence, write])
        if isinstance(result, Stat):
            written = replace(state, partition_epoch=result.version)
            return IsrWriteResult(
                accepted(item, written), f"{snapshot.why}; written to ZooKeeper by the leader"
            )
        if isinstance(fence, BadVersion) or isinstance(result, BadVersion):
            self._report_conflict(partition, item, isinstance(fence, BadVersion))
        return None

    def _with_elr(
        self,
        snapshot: _Snapshot,
        partition: TopicPartition,
        current: LeaderAndIsr,
        wanted: LeaderAndIsr,
    ) -> LeaderAndIsr:
        if not self.facts.eligible_leader_replicas:
            return without_elr(wanted)
        replicas = snapshot.topics[partition.topic].partitions[partition.partition].replicas
        minimum = snapshot.minima.get(partition, NO_MINIMUM)
        return with_elr(current, wanted, replicas, minimum, snapshot.brokers)

    def _report_conflict(
        self, partition: TopicPartition, item: AlterPartitionItem, by_fence: bool
    ) -> None:
        """Record a conflict once, although its proposal is tried again until it is settled."""
        epochs = (item.leader_epoch, item.partition_epoch)
        if self._conflicts.get(partition) == epochs:
            return
        self._conflicts[partition] = epochs
        changed = "another controller was elected" if by_fence else "the state was changed"
        self.events.record(
            EventKind.ISR_CHANGE_REFUSED,
            f"BadVersion: {changed} meanwhile, and this leader may be deposed",
            partition,
            proposed=item.new_isr,
            asked_because=item.cause,
            leader_epoch=item.leader_epoch,
            partition_epoch=item.partition_epoch,
        )

    async def _take_role(
        self, snapshot: _Snapshot, partition: TopicPartition, state: LeaderAndIsr
    ) -> None:
        """Take the role if this broker still leads, under a later epoch that it has not received.

        The controller has removed a member from the ISR. The other members follow that epoch, and
        their fetches are refused until the leader has it too.
        """
        if state.leader != self.facts.broker_id:
            return
        topic = snapshot.topics[partition.topic]
        assignment = topic.partitions[partition.partition]
        controller = await snapshot.store.get(znodes.CONTROLLER)
        role = LeaderAndIsrPartition(
            partition.topic,
            partition.partition,
            topic.topic_id or "",
            state.controller_epoch,
            state.leader,
            state.leader_epoch,
            state.partition_epoch,
            list(state.isr),
            list(assignment.replicas),
            list(assignment.adding),
            list(assignment.removing),
            leader_recovery_state=state.recovery_state,
            cause=f"{snapshot.why}; its state was read from ZooKeeper",
        )
        await self.facts.take_role(
            LeaderAndIsrRequest(
                znodes.decode_controller(controller[0]) if controller is not None else -1,
                snapshot.controller_epoch,
                self.facts.broker_epoch(),
                [role],
            )
        )
