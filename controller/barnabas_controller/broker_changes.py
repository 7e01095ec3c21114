"""Brokers come, die and come back: the controller follows `/brokers/ids`.

A broker that restarts faster than anyone looks shows up as the same id with a higher epoch; it is
treated as one that died and came back. Evidence of a death comes before the session's end: the
broker is then a suspect, until its session ends or it registers anew. Disks that fail while their
broker lives end here too.
"""

import logging
from collections.abc import Sequence

from barnabas.error_code import ErrorCode
from barnabas.events import EventKind
from barnabas.messages.control import LeaderAndIsrResponse
from barnabas.topic_partition import TopicPartition

from barnabas_controller.context import Replica
from barnabas_controller.errors import MalformedZnode
from barnabas_controller.gathering import in_chunks
from barnabas_controller.partition_states import PartitionStateMachine
from barnabas_controller.reassignments import Reassignments
from barnabas_controller.reign import Reign
from barnabas_controller.replica_states import ReplicaStateMachine
from barnabas_controller.states import PartitionState, ReplicaState
from barnabas_controller.topic_deletion import TopicDeletion
from barnabas_controller.znodes import Broker, broker_path, decode_broker
from barnabas_controller.zookeeper.session import WatchEvent

logger = logging.getLogger(__name__)

SESSION_ENDED = "its ZooKeeper session ended without a controlled shutdown"
AFTER_SHUTDOWN = "it had asked for a controlled shutdown"


