"""The admin client about transactions: coordinators that move, fencing, and what is refused."""

import asyncio

import pytest
from barnabas import Admin, Producer
from barnabas_common.errors import (
    InvalidArgumentError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    ProducerFencedError,
    TransactionalIdNotFoundError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.transactions import (
    TransactionPartition,
    WritableTxnMarker,
    WriteTxnMarkersRequest,
)
from barnabas_common.runtime import Service
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_tools.cli.admin.transaction import _abort
from barnabas_tools.cli.settings import CommandFailed
from barnabas_tools.labs.framework.old_producer import OldProducer

from tests.support.raw_transactions import PARTITIONS, TransactionCoordinators, in_cluster
from tests.support.transactional_data import ask, described, leader_of, read

FIRST = PARTITIONS[0]
VERIFICATION = "transaction_partition_verification_enable"


def admin_of(cluster: SimulatedCluster) -> Admin:
    return Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin"))


def producer_of(cluster: SimulatedCluster, name: str) -> Producer:
    runtime = cluster.client_runtime(name)
    return Producer(cluster.bootstrap, transactional_id=name, runtime=runtime)


async def begin_with_a_record(producer: Producer) -> None:
    await producer.init_transactions()
    await producer.begin_transaction()
    await producer.send_and_wait("orders", b"1", partition=0)


def test_the_listing_follows_a_coordinator_that_dies() -> None:
    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        async with admin_of(cluster) as admin, producer_of(cluster, "copy") as producer:
            assert await admin.list_transactions() == []
            await begin_with_a_record(producer)
            (before,) = await admin.list_transactions(["Ongoing"])
            cluster.kill(before.coordinator)
            described = (await admin.describe_transactions(["copy"]))["copy"]
            assert described.coordinator != before.coordinator
            assert described.state == "Ongoing" and described.partitions == (FIRST,)
            assert described.producer_id == before.producer_id
            cluster.start_broker(before.coordinator)
            await cluster.serving()
            (after,) = await admin.list_transactions(producer_ids=[before.producer_id])
            assert after.coordinator == described.coordinator
            await producer.commit_transaction()
            assert await admin.list_transactions(producer_ids=[before.producer_id + 1]) == []

    in_cluster(story)


def test_an_unknown_id_and_an_unknown_state_are_errors() -> None:
    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        async with admin_of(cluster) as admin:
            with pytest.raises(TransactionalIdNotFoundError, match="'nobody'"):
                await admin.describe_transactions(["nobody"])
            with pytest.raises(InvalidArgumentError, match="Sleeping"):
                await admin.list_transactions(["Ongoing", "Sleeping"])
            with pytest.raises(UnknownTopicOrPartitionError, match="orders-9"):
                await admin.abort_transaction(("orders", 9), 1, 0)

    in_cluster(story)


def test_a_fenced_producer_must_close_and_its_transaction_is_aborted() -> None:
    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        async with admin_of(cluster) as admin, producer_of(cluster, "copy") as producer:
            await begin_with_a_record(producer)
            (before,) = await admin.list_transactions()
            fenced = await admin.fence_producers(["copy"])
            assert fenced["copy"][0] == before.producer_id
            with pytest.raises(ProducerFencedError):
                await producer.commit_transaction()
            assert (await admin.list_transactions())[0].state in ("Empty", "CompleteAbort")
            assert await read(cluster, [FIRST]) == []

    in_cluster(story)


def test_a_low_limit_of_timeouts_does_not_prevent_fencing() -> None:
    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        runtime = cluster.client_runtime("copy")
        options = {"transactional_id": "copy", "enable_two_phase_commit": True}
        async with (
            admin_of(cluster) as admin,
            Producer(cluster.bootstrap, runtime=runtime, **options) as producer,
        ):
            await begin_with_a_record(producer)
            await admin.fence_producers(["copy"])
            with pytest.raises(ProducerFencedError):
                await producer.commit_transaction()
            assert await read(cluster, [FIRST]) == []

    in_cluster(story, transaction_max_timeout_ms="1000")


def test_an_administrator_ends_a_hanging_transaction_and_only_by_an_abort() -> None:
    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        runtime = cluster.client_runtime("old")
        async with OldProducer(cluster.bootstrap, "old", runtime=runtime) as producer:
            await producer.init()
            await producer.init()
            await producer.add(FIRST)
            batch = producer.batch(FIRST, b"late")
            await producer.end(commit=False)
            while not await producer.is_complete():
                await asyncio.sleep(0.1)
            assert await producer.send(FIRST, batch) is ErrorCode.NONE
            leader = leader_of(cluster, FIRST)
            assert leader is not None
            named = [TransactionPartition(*FIRST)]
            for producer_id, epoch, commit in (
                (producer.producer_id, 0, True),
                (producer.producer_id, 32_768, False),
                (producer.producer_id, -1, False),
                (-1, 0, False),
            ):
                marker = WritableTxnMarker(producer_id, epoch, commit, named, 9)
                request = WriteTxnMarkersRequest([marker])
                answer = await ask(cluster, leader, Service.DATA, request)
                assert answer.markers[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
            assert described(cluster, FIRST).last_stable_offset == 1, "behind the first marker"
        async with admin_of(cluster) as admin:
            found = await admin.find_hanging_transactions([FIRST], max_transaction_timeout_ms=-1)
            (opened,) = found
            one = opened.producer
            epoch = one.producer_epoch
            with pytest.raises(InvalidProducerEpochError):
                await admin.abort_transaction(FIRST, one.producer_id, epoch - 1)
            await admin.abort_transaction(FIRST, one.producer_id, epoch, one.coordinator_epoch)
            replica = described(cluster, FIRST)
            assert replica.last_stable_offset == replica.log_end_offset
            assert await read(cluster, [FIRST]) == []

    in_cluster(story, **{VERIFICATION: "false"})


def test_a_transaction_that_ends_while_it_is_looked_for_does_not_hang() -> None:
    """Records with old timestamps make every open transaction seem as old."""

    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        async with admin_of(cluster) as admin, producer_of(cluster, "copy") as producer:
            await producer.init_transactions()

            async def copy() -> None:
                while True:
                    async with producer.transaction():
                        await producer.send("orders", b"1", partition=0, timestamp_ms=0)

            copying = asyncio.create_task(copy())
            found = [await admin.find_hanging_transactions([FIRST]) for _ in range(50)]
            copying.cancel()
            await asyncio.wait([copying])
            assert not any(found)

    in_cluster(story)


def test_a_mistyped_epoch_does_not_shut_out_a_producer() -> None:
    """Neither the producer nor its coordinator could ever complete the transaction."""

    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        async with admin_of(cluster) as admin, producer_of(cluster, "copy") as producer:
            await begin_with_a_record(producer)
            (one,) = (await admin.describe_producers([FIRST]))[FIRST]
            known = (one.producer_id, one.producer_epoch)
            for producer_id, epoch, coordinator in (
                (*known[:1], known[1] + 70, 0),
                (*known, 99),
                (one.producer_id + 1, 0, 0),
            ):
                with pytest.raises(InvalidTxnStateError):
                    await admin.abort_transaction(FIRST, producer_id, epoch, coordinator)
            await producer.commit_transaction()
            assert (await coordinators.settled("copy")).transaction_state == "CompleteCommit"
            assert await read(cluster, [FIRST]) == [b"1"]

    in_cluster(story)


def test_the_command_aborts_nothing_that_is_not_open() -> None:
    """A mistyped producer id must not look like success, and nothing may be written for it."""

    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        async with admin_of(cluster) as admin, producer_of(cluster, "copy") as producer:
            await begin_with_a_record(producer)
            (one,) = (await admin.describe_producers([FIRST]))[FIRST]
            end = await admin.end_offsets("orders")
            named = (one.producer_id + 1, one.producer_epoch, 0)
            with pytest.raises(CommandFailed, match="has no open transaction in orders-0"):
                await _abort(admin, tuple(FIRST), None, named)
            assert await admin.end_offsets("orders") == end
            await _abort(admin, tuple(FIRST), None, (one.producer_id, one.producer_epoch, 0))
            (one,) = (await admin.describe_producers([FIRST]))[FIRST]
            assert one.current_txn_start_offset < 0

    in_cluster(story)
