"""`barnabas transaction` on a real cluster: what is open, and a real transaction that hangs."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from barnabas import Consumer, Producer
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.labs.framework.old_producer import OldProducer
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import create_topic
from tests.support.shell import Shell

pytestmark = pytest.mark.integration

VERIFICATION = "transaction.partition.verification.enable"


@pytest.fixture
async def unverified(cluster: LocalCluster, tmp_path: Path) -> AsyncIterator[Shell]:
    """Leaders append what the coordinator does not know, as those before Kafka 3.6 did."""
    shell = Shell(cluster.bootstrap, tmp_path)
    shell.ok("config", "alter", "--broker-default", "--set", f"{VERIFICATION}=false")
    yield shell
    shell.ok("config", "alter", "--broker-default", "--set", f"{VERIFICATION}=true")


async def _committed(cluster: LocalCluster, tp: TopicPartition) -> list[bytes]:
    async with Consumer(
        bootstrap_servers=cluster.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    ) as consumer:
        consumer.assign([tp])
        end = (await consumer.end_offsets([tp]))[tp]
        values: list[bytes] = []
        while await consumer.position(tp) < end:
            values += [record.value or b"" for record in await consumer.poll(500)]
        return values


async def _hang(cluster: LocalCluster, tp: TopicPartition, name: str) -> OldProducer:
    """A batch that arrives when its transaction is aborted, and a record behind it."""
    async with OldProducer(cluster.bootstrap, name) as producer:
        await producer.init()
        await producer.add(tp)
        late = producer.batch(tp, b"late")
        await producer.end(commit=False)
        while not await producer.is_complete():
            await asyncio.sleep(0.05)
        assert await producer.send(tp, late) is ErrorCode.NONE
    async with Producer(cluster.bootstrap) as other:
        await other.send_and_wait(tp.topic, b"behind", partition=tp.partition)
    return producer


async def test_an_open_transaction_is_listed_and_described(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    await create_topic(cluster.bootstrap, "orders", 2)
    shell = Shell(cluster.bootstrap, tmp_path)
    async with Producer(cluster.bootstrap, transactional_id="open") as producer:
        await producer.init_transactions()
        (row,) = shell.rows("transaction", "list", "--state", "Empty")
        assert (row["transactional_id"], row["transaction_state"]) == ("open", "Empty")
        await producer.begin_transaction()
        await producer.send_and_wait("orders", b"1", partition=1)
        (row,) = shell.rows("transaction", "list", "--state", "Ongoing")
        assert row["transactional_id"] == "open"
        assert shell.rows("transaction", "list", "--duration-filter", "3600000") == []
        (described,) = shell.rows("transaction", "describe", "--transactional-id", "open")
        assert described["coordinator_id"] == row["coordinator"]
        assert described["producer_id"] == row["producer_id"]
        assert described["transaction_state"] == "Ongoing"
        assert described["transaction_timeout_ms"] == 60_000
        assert described["topic_partitions"] == ["orders-1"]
        assert 0 <= int(str(described["transaction_duration_ms"])) < 60_000
        arguments = ("--topic", "orders", "--partition", "1")
        (seen,) = shell.rows("transaction", "describe-producers", *arguments)
        assert seen["producer_id"] == row["producer_id"]
        assert seen["current_transaction_start_offset"] == 0
        found = shell.rows("transaction", "find-hanging", "--max-transaction-timeout", "0")
        assert found == [], "its coordinator knows it"
        explained = shell.ok("explain", "orders-1")
        assert "last stable offset 0" in explained.splitlines()[0]
        assert "'open' is open from offset 0 on" in explained
        told = shell.ok("explain", "--transactional-id", "open")
        assert "a transaction is open in orders-1" in told
        assert "a producer at 127.0.0.1:" in told
        await producer.commit_transaction()
    (described,) = shell.rows("transaction", "describe", "--transactional-id", "open")
    assert described["transaction_state"] in ("PrepareCommit", "CompleteCommit")
    heading = shell.ok("transaction", "list").splitlines()[0].split()
    assert heading == ["TRANSACTIONAL", "ID", "COORDINATOR", "PRODUCER", "ID", "TRANSACTION",
                       "STATE"]  # fmt: skip


async def test_a_hanging_transaction_is_found_and_aborted(
    cluster: LocalCluster, unverified: Shell
) -> None:
    await create_topic(cluster.bootstrap, "blocked", 1)
    tp = TopicPartition("blocked", 0)
    producer = await _hang(cluster, tp, "hanging")
    assert await _committed(cluster, tp) == []
    young = unverified.rows("transaction", "find-hanging", "--topic", "blocked")
    assert young == [], "a transaction may be open for 15 minutes"
    find = ("transaction", "find-hanging", "--max-transaction-timeout", "0")
    (found,) = unverified.rows(*find)
    assert found["topic"] == "blocked" and found["producer_id"] == producer.producer_id
    (same,) = unverified.rows(*find, "--topic", "blocked", "--partition", "0")
    assert same["start_offset"] == found["start_offset"]
    start = str(found["start_offset"])
    abort = ("transaction", "abort", "--topic", "blocked", "--partition", "0")
    told = unverified.run(*abort, "--start-offset", "77")
    assert told.returncode == 1
    assert "begins at offset 77" in told.stderr
    done = unverified.ok(*abort, "--start-offset", start, "-o", "json")
    assert json.loads(done) == {"topic": "blocked", "partition": 0, "aborted": True}
    assert unverified.rows(*find) == []
    assert await _committed(cluster, tp) == [b"behind"]


async def test_a_hanging_transaction_is_aborted_by_its_producer(
    cluster: LocalCluster, unverified: Shell
) -> None:
    await create_topic(cluster.bootstrap, "stuck", 1)
    tp = TopicPartition("stuck", 0)
    producer = await _hang(cluster, tp, "stuck")
    abort = ("transaction", "abort", "--topic", "stuck", "--partition", "0",
             "--producer-id", str(producer.producer_id))  # fmt: skip
    find = ("transaction", "find-hanging", "--max-transaction-timeout", "0", "--topic", "stuck")
    (found,) = unverified.rows(*find)
    epochs = ("--producer-epoch", str(found["producer_epoch"]), "--coordinator-epoch")
    mistyped = unverified.run(*abort, *epochs, "1000")
    assert mistyped.returncode == 1 and "INVALID_TXN_STATE" in mistyped.stderr
    unverified.ok(*abort, *epochs, str(found["coordinator_epoch"]))
    refused = unverified.run(*abort, *epochs, str(found["coordinator_epoch"]))
    assert refused.returncode == 1
    assert "has no open transaction in stuck-0" in refused.stderr
    assert await _committed(cluster, tp) == [b"behind"]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ("describe --transactional-id nobody", 1, "there is no transactional id 'nobody'"),
        ("describe --transactional-id ", 1, "INVALID_REQUEST"),
        ("list --state Sleeping", 2, "--state wants one of Empty, Ongoing"),
        ("find-hanging --broker-id 77", 1, "there is no broker 77"),
        ("find-hanging --topic nowhere", 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("abort --topic orders --partition 0 --start-offset 0", 1, "none is open"),
        ("abort --topic orders --partition 9 --start-offset 0", 1, "has no partition 9"),
    ],
)
async def test_what_cannot_be_done_is_told_in_one_line(
    cluster: LocalCluster, tmp_path: Path, arguments: str, code: int, told: str
) -> None:
    shell = Shell(cluster.bootstrap, tmp_path)
    if "orders" not in shell.ok("topic", "list"):
        await create_topic(cluster.bootstrap, "orders", 2)
    refused = shell.run("transaction", *arguments.split(" "))
    assert refused.returncode == code, refused.stderr
    assert told in refused.stderr
    assert "Traceback" not in refused.stderr
    assert refused.stdout == ""


async def test_a_broker_that_is_down_is_no_obstacle(cluster: LocalCluster, tmp_path: Path) -> None:
    shell = Shell(cluster.bootstrap, tmp_path)
    async with Producer(cluster.bootstrap, transactional_id="survivor") as producer:
        await producer.init_transactions()
        (row,) = [
            row
            for row in shell.rows("transaction", "list")
            if row["transactional_id"] == "survivor"
        ]
        broker = int(str(row["coordinator"]))
        await asyncio.to_thread(cluster.kill, broker)
        (described,) = shell.rows("transaction", "describe", "--transactional-id", "survivor")
        assert described["coordinator_id"] != broker
        await asyncio.to_thread(cluster.start_broker, broker)
        assert "survivor" in shell.ok("transaction", "list")


async def test_without_a_broker_the_command_says_so(tmp_path: Path) -> None:
    refused = Shell("127.0.0.1:1", tmp_path).run("transaction", "list")
    assert refused.returncode == 1
    assert "127.0.0.1:1" in refused.stderr
    assert "Traceback" not in refused.stderr
