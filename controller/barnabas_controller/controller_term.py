"""What all parts of the active controller share during one controller term.

A term lasts from the election of a controller to its resignation. It is created as a whole and
dropped as a whole: no part of it is cleared or used again.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from barnabas_common.events import EventLog
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from barnabas_controller.channels.controller_channel_manager import ControllerChannelManager
from barnabas_controller.channels.request_batch import RequestBatch
from barnabas_controller.config import ControllerConfig
from barnabas_controller.state.context import ControllerContext
from barnabas_controller.store.fenced_store import FencedStore
from barnabas_controller.store.store import Store, WrittenState
from barnabas_controller.zookeeper.session import Watch

# Puts an event on the controller's queue; it is dropped if the term ends before its turn.
Enqueue = Callable[[str, Callable[[], Awaitable[None]]], None]


@dataclass(frozen=True)
class ControllerTerm:
    """One controller term. Watches and responses pass their work to `enqueue(name, handler)`."""

    broker_id: int
    runtime: Runtime
    settings: Callable[[], ControllerConfig]
    context: ControllerContext
    fenced: FencedStore
    channels: ControllerChannelManager
    enqueue: Enqueue
    events: EventLog
    # Awaited with the states, and the cause, when their znodes or those of their topics were
    # invalid and have been repaired.
    on_repaired: Callable[[Mapping[TopicPartition, WrittenState], str], Awaitable[None]]
    # Called with partitions whose elections wait until their replicas have said what they hold.
    ask_replicas: Callable[[list[TopicPartition]], None]

    @property
    def store(self) -> Store:
        """Reads, and the writes that any broker may make. The controller's writes use `fenced`."""
        return self.fenced.store

    @property
    def config(self) -> ControllerConfig:
        """The present settings, which may change during the term."""
        return self.settings()

    def watch(self, name: str, handle: Callable[[], Awaitable[None]]) -> Watch:
        """A watch that enqueues an event.

        Create it once and pass the same object to every read: a session arms equal watches once.
        """
        return lambda _: self.enqueue(name, handle)

    def batch(self) -> RequestBatch:
        """An empty batch of requests, to be filled and passed to `send`."""
        epoch = self.fenced.epoch.number
        return RequestBatch(self.context, self.broker_id, epoch, self.config.inter_broker_listener)

    def send(self, batch: RequestBatch) -> None:
        """Queue all requests of a batch."""
        for broker, request in batch.requests():
            self.channels.send(broker.broker_id, request)

    def update_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition] = ()
    ) -> None:
        """Send these brokers which brokers are alive, and who leads these partitions."""
        batch = self.batch()
        batch.update_metadata(broker_ids, partitions)
        self.send(batch)

    def send_all_metadata(self, broker_ids: Iterable[int]) -> None:
        """Send these brokers which brokers are alive, which topics exist, and who leads."""
        batch = self.batch()
        batch.all_metadata(broker_ids)
        self.send(batch)
