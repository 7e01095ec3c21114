"""Transactions of two phases (KIP-939): prepared by one client, ended by another, whatever dies."""

import asyncio
from typing import Any

import pytest
from barnabas import Admin, PreparedTransaction, Producer
from barnabas_common.errors import (
    ClientError,
    DeliveryTimeoutError,
    InvalidArgumentError,
    InvalidTxnStateError,
    KafkaError,
    ProducerFencedError,
)
from barnabas_simulator.cluster import SimulatedCluster

from tests.support.raw_transactions import PARTITIONS, TransactionCoordinators, in_cluster
from tests.support.transactional_data import read

VALUES = [b"0", b"1", b"2"]


def producer_of(cluster: SimulatedCluster, name: str = "p", **options: Any) -> Producer:
    options = {"transactional_id": "copy", "enable_two_phase_commit": True} | options
    return Producer(cluster.bootstrap, runtime=cluster.client_runtime(name), **options)


async def prepare(cluster: SimulatedCluster, name: str = "p") -> PreparedTransaction:
    """A record in each partition, prepared by a producer that is closed then."""
    async with producer_of(cluster, name) as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        for key in PARTITIONS:
            await producer.send("orders", b"%d" % key.partition, partition=key.partition)
        prepared = await producer.prepare_transaction()
    assert prepared is not None and prepared == producer.prepared_transaction
    return prepared


@pytest.mark.lengthy
@pytest.mark.parametrize("commit", [True, False])
def test_it_outlasts_every_timeout_and_a_coordinator_and_is_ended_from_elsewhere(
    commit: bool,
) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            prepared = await prepare(cluster)
            await asyncio.sleep(1000.0)  # longer than transaction.max.timeout.ms
            cluster.kill(await coordinators.find_transaction("copy"))
            await asyncio.sleep(100.0)
            assert (await coordinators.settled("copy")).transaction_state == "Ongoing"
            assert await read(cluster, PARTITIONS) == []
            await admin.complete_transaction(prepared, commit=commit)
            await coordinators.settled("copy")
            await admin.complete_transaction(tuple(prepared), commit=commit)  # repeated
            assert await read(cluster, PARTITIONS) == (VALUES if commit else [])
            with pytest.raises(InvalidTxnStateError):
                await admin.complete_transaction(prepared, commit=not commit)

    in_cluster(story, max_time=4000.0)


def test_the_next_producer_aborts_it_and_its_end_is_refused() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        first = await prepare(cluster)
        second = await prepare(cluster, "q")
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            with pytest.raises(ProducerFencedError):
                await admin.complete_transaction(first, commit=True)
            await admin.complete_transaction(second, commit=True)
        await coordinators.settled("copy")
        assert await read(cluster, PARTITIONS) == VALUES

    in_cluster(story)


@pytest.mark.parametrize("commit", [True, False])
def test_a_producer_that_asks_for_it_takes_it_over(commit: bool) -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        prepared = await prepare(cluster)
        async with producer_of(cluster, "heir") as heir:
            await heir.init_transactions(keep_prepared=True)
            assert heir.prepared_transaction == prepared
            with pytest.raises(ClientError, match="has prepared its transaction"):
                await heir.begin_transaction()
            await (heir.commit_transaction() if commit else heir.abort_transaction())
            assert heir.prepared_transaction is None
            async with heir.transaction():
                await heir.send("orders", b"next", partition=0)
        await coordinators.settled("copy")
        before = VALUES if commit else []
        assert sorted(await read(cluster, PARTITIONS)) == sorted([*before, b"next"])

    in_cluster(story)


def test_a_producer_whose_transactions_time_out_does_not_take_it_over() -> None:
    """It would take over that no timeout ends its transactions, too."""

    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        await prepare(cluster)
        options = {"enable_two_phase_commit": False, "transaction_timeout_ms": 10_000}
        heir = producer_of(cluster, "heir", **options)
        with pytest.raises(ClientError, match="needs enable_two_phase_commit=True"):
            await heir.init_transactions(keep_prepared=True)
        assert (await coordinators.settled("copy")).transaction_state == "Ongoing"
        await heir.init_transactions()
        await heir.begin_transaction()
        await heir.send_and_wait("orders", b"late", partition=0)
        await asyncio.sleep(30.0)
        assert (await coordinators.settled("copy")).transaction_state == "CompleteAbort"
        with pytest.raises(ProducerFencedError):
            await heir.commit_transaction()
        await heir.close()

    in_cluster(story)


def test_nothing_prepared_is_nothing_to_keep() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        async with producer_of(cluster) as producer:
            await producer.init_transactions(keep_prepared=True)
            assert producer.prepared_transaction is None
            await producer.begin_transaction()
            assert await producer.prepare_transaction() is None
            await producer.commit_transaction()

    in_cluster(story)


def test_what_is_prepared_takes_no_more_records_and_may_be_ended_by_its_producer() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        async with producer_of(cluster) as producer:
            await producer.init_transactions()
            async with producer.transaction():
                await producer.send("orders", b"0", partition=0)
                await producer.prepare_transaction()
                with pytest.raises(ClientError, match="has prepared its transaction"):
                    await producer.send("orders", b"1", partition=0)
            assert producer.prepared_transaction is not None  # the block has left it alone
            await producer.commit_transaction()
        await coordinators.settled("copy")
        assert await read(cluster, PARTITIONS) == [b"0"]

    in_cluster(story)


def test_without_a_record_it_cannot_be_prepared() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        async with producer_of(cluster, delivery_timeout_ms=5_000, request_timeout_ms=1_000) as one:
            await one.init_transactions()
            await one.begin_transaction()
            for broker in list(cluster.running_brokers)[1:]:
                cluster.kill(broker)
            await one.send("orders", b"0", partition=0)
            await one.send("orders", b"1", partition=1)
            with pytest.raises(DeliveryTimeoutError):
                await one.prepare_transaction()
            assert one.prepared_transaction is None
            await one.close(timeout_ms=1)

    in_cluster(story)


def test_brokers_that_do_not_allow_it_say_so() -> None:
    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        async with producer_of(cluster) as producer:
            with pytest.raises(KafkaError, match=r"transaction\.two\.phase\.commit\.enable=false"):
                await producer.init_transactions()
        async with producer_of(cluster, enable_two_phase_commit=False) as producer:
            await producer.init_transactions()
            with pytest.raises(ClientError, match="needs enable_two_phase_commit=True"):
                await producer.prepare_transaction()
        with pytest.raises(InvalidArgumentError, match="needs a transactional_id"):
            producer_of(cluster, transactional_id=None)

    in_cluster(story, transaction_two_phase_commit_enable="false")
