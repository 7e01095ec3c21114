"""`explain` on a whole cluster: open transactions, fenced producers, markers that are missing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from barnabas import Admin, Producer
from barnabas.admin.transactions import explaining
from barnabas.explain import About, Sentence
from barnabas_broker.coordinator.internal_topic import InternalTopic
from barnabas_broker.coordinator.partition_log import PartitionLog
from barnabas_common.errors import RequestTimedOutError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import Event, EventKind
from barnabas_common.topic_name import TRANSACTION_STATE_TOPIC
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_tools.labs.framework.old_producer import OldProducer

from tests.support.raw_transactions import PARTITIONS, TransactionCoordinators, in_cluster
from tests.support.transactional_data import leader_of

FIRST = PARTITIONS[0]


@asynccontextmanager
async def open_transaction(
    cluster: SimulatedCluster, **options: Any
) -> AsyncIterator[tuple[Admin, Producer]]:
    """A transaction with a record in `FIRST`, its producer, and an Admin with these options."""
    async with (
        Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin"), **options) as admin,
        Producer(
            cluster.bootstrap, transactional_id="copy", runtime=cluster.client_runtime("copy")
        ) as producer,
    ):
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send_and_wait("orders", b"1", partition=0)
        yield admin, producer


def of(sentences: list[Sentence], about: About) -> str:
    return " | ".join(sentence.text for sentence in sentences if sentence.about is about)


def test_an_open_transaction_explains_the_last_stable_offset() -> None:
    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        async with open_transaction(cluster) as (admin, producer):
            await asyncio.sleep(5.0)
            found = await admin.explain(*FIRST)
            (known,) = await admin.list_transactions()
            told = of(found.sentences, About.LAST_STABLE_OFFSET)
            assert found.last_stable_offset == 0 and found.high_watermark == 1
            assert "'copy' is open from offset 0 on" in told
            assert f"broker {known.coordinator} coordinates it" in told
            assert "aborts it in 5" in told
            said = await admin.explain_transaction("copy")
            assert "open in orders-0" in of(said, About.TRANSACTION)
            assert "a producer at" in of(said, About.FENCED)
            await producer.commit_transaction()
            while (await admin.explain(*FIRST)).last_stable_offset < 2:
                await asyncio.sleep(0.1)
            found = await admin.explain(*FIRST)
            assert of(found.sentences, About.LAST_STABLE_OFFSET) == ""

    in_cluster(story)


def test_a_transaction_that_hangs_is_said_to_hang() -> None:
    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        runtime = cluster.client_runtime("old")
        async with (
            Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin,
            OldProducer(cluster.bootstrap, "old", runtime=runtime) as producer,
        ):
            await producer.init()
            await producer.add(FIRST)
            late = producer.batch(FIRST, b"late")
            await producer.end(commit=False)
            while not await producer.is_complete():
                await asyncio.sleep(0.1)
            assert await producer.send(FIRST, late) is ErrorCode.NONE
            await asyncio.sleep(1.0)
            told = of((await admin.explain(*FIRST)).sentences, About.LAST_STABLE_OFFSET)
            assert "no coordinator will end it, it hangs" in told and "--start-offset 1" in told

    in_cluster(story, transaction_partition_verification_enable="false")


def test_a_transaction_that_ends_meanwhile_is_not_said_to_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask_coordinators = explaining._coordinated

    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        async with open_transaction(cluster) as (admin, producer):

            async def after_the_commit(*arguments: Any) -> Any:
                await producer.commit_transaction()
                while not await admin.list_transactions(["CompleteCommit"]):
                    await asyncio.sleep(0.1)
                return await ask_coordinators(*arguments)

            monkeypatch.setattr(explaining, "_coordinated", after_the_commit)
            told = of((await admin.explain(*FIRST)).sentences, About.LAST_STABLE_OFFSET)
            assert "read_committed readers wait there" in told and "hangs" not in told

    in_cluster(story)


@pytest.mark.parametrize("is_loading", [False, True])
def test_nothing_is_said_to_hang_while_a_coordinator_is_missing_or_loads(
    monkeypatch: pytest.MonkeyPatch, is_loading: bool
) -> None:
    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        async with open_transaction(cluster, default_api_timeout_ms=5_000) as (admin, _producer):
            (known,) = await admin.list_transactions()
            cluster.kill(known.coordinator)
            while any(
                broker.broker_id == known.coordinator
                for broker in (await admin.describe_cluster()).brokers
            ):
                await asyncio.sleep(0.5)
            if is_loading:
                monkeypatch.setattr(PartitionLog, "load", _never)
                cluster.start_broker(known.coordinator)
                await cluster.serving()
            while (await admin.describe_topic("orders")).partitions[0].leader_id < 0:
                await asyncio.sleep(0.5)
            found = await admin.explain(*FIRST)
            told = of(found.sentences, About.LAST_STABLE_OFFSET)
            assert "its coordinator could not be asked" in told and "hangs" not in told
            why = "COORDINATOR_LOAD_IN_PROGRESS" if is_loading else "has no leader"
            assert why in of(found.sentences, About.DOUBT)
            with pytest.raises(RequestTimedOutError):
                await admin.find_hanging_transactions([FIRST], max_transaction_timeout_ms=-1)

    one = {"replication.factor": "1", "min.isr": "1"}
    settings = {f"transaction.state.log.{name}": value for name, value in one.items()}
    in_cluster(story, **{name.replace(".", "_"): value for name, value in settings.items()})


async def _never(*_: object) -> int:
    return await asyncio.Event().wait()


def resumptions(cluster: SimulatedCluster) -> list[Event]:
    return [event for event in cluster.events() if event.kind is EventKind.TRANSACTION_RESUMED]


def test_a_coordinator_that_takes_over_says_which_markers_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story(cluster: SimulatedCluster, _: TransactionCoordinators) -> None:
        runtime = cluster.client_runtime("old")
        async with (
            Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin,
            OldProducer(cluster.bootstrap, "old", runtime=runtime) as producer,
        ):
            await admin.create_topic("single", assignments={0: [1]})
            await producer.init()
            key = FIRST._replace(topic="single")
            await producer.add(key)
            assert leader_of(cluster, key) == 1
            cluster.kill(1)
            while (await admin.describe_topic("single")).partitions[0].leader_id >= 0:
                await asyncio.sleep(0.5)
            await producer.end(commit=True)
            said = await admin.explain_transaction("old")
            assert "the commit is decided" in of(said, About.UNFINISHED)
            assert "single-0: it has no leader" in of(said, About.UNFINISHED)
            (known,) = await admin.list_transactions(["PrepareCommit"])
            with monkeypatch.context() as patch:
                # The new coordinator's metadata may not have the topic when its log has been read.
                patch.setattr(InternalTopic, "partition_count", 0)
                await cluster.stop_broker(known.coordinator)
                cluster.start_broker(known.coordinator)
                while not resumptions(cluster):
                    await asyncio.sleep(0.1)
            now = (await admin.describe_transactions(["old"]))["old"]
            assert now.state == "PrepareCommit" and now.partitions == (key,)
            resumed = resumptions(cluster)
            topic_partition = resumed[-1].topic_partition
            assert topic_partition and topic_partition.topic == TRANSACTION_STATE_TOPIC
            assert resumed[-1].broker_id == now.coordinator
            said = await admin.explain_transaction("old")
            assert f"broker {now.coordinator} took it over" in of(said, About.FENCED)
            cluster.start_broker(1)
            while not await producer.is_complete():
                await asyncio.sleep(0.5)
            assert of(await admin.explain_transaction("old"), About.UNFINISHED) == ""

    in_cluster(story)
