"""A disk failed and its broker lives on: the controller asks which replicas are gone.

A broker that loses one of several log directories leaves a note under
`/log_dir_event_notification`. The controller tells it all its roles once more; the replicas that
are gone are those it answers with KAFKA_STORAGE_ERROR, which `BrokerChanges` deals with. The same
note is left by a broker that can open replicas again which it could not open before.
"""

import logging

from barnabas_controller import znodes
from barnabas_controller.reign import Reign
from barnabas_controller.replica_states import ReplicaStateMachine
from barnabas_controller.states import ReplicaState
from barnabas_controller.zookeeper.session import WatchEvent

logger = logging.getLogger(__name__)

TOLD = (ReplicaState.ONLINE, ReplicaState.OFFLINE)


class DiskFailures:
    """Handles the notes of one reign."""

    def __init__(self, reign: Reign, replicas: ReplicaStateMachine) -> None:
        self._reign = reign
        self._context = reign.context
        self._replicas = replicas

    async def start(self) -> None:
        """Throw old notes away: after failover every broker is told its roles anyway."""
        await self._reign.store.store.children(znodes.LOG_DIR_EVENTS, self._watch)
        await self._reign.store.delete_children(znodes.LOG_DIR_EVENTS)

    def _watch(self, _: WatchEvent) -> None:
        self._reign.enqueue("log directory events", self.on_events)

    async def on_events(self) -> None:
        """There are other notes; taking them away brings us here once more, to find none."""
        noted = await self._reign.store.store.log_dir_events(self._watch)
        brokers = [b for b in dict.fromkeys(noted.values()) if b in self._context.brokers]
        if brokers:
            logger.warning("brokers %s ask for their roles: a disk may have failed", brokers)
            replicas = [
                replica
                for replica in self._context.replicas_on(brokers)
                if self._context.replica_state(replica) in TOLD
                and not self._context.is_being_deleted(replica.partition.topic)
            ]
            cause = f"brokers {brokers} say that a log directory failed"
            await self._replicas.change(replicas, ReplicaState.ONLINE, cause)
        for name in noted:
            await self._reign.store.delete_tree(f"{znodes.LOG_DIR_EVENTS}/{name}")
