"""Topics from creation to deletion: created by hand and automatically, deleted, and retention."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from barnabas import Admin, Consumer, Producer, TopicPartition, sync
from barnabas.admin import DeletedTopic
from barnabas_common.errors import (
    ClientError,
    KafkaError,
    TopicAlreadyExistsError,
    TopicDeletionDisabledError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.events import Event, EventKind
from barnabas_common.record.batch import batches
from barnabas_common.record.compression import Compression
from barnabas_tools.local.cluster import LocalCluster

from tests.support import log_files
from tests.support.cluster_state import create_topic, known_everywhere, wait_until_in_sync
from tests.support.real_cluster import real_cluster
from tests.support.workload import read_all
from tests.support.zookeeper_client import zookeeper

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster whose periodic tasks run at intervals of milliseconds instead of minutes."""
    config = {
        "zookeeper.session.timeout.ms": "2000",
        "replica.lag.time.max.ms": "3000",
        "log.initial.task.delay.ms": "100",
        "log.retention.check.interval.ms": "300",
        "log.segment.delete.delay.ms": "100",
    }
    directory: Path = tmp_path_factory.mktemp("cluster")
    with real_cluster(directory, config) as running:
        yield running


async def produce(
    cluster: LocalCluster, topic: str, values: list[bytes], **options: object
) -> None:
    timestamp = options.pop("timestamp_ms", None)
    async with Producer(cluster.bootstrap, **options) as producer:  # type: ignore[arg-type]
        for value in values:
            handle = await producer.send(
                topic,
                value,
                partition=0,
                timestamp_ms=timestamp,  # type: ignore[arg-type]
            )
        await handle


async def values_of(cluster: LocalCluster, topic: str) -> list[bytes]:
    tp = TopicPartition(topic, 0)
    return [value for _, value in (await read_all(cluster.bootstrap, [tp]))[tp]]


def folders(cluster: LocalCluster, topic: str) -> list[Path]:
    """Return the topic's folders on all brokers, including those about to be deleted."""
    return [
        path
        for broker in cluster.broker_ids
        for path in cluster.layout.data_directory(broker).glob(f"{topic}-*")
    ]


# Creation


async def test_a_topic_written_to_zookeeper_by_hand_comes_alive(cluster: LocalCluster) -> None:
    """Kafka's own tools did so once, without a topic id; the controller adds it."""
    topic = "by-hand"
    content = {"version": 1, "partitions": {"0": [1, 2, 3], "1": [2, 3, 1]}}
    async with zookeeper(cluster) as session:
        await session.create(f"/brokers/topics/{topic}", json.dumps(content).encode())
        await known_everywhere(cluster.bootstrap, topic)
        await wait_until_in_sync(cluster.bootstrap, topic)
        written, _ = await session.get(f"/brokers/topics/{topic}")
    assert json.loads(written).get("topic_id")
    await produce(cluster, topic, [b"one", b"two"])
    assert await values_of(cluster, topic) == [b"one", b"two"]
    assert len(folders(cluster, topic)) == 6


async def test_nonsense_written_to_zookeeper_disturbs_no_one(cluster: LocalCluster) -> None:
    async with zookeeper(cluster) as session:
        await session.create("/brokers/topics/nonsense", b"{ not json")
        await create_topic(cluster.bootstrap, "beside-nonsense", 1)
        await produce(cluster, "beside-nonsense", [b"x"])
        assert await values_of(cluster, "beside-nonsense") == [b"x"]
        await session.delete("/brokers/topics/nonsense")


# Deletion


async def test_a_deleted_topic_leaves_nothing(cluster: LocalCluster) -> None:
    topic = "deleted"
    await create_topic(cluster.bootstrap, topic, 2, retention_ms="100000")
    await produce(cluster, topic, [b"x"])
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        await admin.delete_topics([topic])
        assert topic not in await admin.list_topics()
        with pytest.raises(UnknownTopicOrPartitionError):
            await admin.describe_topic(topic)
    await _until_gone(cluster, topic)
    await create_topic(cluster.bootstrap, topic, 1)
    await produce(cluster, topic, [b"a new topic of that name"])
    assert await values_of(cluster, topic) == [b"a new topic of that name"]


