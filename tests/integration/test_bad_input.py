"""Bad input to a real cluster: Kafka's error for each, and the cluster continues to serve."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from barnabas import Admin, Consumer, Producer
from barnabas_common.errors import (
    InvalidConfigError,
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    KafkaError,
    MaybeApplied,
    MessageTooLargeError,
    NotApplied,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import LeaderAndIsrRequest, UpdateMetadataRequest
from barnabas_common.messages.fetch import FetchPartition, FetchRequest
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.record.batch import CorruptBatch
from barnabas_common.runtime import Address, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_common.transport.grpc_network import GrpcNetwork
from barnabas_tools.local.cluster import LocalCluster

from tests.support import plain_codec
from tests.support.cluster_state import create_topic, leaders
from tests.support.mutants import mutants
from tests.support.raw import batch, call, produce_raw
from tests.support.workload import read_all

pytestmark = pytest.mark.integration

TOPIC = "bad-input"


@pytest_asyncio.fixture(autouse=True)
async def serves_afterwards(cluster: LocalCluster) -> AsyncIterator[None]:
    """After every test, records can still be produced to each partition and consumed."""
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        if TOPIC not in await admin.list_topics():
            await create_topic(cluster.bootstrap, TOPIC, 3)
    yield
    async with Producer(cluster.bootstrap) as producer:
        for partition in range(3):
            metadata = await producer.send_and_wait(TOPIC, b"alive", partition=partition)
            async with Consumer(bootstrap_servers=cluster.bootstrap) as consumer:
                consumer.assign([TopicPartition(TOPIC, partition)])
                consumer.seek(TopicPartition(TOPIC, partition), metadata.offset)
                records = await consumer.poll(timeout_ms=10_000)
                assert records[0].value == b"alive"


async def leader_of(cluster: LocalCluster, partition: int = 0) -> Address:
    return client_address(cluster, (await leaders(cluster.bootstrap, TOPIC))[partition])


def client_address(cluster: LocalCluster, broker_id: int) -> Address:
    return Address("127.0.0.1", cluster.layout.ports(broker_id)[0])


def inter_broker_address(cluster: LocalCluster, broker_id: int) -> Address:
    return Address("127.0.0.1", cluster.layout.ports(broker_id)[1])


# Topics


@pytest.mark.parametrize("name", ["", ".", "..", "no spaces", "ü", "a/b", "x" * 250])
async def test_an_illegal_topic_name_is_refused(cluster: LocalCluster, name: str) -> None:
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        with pytest.raises(InvalidTopicError):
            await admin.create_topic(name, partitions=1, replication_factor=1)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"partitions": 1, "replication_factor": 0}, InvalidReplicationFactorError),
        ({"partitions": 1, "replication_factor": 4}, InvalidReplicationFactorError),
        ({"partitions": 0, "replication_factor": 1}, InvalidPartitionsError),
        ({"assignments": {0: [1, 1]}}, InvalidReplicaAssignmentError),
        ({"assignments": {0: [1, 9]}}, InvalidReplicaAssignmentError),
        ({"configs": {"no.such.config": "1"}}, InvalidConfigError),
        ({"configs": {"retention.ms": "soon"}}, InvalidConfigError),
    ],
)
async def test_an_impossible_topic_is_refused(
    cluster: LocalCluster, options: dict, error: type[KafkaError]
) -> None:
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        with pytest.raises(error):
            await admin.create_topic("impossible", **options)
        assert "impossible" not in await admin.list_topics()


async def test_a_topic_that_exists_or_does_not(cluster: LocalCluster) -> None:
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        with pytest.raises(TopicAlreadyExistsError):
            await admin.create_topic(TOPIC, partitions=1, replication_factor=1)
        with pytest.raises(UnknownTopicOrPartitionError):
            await admin.delete_topics(["nowhere"])


async def test_an_unknown_topic_or_partition(cluster: LocalCluster) -> None:
    leader = await leader_of(cluster)
    for topic, partition in (("nowhere", 0), (TOPIC, 99)):
        produced = await produce_raw(leader, topic, partition, batch(b"x"))
        assert produced.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await fetch_error(leader, FetchPartition(topic, partition, 0)) == (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )


# Batches


def corrupt(records: bytes, position: int, xor: int = 0xFF) -> bytes:
    changed = bytearray(records)
    changed[position] ^= xor
    return bytes(changed)


@pytest.mark.parametrize(
    ("what", "records", "codes"),
    [
        ("crc", corrupt(batch(b"value"), -1), {ErrorCode.CORRUPT_MESSAGE}),
        (
            "magic",
            corrupt(batch(b"value"), 16),
            {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD},
        ),
        ("truncated", batch(b"value")[:-3], {ErrorCode.CORRUPT_MESSAGE}),
        ("header only", batch(b"value")[:20], {ErrorCode.CORRUPT_MESSAGE}),
        ("length", corrupt(batch(b"value"), 11), {ErrorCode.CORRUPT_MESSAGE}),
        ("second of two", batch(b"a") + corrupt(batch(b"b"), -1), {ErrorCode.CORRUPT_MESSAGE}),
        ("rubbish", b"\x00" * 100, {ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD}),
    ],
)
async def test_a_malformed_batch_is_refused_whole(
    cluster: LocalCluster, what: str, records: bytes, codes: set[ErrorCode]
) -> None:
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        before = await admin.end_offsets(TOPIC)
        produced = await produce_raw(await leader_of(cluster), TOPIC, 0, records)
        assert produced.error_code in codes
        assert await admin.end_offsets(TOPIC) == before


async def test_records_no_reader_gets_past_are_refused_with_their_whole_batch(
    cluster: LocalCluster,
) -> None:
    """Their checksums are valid. A valid batch in front of one is not appended either.

    Attributes of two bytes are left out: this broker's reader accepts them, and so does the broker.
    """
    now_ms = time.time_ns() // 1_000_000
    unreadable = [m for m in mutants(now_ms) if not _readable(m.batch)]
    poison = [m for m in unreadable if not m.what.startswith("attributes")][::25]
    assert len(poison) > 20
    leader = await leader_of(cluster)
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        before = await admin.end_offsets(TOPIC)
        for what, mutant in poison:
            produced = await produce_raw(leader, TOPIC, 0, batch(b"sound") + mutant)
            assert produced.error_code in REFUSALS, what
        assert await admin.end_offsets(TOPIC) == before


REFUSALS = {
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
}


def _readable(records: bytes) -> bool:
    try:
        return bool(plain_codec.read(records))
    except CorruptBatch:
        return False


async def test_a_record_over_max_message_bytes_is_refused(cluster: LocalCluster) -> None:
    big = b"x" * 1_100_000
    produced = await produce_raw(await leader_of(cluster), TOPIC, 0, batch(big))
    assert produced.error_code == ErrorCode.MESSAGE_TOO_LARGE
    async with Producer(cluster.bootstrap, max_request_size=4_000_000) as producer:
        with pytest.raises(MessageTooLargeError):
            await producer.send_and_wait(TOPIC, big, partition=0)


async def test_a_request_over_the_limit_is_refused(cluster: LocalCluster) -> None:
    request = ProduceRequest(-1, 1000, [ProducePartition(TOPIC, 0, b"x" * 120_000_000)])
    leader = await leader_of(cluster)
    with pytest.raises(NotApplied):
        await call(leader, Service.DATA, request, limit=100 << 20)
    with pytest.raises((NotApplied, MaybeApplied)):
        await call(leader, Service.DATA, request)


@pytest.mark.parametrize("acks", [2, -2, 100])
async def test_acks_must_be_one_of_three(cluster: LocalCluster, acks: int) -> None:
    produced = await produce_raw(await leader_of(cluster), TOPIC, 0, batch(b"x"), acks)
    assert produced.error_code == ErrorCode.INVALID_REQUIRED_ACKS


async def test_acks_0_has_no_answer_and_a_failed_append_ends_the_connection(
    cluster: LocalCluster,
) -> None:
    """The closed connection tells a producer that expects no answers that something is wrong."""
    network = GrpcNetwork(max_message_bytes=1 << 20)
    channel = network.connect(await leader_of(cluster), Service.DATA)

    def request(topic: str) -> ProduceRequest:
        return ProduceRequest(0, 5000, [ProducePartition(topic, 0, batch(b"unasked"))])

    try:
        ended = asyncio.ensure_future(await channel.open(timeout=10.0))
        await channel.send(request(TOPIC), timeout=10.0)
        key = TopicPartition(TOPIC, 0)
        async with asyncio.timeout(20.0):
            while b"unasked" not in dict((await read_all(cluster.bootstrap, [key]))[key]).values():
                await asyncio.sleep(0.05)
        assert not ended.done()
        await channel.send(request("no-such-topic"), timeout=10.0)
        async with asyncio.timeout(20.0):
            await ended
    finally:
        await channel.close()


# Leaders and epochs


async def fetch_error(address: Address, partition: FetchPartition) -> ErrorCode:
    response = await call(
        address, Service.DATA, FetchRequest(0, 1, 1 << 20, partitions=[partition])
    )
    return ErrorCode(response.partitions[0].error_code)


async def test_a_write_to_a_follower_is_refused_and_names_the_leader(
    cluster: LocalCluster,
) -> None:
    leader = (await leaders(cluster.bootstrap, TOPIC))[0]
    follower = next(b for b in cluster.broker_ids if b != leader)
    produced = await produce_raw(client_address(cluster, follower), TOPIC, 0, batch(b"x"))
    assert produced.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert produced.current_leader_id == leader


async def test_a_stale_or_unknown_leader_epoch_is_fenced(cluster: LocalCluster) -> None:
    leader = await leader_of(cluster)
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        topic = (await admin.describe_topics([TOPIC]))[0]
    epoch = topic.partitions[0].leader_epoch
    newer = FetchPartition(TOPIC, 0, 0, current_leader_epoch=epoch + 1)
    assert await fetch_error(leader, newer) == ErrorCode.UNKNOWN_LEADER_EPOCH
    if epoch > 0:
        older = FetchPartition(TOPIC, 0, 0, current_leader_epoch=epoch - 1)
        assert await fetch_error(leader, older) == ErrorCode.FENCED_LEADER_EPOCH


async def test_a_stale_controller_epoch_or_broker_epoch_is_refused(cluster: LocalCluster) -> None:
    internal = inter_broker_address(cluster, 1)
    for request in (LeaderAndIsrRequest(2, 0, 1 << 62), UpdateMetadataRequest(2, 0, 1 << 62)):
        response = await call(internal, Service.CONTROL, request)
        assert response.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    for request in (LeaderAndIsrRequest(2, 1 << 30, 0), UpdateMetadataRequest(2, 1 << 30, 0)):
        response = await call(internal, Service.CONTROL, request)
        assert response.error_code == ErrorCode.STALE_BROKER_EPOCH


async def test_an_offset_out_of_range_is_refused(cluster: LocalCluster) -> None:
    for offset in (1 << 40, -5):
        partition = FetchPartition(TOPIC, 0, offset)
        assert await fetch_error(await leader_of(cluster), partition) == (
            ErrorCode.OFFSET_OUT_OF_RANGE
        )
    tp = TopicPartition(TOPIC, 0)
    async with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 1 << 40)
        with pytest.raises(OffsetOutOfRangeError):
            async with asyncio.timeout(20):
                while True:
                    await consumer.poll(timeout_ms=500)


# Listeners


async def test_replication_and_control_are_not_offered_to_clients(cluster: LocalCluster) -> None:
    client = client_address(cluster, 1)
    with pytest.raises((NotApplied, MaybeApplied)):
        await call(client, Service.CONTROL, LeaderAndIsrRequest(2, 1 << 30, 1 << 62))
    with pytest.raises((NotApplied, MaybeApplied)):
        await call(client, Service.REPLICA, FetchRequest(0, 1, 1, replica_id=2))


async def test_a_clients_fetch_with_a_replica_id_is_refused(cluster: LocalCluster) -> None:
    request = FetchRequest(
        0, 1, 1 << 20, replica_id=2, replica_epoch=1, partitions=[FetchPartition(TOPIC, 0, 1 << 40)]
    )
    response = await call(await leader_of(cluster), Service.DATA, request)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
