"""Brokers register, fail and restart: the controller follows `/brokers/ids`.

A broker that restarts before the controller reads the list again appears as the same id with a
higher epoch; it is treated as a broker that failed and registered again. A failure detector reports
a failed process before its session ends. The broker is then suspected until its session ends or it
registers again. Replicas on failed log directories are handled here too.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from barnabas_common.events import EventKind
from barnabas_common.messages.control import LeaderAndIsrRequest, LeaderAndIsrResponse

from barnabas_controller.brokers.answered_roles import FAILED, failed_and_found
from barnabas_controller.controller_term import ControllerTerm
from barnabas_controller.eligibility.absence import await_registration
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.partitions.partition_state_machine import PartitionStateMachine
from barnabas_controller.partitions.replica_state_machine import ReplicaStateMachine
from barnabas_controller.partitions.unconfirmed_states import UnconfirmedStates
from barnabas_controller.reassignment.reassignments import Reassignments
from barnabas_controller.state.context import Replica
from barnabas_controller.state.states import PartitionState, ReplicaState
from barnabas_controller.store.znodes import Broker, broker_path, decode_broker
from barnabas_controller.topics.topic_deletion_manager import TopicDeletionManager
from barnabas_controller.zookeeper.requests import in_chunks
from barnabas_controller.zookeeper.session import WatchEvent

SESSION_ENDED = "vanished: its ZooKeeper session ended without a controlled shutdown"
STILL_CONNECTED = (
    f"{SESSION_ENDED}, or its registration was deleted: its control stream is still open"
)
STOPPED = "stopped after a controlled shutdown"


class BrokerChanges:
    """Handles the events of `/brokers/ids`, suspicions, and the responses to LeaderAndIsr."""

    def __init__(
        self,
        term: ControllerTerm,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        deletion: TopicDeletionManager,
        reassignments: Reassignments,
        unconfirmed: UnconfirmedStates,
    ) -> None:
        self._term = term
        self._context = term.context
        self._partitions = partitions
        self._replicas = replicas
        self._deletion = deletion
        self._reassignments = reassignments
        self._unconfirmed = unconfirmed
        self._watch = term.watch("brokers changed", self._on_brokers_changed)
        self._watched: dict[int, None] = {}
        self._named_failures: set[int] = set()

    # Registrations

    async def read(self) -> dict[int, Broker]:
        """The registered brokers that can be connected to; watches their list and their data.

        A malformed registration is left out, unless its broker epoch is known already; then the
        last valid data stay in use.
        """
        ids = await self._term.store.broker_ids(self._watch)
        found = await in_chunks(self._read_broker, ids)
        return {broker.broker_id: broker for broker in found if broker is not None}

    def _watch_data(self, event: WatchEvent) -> None:
        self._watched.pop(int(event.path.rpartition("/")[2]), None)
        self._term.enqueue("a broker's data changed", self._on_brokers_changed)

    async def _read_broker(self, broker_id: int) -> Broker | None:
        store, path = self._term.store, broker_path(broker_id)
        found = await store.get(path, None if broker_id in self._watched else self._watch_data)
        if found is None:
            return None
        self._watched[broker_id] = None
        data, stat = found
        try:
            broker = decode_broker(broker_id, data, stat.czxid)
            listener = self._term.config.inter_broker_listener
            if broker.endpoint(listener) is None:
                raise MalformedZnode(path, f"it has no listener {listener} to connect to")
        except MalformedZnode as error:
            store.report(error)
            known = self._context.brokers.get(broker_id)
            return known if known is not None and known.epoch == stat.czxid else None
        return broker

    async def _on_brokers_changed(self) -> None:
        """`/brokers/ids` has other children, or the data of one changed."""
        present, known = await self.read(), dict(self._context.brokers)
        both = [(known[b], present[b]) for b in sorted(present.keys() & known.keys())]
        new = [present[b] for b in sorted(present.keys() - known.keys())]
        bounced = [now for before, now in both if now.epoch > before.epoch]
        unregistered = sorted(known.keys() - present.keys())
        connected = [b for b in unregistered if self._term.channels.is_connected(b)]
        for broker_id in [*(b.broker_id for b in bounced), *unregistered]:
            await self._term.channels.remove(broker_id)
        for broker in [*new, *bounced]:
            self._term.channels.add(broker)
        if new:
            self._record(EventKind.BROKER_REGISTERED, new, "it registered in ZooKeeper")
            await self._on_startup(new, "came up")
        if bounced:
            why = "it registered again before its failure was detected"
            self._record(EventKind.BROKER_RESTARTED, bounced, why)
            await self._on_failure([b.broker_id for b in bounced], "restarted")
            await self._on_startup(bounced, "restarted")
        stopped = [b for b in unregistered if b in self._context.shutting_down]
        deleted = [b for b in connected if b not in stopped]
        failed = [b for b in unregistered if b not in stopped and b not in deleted]
        await self._on_unregistered(stopped, STOPPED)
        await self._on_unregistered(failed, SESSION_ENDED)
        await self._on_unregistered(deleted, STILL_CONNECTED)
        await self._on_endpoints_changed(
            [now for before, now in both if now.epoch == before.epoch and now != before]
        )

    def _record(self, kind: EventKind, brokers: Sequence[Broker], why: str) -> None:
        for broker in brokers:
            self._term.events.record(kind, why, broker=broker.broker_id, broker_epoch=broker.epoch)

    async def _on_startup(self, brokers: list[Broker], what: str) -> None:
        context, broker_ids = self._context, [broker.broker_id for broker in brokers]
        cause = _cause(broker_ids, what)
        for broker in brokers:
            context.register(broker)
        unconfirmed = self._unconfirmed.find()
        others = [b for b in context.registered_brokers() if b not in broker_ids]
        self._term.update_metadata(others)
        self._term.send_all_metadata(broker_ids)
        self._unconfirmed.ask(unconfirmed)
        here = context.replicas_on(broker_ids)
        staying = [r for r in here if not context.is_being_deleted(r.partition.topic)]
        await self._replicas.change(staying, ReplicaState.ONLINE, cause)
        await self._partitions.elect_where_missing(cause)
        await self._reassignments.resume_on(broker_ids, cause)
        await self._deletion.resume_topics(dict.fromkeys(r.partition.topic for r in here))

    async def _on_unregistered(self, broker_ids: list[int], what: str) -> None:
        for broker_id in broker_ids:
            cause = _cause([broker_id], what)
            self._term.events.record(EventKind.BROKER_GONE, cause, broker=broker_id)
        if broker_ids:
            await self._on_failure(broker_ids, what)

    async def _on_failure(self, broker_ids: list[int], what: str) -> None:
        for broker_id in broker_ids:
            self._context.brokers.pop(broker_id, None)
            self._context.shutting_down.discard(broker_id)
            self._context.suspects.pop(broker_id, None)
            self._context.failed_replicas.pop(broker_id, None)
        self.await_registration(broker_ids)
        replicas = self._context.replicas_on(broker_ids)
        await self._on_replicas_offline(replicas, _cause(broker_ids, what))

    def await_registration(self, broker_ids: Iterable[int]) -> None:
        """Wait for these brokers to register; elect without them when the wait is over."""
        await_registration(self._term, broker_ids, self._on_given_up)

    async def _on_given_up(self, cause: str) -> None:
        await self._unconfirmed.elect_where_answered()
        await self._partitions.elect_where_missing(cause)

    async def _on_endpoints_changed(self, brokers: list[Broker]) -> None:
        for broker in brokers:
            self._context.brokers[broker.broker_id] = broker
            await self._term.channels.move(broker)
        if brokers:
            self._term.update_metadata(self._context.registered_brokers())

    # Suspicions

    def suspect(self, broker: Broker, why: str) -> None:
        """Enqueue a suspicion by the failure detector of this incarnation of a broker."""
        name = f"broker {broker.broker_id} is suspected"
        self._term.enqueue(name, partial(self._on_suspicion, broker, why))

    async def _on_suspicion(self, broker: Broker, why: str) -> None:
        """Do what the end of the broker's session would do, except for what a wrong suspicion could
        not undo: no replica outside the ISR is elected, and the broker continues to lead the
        partitions that no other replica can lead."""
        context, broker_id = self._context, broker.broker_id
        registered = context.brokers.get(broker_id)
        if registered is None or registered.epoch != broker.epoch:
            return  # its session has ended, or it has registered again
        if context.is_suspected(broker_id) or broker_id in context.shutting_down:
            return  # a broker that shuts down is offline already, and closes its listeners first
        context.suspects[broker_id] = broker.epoch
        self._record(EventKind.BROKER_SUSPECTED, [broker], why)
        cause = f"broker {broker_id} is suspected to be dead: {why}"
        await self._on_replicas_offline(context.replicas_on([broker_id]), cause)

    async def _on_replicas_offline(self, replicas: Sequence[Replica], cause: str) -> None:
        """Elect missing leaders, then remove the replicas from the ISRs that they are in."""
        context = self._context
        leaderless = context.partitions_with_offline_leader()
        self._partitions.change(leaderless, PartitionState.OFFLINE)
        await self._unconfirmed.remove_unknown_members()
        await self._partitions.elect_where_missing(cause)
        staying = [r for r in replicas if not context.is_being_deleted(r.partition.topic)]
        await self._replicas.change(staying, ReplicaState.OFFLINE, cause)
        deleting = [r for r in replicas if context.is_being_deleted(r.partition.topic)]
        gone = [r for r in deleting if not context.is_alive(r.broker_id)]
        if gone:
            await self._deletion.fail(gone, cause)
        # A replica that its broker cannot use may be deleted all the same.
        await self._deletion.resume_topics(
            dict.fromkeys(r.partition.topic for r in deleting if r not in gone)
        )
        if not staying:  # no UpdateMetadata has been sent yet
            self._term.update_metadata(context.registered_brokers())

    # Failed log directories

    def on_leader_and_isr_response(
        self, broker_id: int, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse
    ) -> None:
        """Enqueue the response if it may change which replicas have failed.

        That an earlier response names failures may still be in the queue.
        """
        if any(partition.error_code in FAILED for partition in response.partitions):
            self._named_failures.add(broker_id)
        if broker_id in self._named_failures:
            self._term.enqueue(
                f"LeaderAndIsr answered by broker {broker_id}",
                partial(self._on_leader_and_isr_answered, broker_id, request, response),
            )

    async def _on_leader_and_isr_answered(
        self, broker_id: int, request: LeaderAndIsrRequest, response: LeaderAndIsrResponse
    ) -> None:
        """Handle the replicas that have failed, and those that are available again."""
        lost, found = failed_and_found(self._context, broker_id, request, response)
        for code, replicas in lost.items():
            if replicas:
                await self._on_replicas_offline(replicas, FAILED[code].format(broker_id))
                await self._unconfirmed.elect_where_answered()
        if found:
            cause = f"replicas on broker {broker_id} are available again"
            await self._replicas.change(found, ReplicaState.ONLINE, cause)
            await self._partitions.elect_where_missing(cause)


def _cause(broker_ids: Sequence[int], what: str) -> str:
    noun = "broker" if len(broker_ids) == 1 else "brokers"
    return f"{noun} {', '.join(map(str, broker_ids))} {what}"
