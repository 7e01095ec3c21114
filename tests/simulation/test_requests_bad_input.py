"""Requests that no client sends: things that are named twice, unknown numbers, huge names."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from barnabas import Admin
from barnabas_broker.log.record_validation import MOST_BATCHES
from barnabas_common.errors import TransportError
from barnabas_common.errors.error_code import ErrorCode as E
from barnabas_common.messages.configs import (
    AlterConfig,
    AlterConfigResource,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)
from barnabas_common.messages.fetch import FetchPartition, FetchRequest
from barnabas_common.messages.groups import (
    GROUP_KEY,
    TRANSACTION_KEY,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    JoinGroupProtocol,
    JoinGroupRequest,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetDeletePartition,
    OffsetDeleteRequest,
    OffsetFetchGroup,
    OffsetFetchPartition,
    OffsetFetchRequest,
)
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.messages.offsets import (
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
)
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.messages.replicas import DescribeReplicasRequest
from barnabas_common.messages.topics import CreateTopicsRequest, DeleteTopicsRequest, NewTopic
from barnabas_common.messages.transactions import (
    AddOffsetsToTxnRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    TransactionPartition,
    WritableTxnMarker,
    WriteTxnMarkersRequest,
)
from barnabas_common.record.transactional import transactional_batch
from barnabas_common.runtime import Address, Message, Service
from barnabas_common.topic_name import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import CLIENT_PORT, SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.raw import batch
from tests.support.raw_transactions import SETTINGS, RawTransaction, TransactionCoordinators

Ask = Callable[[Service, Message], Awaitable[Message]]
HUGE = "k" * 1_000_000


def with_leader(story: Callable[[Ask, TransactionCoordinators], Awaitable[None]]) -> None:
    """Run a story with the leader of `orders-0`; `ask` sends it a request."""

    async def scenario() -> None:
        config = {**SETTINGS, "offsets.topic.num.partitions": "4"}
        cluster = SimulatedCluster(1, config=config)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("orders", partitions=2, replication_factor=3)
            (topic,) = await admin.describe_topics(["orders"])
        network = cluster.client_runtime("attacker").network
        address = Address(f"broker-{topic.partitions[0].leader_id}", CLIENT_PORT)

        async def ask(service: Service, request: Message) -> Message:
            channel = network.connect(address, service)
            try:
                return await channel.call(request, 30.0)
            finally:
                await channel.close()

        coordinators = TransactionCoordinators(cluster)
        await story(ask, coordinators)
        await coordinators.close()

    run(scenario(), seed=1, max_time=900.0)


def test_what_is_named_twice_is_answered_once() -> None:
    """A topic of a thousand partitions, named a hundred thousand times, took all memory."""

    async def story(ask: Ask, _: TransactionCoordinators) -> None:
        named, partitions = ["orders", "nowhere", "orders"], [("orders", 0), ("orders", 0)]
        metadata = await ask(Service.ADMIN, MetadataRequest(named))
        assert [item.topic for item in metadata.topics] == ["orders", "nowhere"]
        configs = await ask(Service.ADMIN, DescribeConfigsRequest(named))
        assert [item.topic for item in configs.resources] == ["orders", "nowhere"]
        groups = await ask(Service.COORDINATOR, DescribeGroupsRequest(["g", "h", "g"]))
        assert [item.group_id for item in groups.groups] == ["g", "h"]
        ids = await ask(Service.COORDINATOR, DescribeTransactionsRequest(["a", "b", "a"]))
        assert [item.transactional_id for item in ids.transaction_states] == ["a", "b"]
        producers = await ask(
            Service.DATA,
            DescribeProducersRequest([TransactionPartition(*key) for key in partitions]),
        )
        assert [(item.topic, item.partition) for item in producers.partitions] == partitions[:1]
        deleted = await ask(Service.COORDINATOR, DeleteGroupsRequest(["g", "h", "g"]))
        assert [item.group_id for item in deleted.results] == ["g", "h"]
        gone = await ask(Service.ADMIN, DeleteTopicsRequest(1000, ["nowhere", "nowhere"]))
        assert [item.topic for item in gone.topics] == ["nowhere"]

    with_leader(story)


def test_offsets_of_a_group_that_is_named_twice_are_fetched_once() -> None:
    async def story(_: Ask, coordinators: TransactionCoordinators) -> None:
        broker_id = await coordinators.find("g")
        every = OffsetFetchGroup("g", all_topics=True)
        some = [
            OffsetFetchGroup("g", [OffsetFetchPartition("orders", n) for n in numbers])
            for numbers in ([1, 1], [0, 1])
        ]
        request = OffsetFetchRequest([every, *some, every])
        fetched = (await coordinators.ask(broker_id, request)).groups
        assert [group.group_id for group in fetched] == ["g", "g"]
        assert [[item.partition for item in group.partitions] for group in fetched] == [[], [1, 0]]

    with_leader(story)


def test_a_partition_that_a_fetch_names_twice_is_read_once_from_where_it_is_named_last() -> None:
    async def story(ask: Ask, _: TransactionCoordinators) -> None:
        for value in (b"one", b"two"):
            item = ProducePartition("orders", 0, batch(value))
            response = await ask(Service.DATA, ProduceRequest(-1, 5000, [item]))
            assert response.partitions[0].error_code == E.NONE
        places = [FetchPartition("orders", 0, offset) for offset in (0, 0, 1)]
        request = FetchRequest(0, 1, 1 << 20, partitions=places)
        (answer,) = (await ask(Service.DATA, request)).partitions
        assert b"two" in answer.records and b"one" not in answer.records

    with_leader(story)


def test_a_partition_whose_offset_is_asked_for_twice_is_refused() -> None:
    async def story(ask: Ask, _: TransactionCoordinators) -> None:
        asked = [ListOffsetsPartition("orders", 0, LATEST_TIMESTAMP)] * 2
        asked.append(ListOffsetsPartition("nowhere", 0, LATEST_TIMESTAMP))
        response = await ask(Service.DATA, ListOffsetsRequest(partitions=asked))
        assert [item.error_code for item in response.partitions] == [
            E.INVALID_REQUEST,
            E.INVALID_REQUEST,
            E.UNKNOWN_TOPIC_OR_PARTITION,
        ]

    with_leader(story)


def test_a_request_may_unpack_only_so_much() -> None:
    """Each batch was within the limit: a request of 10 MB stopped the event loop for minutes."""

    async def story(ask: Ask, coordinators: TransactionCoordinators) -> None:
        bomb = batch(*[b"x" * 1_000_000] * 31, compression="zstd")
        assert len(bomb) < 10_000
        appends = [bomb * 4, batch(b"packed", compression="zstd"), batch(b"plain"), bomb * 99]
        items = [ProducePartition("orders", 0, records) for records in appends]

        async def produce(*items: ProducePartition) -> list[int]:
            response = await ask(Service.DATA, ProduceRequest(-1, 5000, list(items)))
            return [item.error_code for item in response.partitions]

        assert await produce(*items) == [
            E.RECORD_LIST_TOO_LARGE,
            E.THROTTLING_QUOTA_EXCEEDED,
            E.NONE,
            E.THROTTLING_QUOTA_EXCEEDED,
        ]
        # In a request of its own what was only in the way is taken.
        assert await produce(items[1]) == [E.NONE]
        assert await produce(items[3]) == [E.RECORD_LIST_TOO_LARGE]
        assert await produce(ProducePartition("orders", 0, bomb * 2)) == [E.NONE]
        request = FetchRequest(0, 1, 1 << 20, partitions=[FetchPartition("orders", 0, 0)])
        (answer,) = (await ask(Service.DATA, request)).partitions
        assert answer.high_watermark == 1 + 1 + 62, "nothing of what was refused is written"

    with_leader(story)


def test_no_client_has_a_transaction_write_to_an_internal_topic() -> None:
    """The markers would have gone there, and a partition that is not led now would wait forever."""

    async def story(ask: Ask, coordinators: TransactionCoordinators) -> None:
        await coordinators.find("g")
        producer = RawTransaction(coordinators, "t")
        await producer.init()
        orders = TopicPartition("orders", 0)
        for topic in (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC):
            assert await producer.try_add(orders, TopicPartition(topic, 0)) == [
                E.OPERATION_NOT_ATTEMPTED,
                E.TOPIC_AUTHORIZATION_FAILED,
            ]
        described = await coordinators.describe_transaction("t")
        assert (described.transaction_state, described.partitions) == ("Empty", [])
        await producer.add(orders)
        named = [TransactionPartition(TRANSACTION_STATE_TOPIC, number) for number in range(4)]
        assert await abort(ask, named) == {E.INVALID_REQUEST}

    with_leader(story)


def test_an_administrator_aborts_few_transactions_in_one_request() -> None:
    """Each marker is an append: as many as a request can name stopped the event loop."""

    async def story(ask: Ask, _: TransactionCoordinators) -> None:
        named = [TransactionPartition("orders", 0)]
        assert await abort(ask, named * 1001) == {E.INVALID_REQUEST}
        assert await abort(ask, named * 1000) == {E.INVALID_TXN_STATE}, "no such producer"

    with_leader(story)


def test_offsets_of_a_group_with_a_long_name_can_be_deleted() -> None:
    """All tombstones were in one batch, which no topic takes: such offsets stayed forever."""

    async def story(ask: Ask, coordinators: TransactionCoordinators) -> None:
        name = "g" * 32_000
        wide = CreateTopicsRequest(30_000, topics=[NewTopic("wide", 40, 3)])
        assert (await ask(Service.ADMIN, wide)).topics[0].error_code == E.NONE
        broker_id = await coordinators.find(name)

        async def commit(partition: int) -> int:
            item = OffsetCommitPartition("wide", partition, 7)
            request = OffsetCommitRequest(name, -1, "", partitions=[item])
            (result,) = (await coordinators.ask(broker_id, request)).partitions
            return int(result.error_code)

        while await commit(0):  # it has not heard of the topic yet, or not loaded the group
            await asyncio.sleep(0.1)
        assert {await commit(partition) for partition in range(40)} == {E.NONE}

        async def delete_offset(times: int) -> list[int]:
            items = [OffsetDeletePartition("wide", 0)] * times
            response = await coordinators.ask(broker_id, OffsetDeleteRequest(name, items))
            return [item.error_code for item in response.partitions]

        before = await end_of_offsets(ask)
        assert await delete_offset(50) == [E.NONE] * 50
        assert await end_of_offsets(ask) == before + 1, "one tombstone"
        request = DeleteGroupsRequest([name])
        (result,) = (await coordinators.ask(broker_id, request)).results
        assert result.error_code == E.NONE
        assert await end_of_offsets(ask) == before + 1 + 39

    with_leader(story)


def test_settings_that_fit_into_no_znode_are_refused_before_they_are_read() -> None:
    """A list was compared word by word: two of a megabyte stopped the event loop for hours."""

    async def story(ask: Ask, _: TransactionCoordinators) -> None:
        name = "follower.replication.throttled.replicas"

        async def alter(operation: str, words: list[str]) -> int:
            change = AlterConfig(name, operation, ",".join(words))
            resource = AlterConfigResource("topic", "orders", [change])
            request = IncrementalAlterConfigsRequest(resources=[resource])
            return int((await ask(Service.ADMIN, request)).resources[0].error_code)

        many = [f"{number:030}:1" for number in range(20_000)]
        assert await alter("set", many) == E.NONE
        assert await alter("subtract", many * 2) == E.INVALID_REQUEST
        assert await alter("subtract", many) == E.NONE

    with_leader(story)


async def end_of_offsets(ask: Ask) -> int:
    """The records that were ever written to `__consumer_offsets`."""
    described = await ask(Service.ADMIN, DescribeReplicasRequest([GROUP_METADATA_TOPIC]))
    return sum(replica.log_end_offset for replica in described.replicas)


async def abort(ask: Ask, named: list[TransactionPartition]) -> set[int]:
    """What an administrator is answered who wants abort markers in these partitions."""
    marker = WritableTxnMarker(7, 0, False, named)
    response = await ask(Service.DATA, WriteTxnMarkersRequest([marker]))
    return {item.error_code for item in response.markers[0].partitions}


@pytest.mark.parametrize("in_one_item", [True, False])
def test_a_request_of_too_many_batches_is_refused_as_a_whole(in_one_item: bool) -> None:
    """Each batch takes its time: millions of empty ones stopped the event loop for a minute."""

    async def story(ask: Ask, _: TransactionCoordinators) -> None:
        def request(count: int, acks: int = 1) -> ProduceRequest:
            times, records = (1, batch(b"") * count) if in_one_item else (count, batch(b""))
            return ProduceRequest(acks, 5000, [ProducePartition("orders", 0, records)] * times)

        refused = await ask(Service.DATA, request(MOST_BATCHES + 1))
        # A producer sends several one by one then; the only one of a partition it repeats.
        error = E.RECORD_LIST_TOO_LARGE if in_one_item else E.THROTTLING_QUOTA_EXCEEDED
        assert {item.error_code for item in refused.partitions} == {error}
        with pytest.raises(TransportError):  # no answer: the connection is dropped
            await ask(Service.DATA, request(MOST_BATCHES + 1, acks=0))
        taken = await ask(Service.DATA, request(MOST_BATCHES))
        assert {item.error_code for item in taken.partitions} == {E.NONE}
        fetch = FetchRequest(0, 1, 1, partitions=[FetchPartition("orders", 0, 0)])
        (answer,) = (await ask(Service.DATA, fetch)).partitions
        assert answer.high_watermark <= MOST_BATCHES

    with_leader(story)


def test_batches_that_do_not_unpack_count_for_what_they_may_have_taken() -> None:
    async def story(ask: Ask, _: TransactionCoordinators) -> None:
        over = batch(*[b"x" * 1_000_000] * 34, compression="zstd")
        items = [ProducePartition("orders", 0, over)] * 5
        response = await ask(Service.DATA, ProduceRequest(-1, 5000, items))
        codes = [item.error_code for item in response.partitions]
        assert codes == [E.INVALID_RECORD] * 2 + [E.THROTTLING_QUOTA_EXCEEDED] * 3

    with_leader(story)


@pytest.mark.parametrize("level", [-1, 2, 2**31 - 1])
def test_an_unknown_isolation_level_is_refused(level: int) -> None:
    """It was taken for read_uncommitted: a reader that wants more got less."""

    async def story(ask: Ask, _: TransactionCoordinators) -> None:
        place = FetchPartition("orders", 0, 0)
        fetch = FetchRequest(60_000, 1, 1 << 20, isolation_level=level, partitions=[place])
        assert (await ask(Service.DATA, fetch)).error_code == E.INVALID_REQUEST
        asked = [ListOffsetsPartition("orders", 0, LATEST_TIMESTAMP)]
        offsets = await ask(
            Service.DATA, ListOffsetsRequest(isolation_level=level, partitions=asked)
        )
        assert [item.error_code for item in offsets.partitions] == [E.INVALID_REQUEST]

    with_leader(story)


def test_a_name_that_no_record_can_hold_is_refused_before_it_is_hashed() -> None:
    """A name of 60 MB stopped the event loop for half a minute, and stayed in memory."""

    async def story(ask: Ask, coordinators: TransactionCoordinators) -> None:
        await coordinators.find("g")
        await coordinators.find_transaction("t")
        for kind, error in ((GROUP_KEY, E.INVALID_GROUP_ID), (TRANSACTION_KEY, E.INVALID_REQUEST)):
            request = FindCoordinatorRequest(kind, [HUGE, "g"])
            found = (await ask(Service.COORDINATOR, request)).coordinators
            assert [(item.error_code, item.node_id >= 0) for item in found] == [
                (error, False),
                (E.NONE, True),
            ]
        added = await ask(Service.COORDINATOR, AddOffsetsToTxnRequest("t", 7, 0, HUGE))
        assert added.error_code == E.INVALID_GROUP_ID
        records = bytes(transactional_batch(7, 0, 0, [(b"k", b"v")]))
        produce = ProduceRequest(-1, 5000, [ProducePartition("orders", 0, records)], HUGE)
        (outcome,) = (await ask(Service.DATA, produce)).partitions
        assert outcome.error_code == E.INVALID_REQUEST

    with_leader(story)


def test_a_member_that_offers_thousands_of_protocols_is_refused() -> None:
    async def story(_: Ask, coordinators: TransactionCoordinators) -> None:
        broker_id = await coordinators.find("g")

        async def join(count: int) -> int:
            offered = [JoinGroupProtocol(f"p{n}") for n in range(count)]
            request = JoinGroupRequest("g", 10_000, 10_000, "", "", "consumer", offered)
            return int((await coordinators.ask(broker_id, request)).error_code)

        assert await join(1001) == E.INVALID_REQUEST
        assert await join(1000) == E.MEMBER_ID_REQUIRED

    with_leader(story)
