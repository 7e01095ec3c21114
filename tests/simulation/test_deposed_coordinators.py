"""A transaction coordinator that loses ZooKeeper, is deposed, and never knows."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from barnabas import Producer
from barnabas_broker.api import router
from barnabas_broker.api.parts import BrokerParts
from barnabas_broker.coordinator.key_partition import partition_of_key
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
    DescribeTransactionsRequest,
    TransactionPartition,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas_common.runtime import Peer, Service
from barnabas_common.topic_name import TRANSACTION_STATE_TOPIC
from barnabas_simulator.cluster import SimulatedCluster

from tests.support.raw_transactions import (
    PARTITIONS,
    MarkerLeaders,
    RawTransaction,
    TransactionCoordinators,
    in_cluster,
    same_everywhere,
)
from tests.support.transactional_data import read

E = ErrorCode
STATE = partition_of_key("copy", 4)


class LateMarkers:
    """The markers of the first coordinator arrive only after `arrive` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.arrive = asyncio.Event()
        self.epoch = -1
        self._handle: Callable[..., Awaitable[WriteTxnMarkersResponse]]
        table = router.HANDLERS[Service.REPLICA]
        self._handle = table[WriteTxnMarkersRequest]
        monkeypatch.setitem(table, WriteTxnMarkersRequest, self._late)

    async def _late(
        self, parts: BrokerParts, request: WriteTxnMarkersRequest, peer: Peer
    ) -> WriteTxnMarkersResponse:
        if any(marker.coordinator_epoch == self.epoch for marker in request.markers):
            await self.arrive.wait()
        return await self._handle(parts, request, peer)


class Deposed:
    """A producer that has committed once, and a broker that coordinated it until then."""

    def __init__(self, cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        self.cluster = cluster
        self.coordinators = coordinators
        self.broker_id = -1

    async def depose(self, producer: Producer, late: LateMarkers) -> None:
        """The coordinator decides; before its markers arrive it is deposed, and the next one
        completes the transaction."""
        await producer.init_transactions()
        self.broker_id = before = await self.coordinators.find_transaction("copy")
        late.epoch = self._leader_epoch(before)
        async with producer.transaction():
            await producer.send("orders", b"first", partition=0)
        self.cluster.part_from_zookeeper(before)
        others = [broker for broker in self.cluster.broker_ids if broker != before]
        while not await self._completed_by_one_of(others):
            await asyncio.sleep(0.1)

    def _leader_epoch(self, broker_id: int) -> int:
        state = self.cluster.broker(broker_id).metadata_cache.partition(
            TRANSACTION_STATE_TOPIC, STATE
        )
        assert state is not None and state.leader == broker_id
        return state.leader_epoch

    async def _completed_by_one_of(self, broker_ids: list[int]) -> bool:
        request = DescribeTransactionsRequest(["copy"])
        for broker_id in broker_ids:
            (found,) = (await self.coordinators.ask(broker_id, request)).transaction_states
            if found.transaction_state == "CompleteCommit":
                return True
        return False

    async def add(self) -> ErrorCode:
        """What the deposed broker answers to the next transaction."""
        (known,) = [
            transaction.metadata
            for transaction in self.cluster.broker(self.broker_id).transactions._transactions.all()
        ]
        asked = AddPartitionsToTxnTransaction(
            "copy",
            known.producer_id,
            known.producer_epoch,
            partitions=[TransactionPartition("orders", 1)],
            transaction_version=2,
        )
        request = AddPartitionsToTxnRequest([asked])
        response = await self.coordinators.ask(self.broker_id, request)
        return ErrorCode(response.results[0].partitions[0].error_code)

    def refused(self) -> int:
        kinds = [event.kind for event in self.cluster.events()]
        return kinds.count(EventKind.TRANSACTION_MARKERS_REFUSED)


def producer_of(cluster: SimulatedCluster) -> Producer:
    runtime = cluster.client_runtime("copy")
    return Producer(cluster.bootstrap, runtime=runtime, transactional_id="copy")


def test_a_coordinator_whose_markers_are_refused_sends_its_clients_to_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        late, deposed = LateMarkers(monkeypatch), Deposed(cluster, coordinators)
        async with producer_of(cluster) as producer:
            await deposed.depose(producer, late)
            assert await deposed.add() is E.CONCURRENT_TRANSACTIONS, "it cannot know yet"
            late.arrive.set()
            while not deposed.refused():
                await asyncio.sleep(0.1)
            assert await deposed.add() is E.NOT_COORDINATOR
            async with asyncio.timeout(2.0), producer.transaction():
                await producer.send("orders", b"second", partition=1)
        assert await read(cluster, PARTITIONS) == [b"first", b"second"]

    in_cluster(story, max_time=300.0)


def test_a_producer_leaves_a_coordinator_that_puts_it_off_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its markers never arrive, so nothing tells it that it is deposed."""

    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        late, deposed = LateMarkers(monkeypatch), Deposed(cluster, coordinators)
        async with producer_of(cluster) as producer:
            await deposed.depose(producer, late)
            async with asyncio.timeout(8.0), producer.transaction():
                await producer.send("orders", b"second", partition=1)
            assert not deposed.refused()
        assert await read(cluster, PARTITIONS) == [b"first", b"second"]

    in_cluster(story, max_time=300.0)


def test_a_coordinator_under_the_next_epoch_takes_up_what_was_refused(
    leaders: MarkerLeaders,
) -> None:
    """The death of a follower raises the leader epoch; the coordinator stays."""

    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        leaders.refuse = lambda _: E.TRANSACTION_COORDINATOR_FENCED
        one = RawTransaction(coordinators)
        producer = await one.init()
        await one.add(*PARTITIONS)
        assert await one.end(True) is E.NONE
        while await one.try_add(*PARTITIONS) != [E.NOT_COORDINATOR] * 3:
            await asyncio.sleep(0.1)
        leaders.refuse = lambda _: E.NONE
        before = await coordinators.find_transaction("copy")
        cluster.kill(next(broker for broker in cluster.broker_ids if broker != before))
        found = await coordinators.settled("copy")
        assert found.transaction_state == "CompleteCommit"
        assert same_everywhere(leaders, PARTITIONS) == {(*producer, True)}
        assert await coordinators.find_transaction("copy") == before

    in_cluster(story, max_time=300.0)
