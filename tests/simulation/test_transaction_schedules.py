"""Known failures of transactions: none happens, but each does with the bug it is known for.

The schedules of KIP-890 end with the clients of Kafka 3.9 in what KIP-890 describes, where nothing
else prevents it.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from barnabas import Admin
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.transactions import EndTxnRequest
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import Invariants, InvariantViolation
from barnabas_simulator.loop import run

from tests.support import transaction_schedules as schedules
from tests.support.raw_transactions import SETTINGS, RawTransaction, TransactionCoordinators
from tests.support.transaction_bugs import TRANSACTION_BUGS
from tests.support.transactional_data import Sender, read

E = ErrorCode
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
Story = Callable[[Sender], Awaitable[None]]

KNOWN = [
    (schedules.unreplicated_records, "M9", "I16 LastStableOffset"),
    (schedules.truncated_marker, "M10", "I15 TransactionsAreIsolated"),
]


@pytest.mark.parametrize("schedule", [schedule for schedule, *_ in KNOWN])
def test_the_code_as_it_is_passes(schedule: Callable[[], Awaitable[None]]) -> None:
    run(_awaited(schedule), seed=1, max_time=600.0)


@pytest.mark.parametrize(("schedule", "bug", "invariant"), KNOWN)
def test_the_bug_it_is_known_for_is_caught(
    schedule: Callable[[], Awaitable[None]], bug: str, invariant: str
) -> None:
    with TRANSACTION_BUGS[bug].planted(), pytest.raises(InvariantViolation) as caught:
        run(_awaited(schedule), seed=1, max_time=600.0)
    assert caught.value.name == invariant


async def _awaited(schedule: Callable[[], Awaitable[None]]) -> None:
    await schedule()


# ---- KIP-890


def watched(story: Story, version: int) -> None:
    """Play a story with one producer under the invariants."""

    async def scenario() -> None:
        cluster = SimulatedCluster(1, config=SETTINGS)
        checker = Invariants(cluster)
        checker.install()
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("orders", partitions=2, replication_factor=3)
        coordinators = TransactionCoordinators(cluster)
        sender = Sender(cluster, RawTransaction(coordinators, version=version))
        await sender.transaction.init()
        await story(sender)
        await checker.at_rest(within=150.0)
        await coordinators.close()

    run(scenario(), seed=1, max_time=900.0)


async def a_batch_after_the_abort(sender: Sender) -> None:
    """The abort overtakes a batch, whose partition no transaction has any more."""
    await sender.transaction.add(FIRST)
    late = sender.batch(FIRST, b"late")
    assert await sender.transaction.end(commit=False) == E.NONE
    await sender.transaction.coordinators.settled("copy")
    await sender.try_produce(FIRST, late)


@pytest.mark.parametrize("version", [0, 2])
def test_a_batch_that_comes_after_the_abort_does_not_hang(version: int) -> None:
    watched(a_batch_after_the_abort, version)


def test_without_verification_a_transaction_hangs_for_clients_of_kafka_3_9() -> None:
    with TRANSACTION_BUGS["T1"].planted(), pytest.raises(InvariantViolation) as caught:
        watched(a_batch_after_the_abort, version=0)
    assert caught.value.name == "L10 NothingHangs"


def test_an_epoch_for_each_transaction_prevents_it_too() -> None:
    """The marker has raised the epoch, so the batch is refused where it was written."""

    async def story(sender: Sender) -> None:
        await sender.transaction.add(FIRST)
        await sender.produce(FIRST, b"first")
        late = sender.batch(FIRST, b"late")
        assert await sender.transaction.end(commit=False) == E.NONE
        await sender.transaction.coordinators.settled("copy")
        assert await sender.try_produce(FIRST, late) == E.INVALID_PRODUCER_EPOCH

    with TRANSACTION_BUGS["T1"].planted():
        watched(story, version=2)


@pytest.mark.parametrize("late", ["add", "end"])
def test_a_zombie_that_a_coordinator_serves_is_noticed(late: str) -> None:
    """What a producer asks for after another one has taken over its transactional id."""

    async def story(sender: Sender) -> None:
        zombie = sender.transaction
        heir = RawTransaction(zombie.coordinators, version=2)
        await heir.init()
        await heir.add(FIRST)
        if late == "add":
            assert (await zombie.try_add(SECOND))[0] == expected
        else:
            assert (await zombie.try_end(True)).error_code == expected
        assert await heir.end(commit=True) == E.NONE

    expected = E.PRODUCER_FENCED
    watched(story, version=2)
    expected = E.NONE
    with TRANSACTION_BUGS["T3"].planted(), pytest.raises(InvariantViolation) as caught:
        watched(story, version=2)
    assert caught.value.name == "I17 ProducersAreFenced"


@pytest.mark.parametrize("version", [0, 2])
def test_an_end_that_comes_during_the_next_transaction(version: int) -> None:
    """Without an epoch of its own the next transaction is committed in the middle."""

    async def story(sender: Sender) -> None:
        one, cluster = sender.transaction, sender.cluster
        await one.add(FIRST, SECOND)
        await sender.produce(FIRST, b"one")
        late = EndTxnRequest("copy", *one.producer, True, version)
        assert await one.end(commit=True) == E.NONE
        await one.coordinators.settled("copy")
        await one.add(FIRST, SECOND)
        await sender.produce(FIRST, b"two: half")
        error = (await one.coordinators.send("copy", late)).error_code
        await asyncio.sleep(1.0)
        half = b"two: half" in await read(cluster, [FIRST, SECOND])
        assert (error, half) == ((E.NONE, True) if version == 0 else (E.PRODUCER_FENCED, False))
        if version:
            await sender.produce(SECOND, b"two: other half")
            assert await one.end(commit=True) == E.NONE
            await one.coordinators.settled("copy")
            assert len(await read(cluster, [FIRST, SECOND])) == 3

    watched(story, version)
