"""More markers for one leader than a request of a client may have batches."""

import asyncio

import pytest
from barnabas import Admin
from barnabas_broker.log import record_validation
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.transactions import (
    TransactionPartition,
    WritableTxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas_common.runtime import Address, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import INTERNAL_PORT, SimulatedCluster

from tests.support.raw_transactions import RawTransaction, TransactionCoordinators, in_cluster

PARTITIONS = [TopicPartition("many", number) for number in range(12)]


def test_a_transaction_of_many_partitions_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a low limit: each of three brokers leads four partitions."""

    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("many", partitions=len(PARTITIONS), replication_factor=3)
        transaction = RawTransaction(coordinators)
        await transaction.init()
        await transaction.add(*PARTITIONS)
        monkeypatch.setattr(record_validation, "MOST_BATCHES", 3)
        assert await transaction.end(True) == ErrorCode.NONE
        async with asyncio.timeout(10.0):
            assert (await coordinators.settled("copy")).transaction_state == "CompleteCommit"

    in_cluster(story)


def test_a_leader_writes_all_markers_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_validation, "MOST_BATCHES", 3)

    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        state = cluster.broker(1).metadata_cache.partition("orders", 0)
        assert state is not None
        network = cluster.client_runtime("coordinator").network
        address = Address(f"broker-{state.leader}", INTERNAL_PORT)
        channel = network.connect(address, Service.REPLICA)
        partition = [TransactionPartition("orders", 0)]
        markers = [WritableTxnMarker(number, 0, True, partition, 0) for number in range(4)]
        answer: WriteTxnMarkersResponse = await channel.call(WriteTxnMarkersRequest(markers), 60.0)
        await channel.close()
        assert [one.partitions[0].error_code for one in answer.markers] == [ErrorCode.NONE] * 4

    in_cluster(story)
