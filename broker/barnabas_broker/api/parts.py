"""The parts of a broker that request handlers work with."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from barnabas_common.events import EventLog
from barnabas_common.runtime import Runtime
from barnabas_controller.controller import Controller
from barnabas_controller.store.store import Store

from barnabas_broker.config import DynamicConfig
from barnabas_broker.coordinator.group.coordinator import GroupCoordinator
from barnabas_broker.coordinator.producer_ids import ProducerIdManager
from barnabas_broker.replica.metadata_cache import MetadataCache
from barnabas_broker.replica.replica_manager import ReplicaManager


@dataclass(frozen=True)
class BrokerParts:
    """Passed to every handler.

    `controller` and `store` are functions because both belong to a ZooKeeper session and are
    replaced with it; they return None while there is no session. `registered` is set once the
    broker has its first broker epoch. `reregister` gives up a broker epoch whose broker the
    controller suspects, and registers again.
    """

    broker_id: int
    config: DynamicConfig
    runtime: Runtime
    metadata_cache: MetadataCache
    replica_manager: ReplicaManager
    groups: GroupCoordinator
    producer_ids: ProducerIdManager
    controller: Callable[[], Controller | None]
    store: Callable[[], Store | None]
    cluster_id: str
    registered: asyncio.Event
    events: EventLog
    reregister: Callable[[int, str], None]