class BrokerChanges:
    """Handles the events of `/brokers/ids`, and brokers' answers to LeaderAndIsr."""

    def __init__(
        self,
        reign: Reign,
        partitions: PartitionStateMachine,
        replicas: ReplicaStateMachine,
        deletion: TopicDeletion,
        reassignments: Reassignments,
    ) -> None:
        self._reign = reign
        self._context = reign.context
        self._partitions = partitions
        self._replicas = replicas
        self._deletion = deletion
        self._reassignments = reassignments
        self._watched: dict[int, None] = {}

    def watch(self, _: WatchEvent) -> None:
        self._reign.enqueue("brokers changed", self.on_brokers_changed)

    async def read(self) -> dict[int, Broker]:
        """The registered brokers that can be talked to; watches their list and each one's data.

        A registration that cannot be understood is left out, unless it is of a life that is known:
        then the last good data stay.
        """
        ids = await self._reign.store.store.broker_ids(self.watch)
        found = await in_chunks(self._read_broker, ids)
        return {broker.broker_id: broker for broker in found if broker is not None}

    async def _read_broker(self, broker_id: int) -> Broker | None:
        store, path = self._reign.store.store, broker_path(broker_id)
        found = await store.get(path, None if broker_id in self._watched else self._watch_data)
        if found is None:
            return None
        self._watched[broker_id] = None
        data, stat = found
        try:
            broker = decode_broker(broker_id, data, stat.czxid)
            listener = self._reign.config.inter_broker_listener
            if broker.endpoint(listener) is None:
                raise MalformedZnode(path, f"it has no listener {listener}, nobody can talk to it")
        except MalformedZnode as error:
            store.report(error)
            known = self._context.brokers.get(broker_id)
            return known if known is not None and known.epoch == stat.czxid else None
        return broker

    def _watch_data(self, event: WatchEvent) -> None:
        self._watched.pop(int(event.path.rpartition("/")[2]), None)
        self._reign.enqueue("a broker's data changed", self.on_brokers_changed)

    async def _on_data_changed(self, brokers: list[Broker]) -> None:
        """They are reached elsewhere; who lives and who leads is as before."""
        for broker in brokers:
            logger.info("broker %d has other endpoints: %s", broker.broker_id, broker.endpoints)
            self._context.brokers[broker.broker_id] = broker
            await self._reign.channels.remove(broker.broker_id)
            self._reign.channels.add(broker)
        if brokers:
            self._reign.update_metadata(self._context.registered_brokers())

    async def on_brokers_changed(self) -> None:
        """`/brokers/ids` has other children, or the data of one changed."""
        present = await self.read()
        known = dict(self._context.brokers)
        new = [present[b] for b in sorted(present.keys() - known.keys())]
        bounced = [
            present[b]
            for b in sorted(present.keys() & known.keys())
            if present[b].epoch > known[b].epoch
        ]
        dead = sorted(known.keys() - present.keys())
        await self._update_channels(new, bounced, dead)
        if new:
            self._context.brokers.update({b.broker_id: b for b in new})
            self._report(EventKind.BROKER_REGISTERED, new)
            await self._on_startup([b.broker_id for b in new], "came up")
        if bounced:
            ids = [b.broker_id for b in bounced]
            self._report(EventKind.BROKER_RESTARTED, bounced)
            await self._on_failure(ids, "restarted")
            self._context.brokers.update({b.broker_id: b for b in bounced})
            await self._on_startup(ids, "restarted")
        await self._on_gone(dead)
        moved = [
            present[b]
            for b in sorted(present.keys() & known.keys())
            if present[b].epoch == known[b].epoch and present[b] != known[b]
        ]
        await self._on_data_changed(moved)

    async def on_evidence(self, suspect: Broker, evidence: str) -> None:
        """This life of a broker seems to be over, though its session is not.

        What follows is what its session's end would bring, less what could not be undone if the
        evidence is wrong: nobody is elected from outside the ISR, and what it leads with nobody to
        take over it goes on leading.
        """
        context, broker_id = self._context, suspect.broker_id
        registered = context.brokers.get(broker_id)
        if registered is None or registered.epoch != suspect.epoch:
            return  # its session has ended, or it has registered anew, meanwhile
        if context.is_suspected(broker_id) or broker_id in context.shutting_down:
            return  # who asked to stop is offline already, and closes its listeners first
        context.suspects[broker_id] = suspect.epoch
        cause = f"broker {broker_id} is suspected to be dead: {evidence}"
        logger.warning("%s", cause)
        self._reign.events.record(
            EventKind.BROKER_SUSPECTED, evidence, broker=broker_id, broker_epoch=suspect.epoch
        )
        await self._on_replicas_offline(context.replicas_on([broker_id]), cause)

    async def _on_gone(self, broker_ids: list[int]) -> None:
        """Their registrations are gone.

        Whoever had asked to stop has stopped; of the others nobody knows whether they died or
        only sleep."""
        events = self._reign.events
        stopped = [b for b in broker_ids if b in self._context.shutting_down]
        lost = [b for b in broker_ids if b not in stopped]
        for ids, what, why in (
            (stopped, "stopped", AFTER_SHUTDOWN),
            (lost, "vanished", SESSION_ENDED),
        ):
            for broker_id in ids:
                cause = f"broker {broker_id} {what}: {why}"
                events.record(EventKind.BROKER_GONE, cause, broker=broker_id)
            if ids:
                await self._on_failure(ids, f"{what}: {why}")

    def _report(self, kind: EventKind, brokers: Sequence[Broker]) -> None:
        what = {
            EventKind.BROKER_REGISTERED: "it registered in ZooKeeper",
            EventKind.BROKER_RESTARTED: "it registered anew before its loss was seen",
        }[kind]
        for broker in brokers:
            self._reign.events.record(
                kind, what, broker=broker.broker_id, broker_epoch=broker.epoch
            )

    async def _update_channels(
        self, new: list[Broker], bounced: list[Broker], dead: list[int]
    ) -> None:
        for broker_id in [*(b.broker_id for b in bounced), *dead]:
            await self._reign.channels.remove(broker_id)
        for broker in [*new, *bounced]:
            self._reign.channels.add(broker)

    async def _on_startup(self, broker_ids: list[int], what: str) -> None:
        cause = _cause(broker_ids, what)
        logger.info("%s", cause)
        context = self._context
        for broker_id in broker_ids:
            context.failed_replicas.pop(broker_id, None)
        others = [b for b in context.registered_brokers() if b not in broker_ids]
        self._reign.update_metadata(others)
        self._reign.update_metadata(broker_ids, context.partitions_with_leaders())
        here = context.replicas_on(broker_ids)
        staying = [r for r in here if not context.is_being_deleted(r.partition.topic)]
        await self._replicas.change(staying, ReplicaState.ONLINE, cause)
        await self._partitions.elect_where_missing(cause)
        await self._reassignments.resume_on(broker_ids, cause)
        await self._deletion.resume_topics(dict.fromkeys(r.partition.topic for r in here))

    async def _on_failure(self, broker_ids: list[int], what: str) -> None:
        cause = _cause(broker_ids, what)
        logger.warning("%s", cause)
        for broker_id in broker_ids:
            self._context.brokers.pop(broker_id, None)
            self._context.shutting_down.discard(broker_id)
            self._context.suspects.pop(broker_id, None)
            self._context.failed_replicas.pop(broker_id, None)
        await self._on_replicas_offline(self._context.replicas_on(broker_ids), cause)

    async def _on_replicas_offline(self, replicas: Sequence[Replica], cause: str) -> None:
        """Elect where a leader is missing, then take the replicas out of the ISRs they are in."""
        context = self._context
        leaderless = context.partitions_with_offline_leader()
        self._partitions.change(leaderless, PartitionState.OFFLINE)
        await self._partitions.elect_where_missing(cause)
        staying = [r for r in replicas if not context.is_being_deleted(r.partition.topic)]
        await self._replicas.change(staying, ReplicaState.OFFLINE, cause)
        deleting = [r for r in replicas if context.is_being_deleted(r.partition.topic)]
        if deleting:
            await self._deletion.fail(deleting, cause)
        if not staying:  # then nobody has heard that the brokers are gone
            self._reign.update_metadata(context.registered_brokers())

    async def on_leader_and_isr_answered(
        self, broker_id: int, response: LeaderAndIsrResponse
    ) -> None:
        """KAFKA_STORAGE_ERROR: the replica's disk failed. NONE: it works, again perhaps."""
        failed = self._context.failed_replicas.setdefault(broker_id, {})
        lost, found = [], []
        for answer in response.partitions:
            partition = TopicPartition(answer.topic, answer.partition)
            if answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR and partition not in failed:
                lost.append(Replica(partition, broker_id))
                failed[partition] = None
            elif answer.error_code == ErrorCode.NONE and partition in failed:
                found.append(Replica(partition, broker_id))
                del failed[partition]
        if lost:
            cause = f"a log directory of broker {broker_id} failed"
            logger.error("%s: offline are %s", cause, ", ".join(str(r.partition) for r in lost))
            await self._on_replicas_offline(lost, cause)
        if found:
            cause = f"replicas on broker {broker_id} work again"
            await self._replicas.change(found, ReplicaState.ONLINE, cause)
            await self._partitions.elect_where_missing(cause)


def _cause(broker_ids: Sequence[int], what: str) -> str:
    noun = "broker" if len(broker_ids) == 1 else "brokers"
    return f"{noun} {', '.join(map(str, broker_ids))} {what}"
