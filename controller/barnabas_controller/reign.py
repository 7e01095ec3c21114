"""What all parts of an elected controller share, from its election to its end.

A reign is made when the election is won and dropped whole when it is lost: no part of it is cleared
or used again.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from barnabas.events import EventLog
from barnabas.runtime import Runtime
from barnabas.topic_partition import TopicPartition

from barnabas_controller.broker_channels import BrokerChannels
from barnabas_controller.config import ControllerConfig
from barnabas_controller.context import ControllerContext
from barnabas_controller.fenced_store import FencedStore
from barnabas_controller.request_batch import RequestBatch, Sender

# Puts an event on the controller's queue; it is dropped if the reign ends before its turn.
Enqueue = Callable[[str, Callable[[], Awaitable[None]]], None]


@dataclass(frozen=True)
class Reign:
    """One election's tools; `enqueue(name, handler)` is how watches and answers get their turn."""

    broker_id: int
    runtime: Runtime
    settings: Callable[[], ControllerConfig]
    context: ControllerContext
    store: FencedStore
    channels: BrokerChannels
    enqueue: Enqueue
    events: EventLog
    # Awaited when a partition's state, which could not be trusted, is known again.
    on_mended: Callable[[TopicPartition], Awaitable[None]]

    @property
    def config(self) -> ControllerConfig:
        """The settings in force now: they may change during the reign."""
        return self.settings()

    def batch(self) -> RequestBatch:
        """An empty batch of requests, to be given to `send`."""
        epoch = self.store.epoch.number
        sender = Sender(self.broker_id, epoch, self.config.inter_broker_listener)
        return RequestBatch(self.context, sender)

    def send(self, batch: RequestBatch) -> None:
        """Queue everything collected."""
        for broker, request in batch.requests():
            self.channels.send(broker.broker_id, request)

    def update_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition] = ()
    ) -> None:
        """Tell these brokers who is alive, and who leads these partitions."""
        batch = self.batch()
        batch.update_metadata(broker_ids, partitions)
        self.send(batch)