async def test_deletion_waits_for_a_broker_that_is_down(cluster: LocalCluster) -> None:
    topic = "deleted-while-down"
    await create_topic(cluster.bootstrap, topic, 2)
    await produce(cluster, topic, [b"x"])
    await asyncio.to_thread(cluster.stop_broker, 3)
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        assert await admin.delete_topics([topic]) == [DeletedTopic(topic, (3,))]
        assert topic not in await admin.list_topics()
        with pytest.raises(TopicAlreadyExistsError, match="still being deleted"):
            await admin.create_topic(topic)
    async with zookeeper(cluster) as session:
        assert await session.exists(f"/admin/delete_topics/{topic}")
    left = cluster.layout.data_directory(3) / f"{topic}-0"
    assert left.is_dir()
    await asyncio.to_thread(cluster.restart, 3)
    await _until_gone(cluster, topic)


async def _until_gone(cluster: LocalCluster, topic: str, within: float = 20.0) -> None:
    """Wait until no broker has a folder of the topic, and ZooKeeper has no znode of it."""
    paths = [
        f"/brokers/topics/{topic}",
        f"/config/topics/{topic}",
        f"/admin/delete_topics/{topic}",
    ]
    async with asyncio.timeout(within), zookeeper(cluster) as session:
        while folders(cluster, topic) or [p for p in paths if await session.exists(p)]:
            await asyncio.sleep(0.05)


# Retention


@pytest.mark.parametrize("by", ["size", "time"])
async def test_retention_deletes_old_segments_everywhere(cluster: LocalCluster, by: str) -> None:
    topic = f"retention-by-{by}"
    limit = {"retention_bytes": "30000"} if by == "size" else {"retention_ms": "3600000"}
    await create_topic(cluster.bootstrap, topic, 1, segment_bytes="10000", **limit)
    now = int(time.time() * 1000)
    old = now if by == "size" else now - 7_200_000
    values = [b"%05d" % number * 20 for number in range(1000)]
    await produce(cluster, topic, values, timestamp_ms=old, batch_size=2000)
    last = [b"last %d" % number for number in range(3)]
    await produce(cluster, topic, last, timestamp_ms=now)
    await _until_size(cluster, topic, *((20_000, 41_000) if by == "size" else (100, 11_000)))
    begin = await _until_log_start_moved(cluster, topic)
    tp = TopicPartition(topic, 0)
    records = (await read_all(cluster.bootstrap, [tp]))[tp]
    first = records[0][0]
    assert first >= begin, "it may have moved again meanwhile"
    assert records == list(enumerate(values + last))[first:]


async def test_a_wholly_expired_topic_is_empty_and_goes_on_at_its_offset(
    cluster: LocalCluster,
) -> None:
    topic = "expired"
    # Long enough that the new record is not deleted before it is read.
    await create_topic(cluster.bootstrap, topic, 1, retention_ms="600000")
    await produce(cluster, topic, [b"old"] * 10, timestamp_ms=1_000_000)
    async with asyncio.timeout(20):
        while await _log_starts(cluster, topic) != {10}:
            await asyncio.sleep(0.1)
    async with Producer(cluster.bootstrap) as producer:
        assert (await producer.send_and_wait(topic, b"new", partition=0)).offset == 10
    assert await values_of(cluster, topic) == [b"new"]


async def test_a_consumer_whose_offset_was_deleted_starts_at_the_beginning(
    cluster: LocalCluster,
) -> None:
    topic = "overtaken"
    await create_topic(cluster.bootstrap, topic, 1, segment_bytes="5000", retention_bytes="10000")
    tp = TopicPartition(topic, 0)
    values = [b"%05d" % number * 20 for number in range(500)]
    await produce(cluster, topic, values, batch_size=1000)
    begin = await _until_log_start_moved(cluster, topic)
    async with Consumer(
        bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 0)
        records = await consumer.poll(timeout_ms=10_000)
    assert records[0].offset >= begin
    assert records[0].value == values[records[0].offset]


async def _until_log_start_moved(cluster: LocalCluster, topic: str) -> int:
    """Wait until the log starts above 0 on all three brokers, and return the lowest start.

    Followers append several batches at once and so roll elsewhere than the leader. The segments
    that retention deletes then end at other offsets.
    """
    async with asyncio.timeout(20):
        while True:
            lowest = min(await _log_starts(cluster, topic))
            if lowest > 0:
                return lowest
            await asyncio.sleep(0.1)


async def _log_starts(cluster: LocalCluster, topic: str) -> set[int]:
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        described = await admin.describe_replicas([topic])
    replicas = [replica for broker in described for replica in broker.replicas]
    assert len(replicas) == 3, described
    return {replica.log_start_offset for replica in replicas}


