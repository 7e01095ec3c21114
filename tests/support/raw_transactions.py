"""Transactional producers as raw requests, leaders that remember the markers they are sent, and the
cluster that both run in."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from barnabas import Admin
from barnabas_broker.api import router
from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.coordinator.transaction.admission import UNNAMED, Producer
from barnabas_common.errors import KafkaError, TransportError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.groups import TRANSACTION_KEY, FindCoordinatorRequest
from barnabas_common.messages.producer_ids import InitProducerIdRequest, InitProducerIdResponse
from barnabas_common.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
    DescribedTransaction,
    DescribeTransactionsRequest,
    EndTxnRequest,
    EndTxnResponse,
    TransactionPartition,
    TransactionPartitionResult,
    WritableTxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas_common.runtime import Message, Peer, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.raw_groups import Coordinators

PAUSE_SECONDS = 0.1
SETTINGS = {"transaction.state.log.num.partitions": "4"}
PARTITIONS = [TopicPartition("orders", number) for number in range(3)]
RETRIED = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


@dataclass(frozen=True)
class Marker:
    """One marker, as its leader was sent it."""

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int


@dataclass
class MarkerLeaders:
    """The leaders' side of WriteTxnMarkers: each remembers a marker if it leads the partition.

    `refuse(broker_id)` may return an error for all markers of a request.
    """

    markers: dict[TopicPartition, list[Marker]] = field(default_factory=dict)
    refuse: Callable[[int], ErrorCode] = lambda _: ErrorCode.NONE

    def install(self, monkeypatch) -> None:  # type: ignore[no-untyped-def]
        table = router.HANDLERS[Service.REPLICA]
        monkeypatch.setitem(table, WriteTxnMarkersRequest, self._handle)

    async def _handle(
        self, parts: BrokerParts, request: WriteTxnMarkersRequest, _peer: Peer
    ) -> WriteTxnMarkersResponse:
        refusal = self.refuse(parts.broker_id)
        results = []
        for item in request.markers:
            marker = Marker(
                item.producer_id,
                item.producer_epoch,
                item.transaction_result,
                item.coordinator_epoch,
            )
            outcomes = []
            for asked in item.partitions:
                key = TopicPartition(asked.topic, asked.partition)
                error = refusal or self._write(parts, key, marker)
                outcomes.append(TransactionPartitionResult(*key, error))
            results.append(WritableTxnMarkerResult(item.producer_id, outcomes))
        return WriteTxnMarkersResponse(results)

    def _write(self, parts: BrokerParts, key: TopicPartition, marker: Marker) -> ErrorCode:
        try:
            parts.replica_manager.partitions.hosted(key).lead()
        except KafkaError as error:
            return error.code
        self.markers.setdefault(key, []).append(marker)
        return ErrorCode.NONE

    def outcomes(self, key: TopicPartition) -> set[tuple[int, int, bool]]:
        """Producer id, epoch and outcome of each marker; repeated ones count once."""
        found = self.markers.get(key, [])
        return {(item.producer_id, item.producer_epoch, item.commit) for item in found}


class TransactionCoordinators(Coordinators):
    """Sends transactional requests to whoever coordinates the transactional id."""

    async def find_transaction(self, transactional_id: str) -> int:
        while True:
            for broker_id in self._broker_ids():
                request = FindCoordinatorRequest(TRANSACTION_KEY, [transactional_id])
                try:
                    found = (await self.ask(broker_id, request)).coordinators[0].node_id
                except TransportError:
                    continue
                if found >= 0:
                    return found  # type: ignore[no-any-return]
            await asyncio.sleep(PAUSE_SECONDS)

    async def send(self, transactional_id: str, request: Message) -> Message:
        """Send a request once, wherever the coordinator is; raises TransportError."""
        return await self.ask(await self.find_transaction(transactional_id), request)

    async def describe_transaction(self, transactional_id: str) -> DescribedTransaction:
        """The transactional id, asked of its coordinator until it has loaded it."""
        request = DescribeTransactionsRequest([transactional_id])
        while True:
            try:
                (found,) = (await self.send(transactional_id, request)).transaction_states
            except TransportError:
                continue
            if found.error_code not in RETRIED:
                return found  # type: ignore[no-any-return]
            await asyncio.sleep(PAUSE_SECONDS)

    async def settled(self, transactional_id: str) -> DescribedTransaction:
        """The transactional id once no markers are missing."""
        while True:
            found = await self.describe_transaction(transactional_id)
            if not found.transaction_state.startswith("Prepare"):
                return found
            await asyncio.sleep(PAUSE_SECONDS)


@dataclass
class RawTransaction:
    """One transactional producer. With `version` 2 it takes over what EndTxn answers."""

    coordinators: TransactionCoordinators
    name: str = "copy"
    version: int = 0
    timeout_ms: int = 60_000
    producer: Producer = UNNAMED

    async def try_init(self, producer: Producer = UNNAMED) -> InitProducerIdResponse:
        request = InitProducerIdRequest(self.name, self.timeout_ms, *producer)
        response: InitProducerIdResponse = await self.coordinators.send(self.name, request)
        if not response.error_code:
            self.producer = Producer(response.producer_id, response.producer_epoch)
        return response

    async def init(self) -> Producer:
        """Initialize, as often as it takes."""
        while (await self.try_init()).error_code:
            await asyncio.sleep(PAUSE_SECONDS)
        return self.producer

    async def try_add(self, *partitions: TopicPartition, verify: bool = False) -> list[ErrorCode]:
        asked = AddPartitionsToTxnTransaction(
            self.name,
            *self.producer,
            verify,
            [TransactionPartition(*key) for key in partitions],
            self.version,
        )
        response = await self.coordinators.send(self.name, AddPartitionsToTxnRequest([asked]))
        return [ErrorCode(item.error_code) for item in response.results[0].partitions]

    async def add(self, *partitions: TopicPartition) -> None:
        """Add partitions, as often as it takes; fails for an error that no retry helps."""
        while any(errors := await self.try_add(*partitions)):
            assert all(error in RETRIED for error in errors), errors
            await asyncio.sleep(PAUSE_SECONDS)

    async def try_end(self, commit: bool) -> EndTxnResponse:
        request = EndTxnRequest(self.name, *self.producer, commit, self.version)
        response: EndTxnResponse = await self.coordinators.send(self.name, request)
        if not response.error_code and self.version >= 2:
            self.producer = Producer(response.producer_id, response.producer_epoch)
        return response

    async def end(self, commit: bool) -> ErrorCode:
        """End the transaction, as often as it takes, also after requests without an answer."""
        while True:
            try:
                error = ErrorCode((await self.try_end(commit)).error_code)
            except TransportError:
                continue
            if error not in RETRIED:
                return error
            await asyncio.sleep(PAUSE_SECONDS)


def same_everywhere(
    leaders: MarkerLeaders, partitions: Iterable[TopicPartition]
) -> set[tuple[int, int, bool]]:
    """The markers of the partitions, which must all have the same."""
    found = [leaders.outcomes(key) for key in partitions]
    assert all(item == found[0] for item in found), found
    return found[0]


Story = Callable[[SimulatedCluster, TransactionCoordinators], Awaitable[None]]


def in_cluster(story: Story, max_time: float = 900.0, **config: str) -> None:
    """Run a story in a cluster that has the topic `orders`, led by all brokers."""

    async def scenario() -> None:
        changed = {name.replace("_", "."): value for name, value in config.items()}
        cluster = SimulatedCluster(1, config={**SETTINGS, **changed})
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("orders", partitions=3, replication_factor=3)
        coordinators = TransactionCoordinators(cluster)
        await story(cluster, coordinators)
        await coordinators.close()

    run(scenario(), seed=1, max_time=max_time)