async def _until_size(cluster: LocalCluster, topic: str, least: int, most: int) -> None:
    async with asyncio.timeout(20):
        while True:
            sizes = [
                log_files.size(cluster.layout.data_directory(broker) / f"{topic}-0")
                for broker in cluster.broker_ids
            ]
            if all(least <= size <= most for size in sizes):
                return
            await asyncio.sleep(0.1)


# Compression


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_every_codec_end_to_end(cluster: LocalCluster, codec: str) -> None:
    topic = f"codec-{codec}"
    await create_topic(cluster.bootstrap, topic, 1)
    values = [b"a compressible value " * 10 + b"%d" % number for number in range(300)]
    await produce(cluster, topic, values, compression_type=codec)
    assert await values_of(cluster, topic) == values
    await wait_until_in_sync(cluster.bootstrap, topic)
    assert await _stored_codecs(cluster, topic) == {codec}


async def test_the_topics_own_codec_beats_the_producers(cluster: LocalCluster) -> None:
    topic = "recompressed"
    await create_topic(cluster.bootstrap, topic, 1, compression_type="zstd")
    values = [b"value %d" % number * 10 for number in range(300)]
    await produce(cluster, topic, values, compression_type="gzip")
    assert await values_of(cluster, topic) == values
    assert await _stored_codecs(cluster, topic) == {"zstd"}


async def _stored_codecs(cluster: LocalCluster, topic: str) -> set[str]:
    """Return the codecs of the batches on the brokers' disks, once every broker has all batches."""
    async with asyncio.timeout(20):
        while True:
            contents = {
                log_files.content(cluster.layout.data_directory(broker) / f"{topic}-0")
                for broker in cluster.broker_ids
            }
            if len(contents) == 1:
                break
            await asyncio.sleep(0.05)
    (content,) = contents
    return {Compression(header.compression).name.lower() for _, header in batches(content)}


# Settings of the whole cluster


@pytest.fixture(scope="module")
def lenient_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One broker, where topics are created automatically and cannot be deleted."""
    config = {
        "auto.create.topics.enable": "true",
        "delete.topic.enable": "false",
        "num.partitions": "2",
    }
    directory: Path = tmp_path_factory.mktemp("lenient")
    with real_cluster(directory, config, brokers=1) as running:
        yield running


async def test_topics_make_themselves_where_that_is_allowed(
    lenient_cluster: LocalCluster,
) -> None:
    async with Producer(lenient_cluster.bootstrap) as producer:
        metadata = await producer.send_and_wait("made-itself", b"x", partition=1)
        assert metadata.offset == 0
        with pytest.raises(KafkaError):
            await producer.send_and_wait("not a name", b"x")
    async with Admin(bootstrap_servers=lenient_cluster.bootstrap) as admin:
        assert await admin.list_topics() == ["made-itself"]
        assert len((await admin.describe_topic("made-itself")).partitions) == 2
        # Asking for a topic does not create it.
        with pytest.raises(UnknownTopicOrPartitionError):
            await admin.describe_topic("only-looked-at")
        assert await admin.list_topics() == ["made-itself"]


async def test_topics_do_not_make_themselves_by_default(cluster: LocalCluster) -> None:
    async with Producer(cluster.bootstrap, max_block_ms=2000) as producer:
        with pytest.raises(UnknownTopicOrPartitionError):
            await producer.send("mistyped", b"x")
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        assert "mistyped" not in await admin.list_topics()


async def test_deletion_can_be_forbidden(lenient_cluster: LocalCluster) -> None:
    async with Admin(bootstrap_servers=lenient_cluster.bootstrap) as admin:
        await admin.create_topic("kept", partitions=1, replication_factor=1)
        with pytest.raises(TopicDeletionDisabledError):
            await admin.delete_topics(["kept"])
        # Nor by hand: the controller removes the request.
        async with zookeeper(lenient_cluster) as session:
            await session.create("/admin/delete_topics/kept")
            async with asyncio.timeout(10):
                while await session.exists("/admin/delete_topics/kept"):
                    await asyncio.sleep(0.05)
        assert "kept" in await admin.list_topics()


def test_a_blocking_client_reads_events(cluster: LocalCluster) -> None:
    with sync.Admin(cluster.bootstrap) as admin:
        with pytest.raises(ClientError, match="with"):
            next(admin.events())
        with admin.events(["told"]) as stream:
            admin.create_topic("told", 1, 1)
            kinds = (e.kind for e in stream if isinstance(e, Event))
            assert EventKind.BECAME_LEADER in kinds
        assert list(stream) == []
        with admin.events() as other:
            admin.close()
            assert list(other) == []
