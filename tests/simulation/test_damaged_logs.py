"""Bits of a log change on one broker's disk, in a whole cluster; all is read all the same."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from barnabas import Admin, Consumer, Producer
from barnabas_broker.log.segment.batch_scan import DamagedBatch
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import Event, EventKind
from barnabas_common.messages.produce import ProducePartition, ProduceRequest
from barnabas_common.record.batch import batches
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.simulation.test_shortage_in_a_role import take_role
from tests.support.idempotent import sent
from tests.support.replication_world import TP, Incarnation, ReplicationWorld
from tests.support.whole_cluster import led_by, send

KEY = TopicPartition("rotten", 0)
FOLDER = f"/data/{KEY}"
BATCHES = 8
EXPECTED = [b"%d" % number for number in range(BATCHES)]
CONFIG = {"auto.leader.rebalance.enable": "false"}

# Where a header is changed: the byte, counted from the start of the batch, and its bits.
FIELDS = {
    "offset, low": (7, 1),
    "offset, high": (1, 1),
    "length, low": (11, 1),
    "length, high": (9, 1),
    "magic": (16, 1),
    "checksum": (18, 1),
    "last offset delta": (24, 1),
}
EPOCH_FIELDS = {
    "epoch, low": (15, 1),
    "epoch, high": (13, 1),
    "epoch, sign": (12, 128),
}
"""Consumers and a leader do not need a batch's own epoch, but followers do."""


def segment(cluster: SimulatedCluster, broker_id: int, key: TopicPartition = KEY) -> bytearray:
    files = cluster.disks[broker_id].look_into(f"/data/{key.topic}-{key.partition}")
    return files[f"{0:020}.log"].data


def flip(cluster: SimulatedCluster, broker_id: int, number: int, field: str) -> None:
    """Change a bit of one batch's header."""
    data, (byte, bits) = segment(cluster, broker_id), (FIELDS | EPOCH_FIELDS)[field]
    data[[position for position, _ in batches(bytes(data))][number] + byte] ^= bits


def told(cluster: SimulatedCluster, kind: EventKind) -> list[Event]:
    return [event for event in cluster.events() if event.kind is kind]


async def read(cluster: SimulatedCluster, count: int) -> list[bytes]:
    """A leader whose copy is damaged is no reason for an error: another replica leads soon."""
    values: list[bytes] = []
    async with Consumer(
        bootstrap_servers=cluster.bootstrap, runtime=cluster.client_runtime("consumer")
    ) as consumer:
        consumer.assign([KEY])
        consumer.seek(KEY, 0)
        while len(values) < count:
            values += [record.value or b"" for record in await consumer.poll(timeout_ms=500)]
    return values


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.1)


def in_sync(cluster: SimulatedCluster, *brokers: int) -> bool:
    return any(
        partition.leadership is not None and set(partition.leadership.isr.committed) == set(brokers)
        for broker_id in brokers
        if (partition := cluster.broker(broker_id).replica_manager.partitions.get(KEY)) is not None
    )


async def written(cluster: SimulatedCluster) -> None:
    await cluster.start()
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(KEY.topic, assignments={0: [1, 2, 3]})
    for value in EXPECTED:
        await send(cluster, KEY, [value])


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("number", [3, BATCHES - 1])
def test_a_consumer_gets_all_although_a_header_is_damaged_at_the_leader(
    field: str, number: int
) -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=6, config=CONFIG)
        await written(cluster)
        flip(cluster, 1, number, field)
        assert await read(cluster, BATCHES) == EXPECTED
        event = told(cluster, EventKind.LOG_DAMAGED)[-1]
        assert event.details["offset"] == number
        await until(lambda: in_sync(cluster, 1, 2, 3))
        assert segment(cluster, 1) == segment(cluster, 2) == segment(cluster, 3)

    run(story(), seed=6, max_time=120.0)


@pytest.mark.parametrize("field", FIELDS | EPOCH_FIELDS)
@pytest.mark.parametrize("number", [3, BATCHES - 1])
def test_a_follower_that_was_away_gets_all_although_a_header_is_damaged_at_the_leader(
    field: str, number: int
) -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=6, config=CONFIG)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(KEY.topic, assignments={0: [1, 2, 3]})
        cluster.kill(3)
        for value in EXPECTED:
            await send(cluster, KEY, [value])
        flip(cluster, 1, number, field)
        cluster.start_broker(3)
        await led_by(cluster, KEY, 2)
        await until(lambda: in_sync(cluster, 1, 2, 3))
        event = told(cluster, EventKind.LOG_DAMAGED)[-1]
        assert event.details["offset"] == number
        assert segment(cluster, 1) == segment(cluster, 2) == segment(cluster, 3)
        assert await read(cluster, BATCHES) == EXPECTED

    run(story(), seed=6, max_time=120.0)


# ---- found at a start, while the state of the producers is rebuilt from the log


ALONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
PRODUCER_ID_LOW = 50
"""The last byte of the producer id, counted from the start of a batch."""


async def transactions(cluster: SimulatedCluster, replicas: list[int]) -> None:
    """Commit three transactions, and let every replica seal and flush its first segment."""
    await cluster.start()
    async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
        await admin.create_topic(KEY.topic, assignments={0: replicas})
    async with Producer(
        bootstrap_servers=cluster.bootstrap,
        runtime=cluster.client_runtime("producer"),
        transactional_id="T",
    ) as producer:
        await producer.init_transactions()
        for number in range(3):
            await producer.begin_transaction()
            await producer.send_and_wait(KEY.topic, b"%d" % number, partition=0)
            await producer.commit_transaction()
        await until(lambda: all(log_of(cluster, b).high_watermark == 6 for b in replicas))
        for broker_id in replicas:
            log_of(cluster, broker_id).roll()
            log_of(cluster, broker_id).flush()
        await producer.begin_transaction()
        await producer.send_and_wait(KEY.topic, b"3", partition=0)
        await producer.commit_transaction()
    await until(lambda: all(log_of(cluster, b).high_watermark == 8 for b in replicas))
    for broker_id in replicas:
        log_of(cluster, broker_id).flush()
        await cluster.broker(broker_id).log_manager.checkpoint_all_offsets()
        await cluster.broker(broker_id).log_manager.checkpoint_high_watermarks()


def log_of(cluster: SimulatedCluster, broker_id: int) -> UnifiedLog:
    partition = cluster.broker(broker_id).replica_manager.partitions.get(KEY)
    assert partition is not None and partition.log is not None
    return partition.log


def damage_a_marker(cluster: SimulatedCluster, broker_id: int) -> None:
    """Let a killed broker find no snapshot of the producers, and another one in a marker."""
    disk, folder = cluster.disks[broker_id], f"/data/{KEY.topic}-{KEY.partition}"
    for name in disk.list(folder):
        if name.endswith(".snapshot"):
            disk.remove(f"{folder}/{name}")
    data = segment(cluster, broker_id)
    third = [position for position, header in batches(bytes(data)) if header.is_control][1]
    data[third + PRODUCER_ID_LOW] ^= 1


MARKER = 3
"""The offset of the second marker."""


def is_sound(cluster: SimulatedCluster, broker_id: int) -> bool:
    """Whether the replica has all, and knows that no transaction is open."""
    partition = cluster.broker(broker_id).replica_manager.partitions.get(KEY)
    log = partition.log if partition is not None else None
    return log is not None and log.log_end_offset == log.last_stable_offset == 8


@pytest.mark.parametrize("leader", [1, 2], ids=["follower", "leader"])
def test_after_all_were_killed_a_replica_that_finds_damage_at_its_start_mends_its_log(
    leader: int,
) -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=8, config=CONFIG)
        await transactions(cluster, [leader, *({1, 2, 3} - {leader})])
        for broker_id in (1, 2, 3):
            cluster.pause(broker_id)  # so that none sees another die
        for broker_id in (1, 2, 3):
            cluster.kill(broker_id)
        damage_a_marker(cluster, 2)
        for broker_id in (2, 1, 3):
            cluster.start_broker(broker_id)
        await cluster.serving()
        await until(lambda: in_sync(cluster, 1, 2, 3) and is_sound(cluster, 2))
        (event,) = told(cluster, EventKind.LOG_DAMAGED)
        assert event.details["offset"] == MARKER
        (cut,) = [
            e for e in told(cluster, EventKind.LOG_TRUNCATED) if e.details["rule"] == "damage"
        ]
        assert cut.details["to_offset"] == MARKER

    run(story(), seed=8, max_time=300.0)


def test_a_replica_out_of_sync_that_finds_damage_at_its_start_mends_its_log() -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=8, config=CONFIG)
        await transactions(cluster, [1, 2, 3])
        cluster.kill(2)
        await until(lambda: in_sync(cluster, 1, 3))
        damage_a_marker(cluster, 2)
        cluster.start_broker(2)
        await cluster.serving()
        await until(lambda: in_sync(cluster, 1, 2, 3) and is_sound(cluster, 2))
        (event,) = told(cluster, EventKind.LOG_DAMAGED)
        assert event.details["offset"] == MARKER and "has the rest" in event.cause

    run(story(), seed=8, max_time=300.0)


def test_the_only_replica_that_finds_damage_at_its_start_leads_and_cuts_nothing() -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=8, brokers=1, config={**CONFIG, **ALONE})
        await transactions(cluster, [1])
        cluster.kill(1)
        damage_a_marker(cluster, 1)
        before = bytes(segment(cluster, 1))
        cluster.start_broker(1)
        await cluster.serving()
        await until(lambda: bool(told(cluster, EventKind.LOG_DAMAGED)))
        (event,) = told(cluster, EventKind.LOG_DAMAGED)
        assert event.details["offset"] == MARKER and "nothing is truncated" in event.cause
        assert log_of(cluster, 1).log_end_offset == 8
        assert bytes(segment(cluster, 1)) == before

    run(story(), seed=8, max_time=300.0)


async def three_records_on_two() -> ReplicationWorld:
    """Broker 1 leads, 2 follows, and both have the records."""
    world = ReplicationWorld()
    await world.start(1, 2)
    await world.create(1, 2)
    for value in (b"a", b"b", b"c"):
        assert (await world.produce(value)).error_code == ErrorCode.NONE
    await world.until_equal(1, 2)
    return world


@pytest.mark.parametrize("leader", [1, 2], ids=["as a follower", "as the leader"])
def test_a_member_of_the_isr_refuses_its_role_and_has_handed_over_only_then(leader: int) -> None:
    async def scenario() -> None:
        world = await three_records_on_two()
        await world.on(2, world.incarnations[2].logs.flush(world.log(2)))
        world.kill(2)
        await world.start(2)
        incarnation = world.incarnations[2]
        log = incarnation.logs.get(TP)
        assert log is not None and log.damage is None
        log.damage = DamagedBatch(1, "CRC")
        assert not told_by(incarnation), "what is done about it is not known yet"
        await world.elect(leader)
        (event,) = told_by(incarnation)
        assert event.details["offset"] == 1 and "refuses its role" in event.cause
        assert world.partition(2).leadership is None and log.log_end_offset == 3
        await world.elect(1, isr=(1,))
        assert await take_role(world, 2) in (ErrorCode.NONE, ErrorCode.STALE_CONTROLLER_EPOCH)
        await world.until(lambda: world.isr() == (1, 2))
        await world.until_equal(1, 2)
        assert len(told_by(incarnation)) == 1

    run(scenario())


def told_by(incarnation: Incarnation) -> list[Event]:
    return [one for one in incarnation.events.since(0) if one.kind is EventKind.LOG_DAMAGED]


# ---- found by a follower that must truncate


@asynccontextmanager
async def deposed(cluster: SimulatedCluster) -> AsyncIterator[None]:
    """Broker 1 has a record that must be truncated. Its log is damaged within the block; broker 2
    leads then, and at the end all three are in sync."""
    cluster.pause(2)
    cluster.pause(3)
    await send(cluster, KEY, [b"never committed"], acks=1)
    cluster.pause(1)
    yield
    cluster.resume(2)
    cluster.resume(3)
    await led_by(cluster, KEY, 2)
    await send(cluster, KEY, [b"%d" % BATCHES])
    cluster.resume(1)
    await until(lambda: bool(told(cluster, EventKind.LOG_DAMAGED)))
    await until(lambda: in_sync(cluster, 1, 2, 3))


@pytest.mark.parametrize("lookup", ["fetch", "offsets-for-leader-epoch"])
def test_a_deposed_leader_that_cannot_truncate_its_damaged_log_fetches_all_again(
    lookup: str,
) -> None:
    async def story() -> None:
        cluster = SimulatedCluster(seed=6, config=CONFIG | {"replica.truncation.lookup": lookup})
        await written(cluster)
        async with deposed(cluster):
            flip(cluster, 1, 3, "magic")
        assert segment(cluster, 1) == segment(cluster, 2) == segment(cluster, 3)
        (event,) = told(cluster, EventKind.LOG_DAMAGED)
        assert event.details["offset"] == BATCHES and "broker 2 leads" in event.cause
        assert await read(cluster, BATCHES + 1) == [*EXPECTED, b"%d" % BATCHES]

    run(story(), seed=6, max_time=120.0)


@pytest.mark.parametrize(("number", "kept"), [(7, 6), (6, 3)])
def test_it_keeps_the_segments_before_the_damage(number: int, kept: int) -> None:
    """Each has three batches. Before a damaged first one, the segment in front goes too."""

    async def story() -> None:
        cluster = SimulatedCluster(seed=6, config=CONFIG | {"log.segment.bytes": "240"})
        await written(cluster)
        files = cluster.disks[1].look_into(FOLDER)
        assert sorted(name for name in files if name.endswith(".log")) == [
            f"{base:020}.log" for base in (0, 3, 6)
        ]
        async with deposed(cluster):
            base = number - number % 3
            data = files[f"{base:020}.log"].data
            data[[position for position, _ in batches(bytes(data))][number - base] + 16] ^= 1
        damaged = [
            e for e in told(cluster, EventKind.LOG_TRUNCATED) if e.details["rule"] == "damage"
        ]
        assert [event.details["to_offset"] for event in damaged] == [kept]
        assert await read(cluster, BATCHES + 1) == [*EXPECTED, b"%d" % BATCHES]

    run(story(), seed=6, max_time=120.0)


def test_a_member_of_the_isr_that_cannot_truncate_its_damaged_log_leaves_the_isr_first() -> None:
    async def scenario() -> None:
        world = await three_records_on_two()
        world.cut(1, 2)
        await world.produce(b"never committed", acks=1)
        data = world.disks[1].look_into(f"/data/{TP}")[f"{0:020}.log"].data
        data[[position for position, _ in batches(bytes(data))][1] + 16] ^= 1
        await world.elect(2, isr=(1, 2))
        world.heal(1, 2)
        log, incarnation = world.log(1), world.incarnations[1]
        await world.until(lambda: world.partition(1).waits_for_role)
        assert log.log_end_offset == 4, "it is still in the ISR"
        assert not told_by(incarnation), "what is done about it is not known yet"
        assert await take_role(world, 1) == ErrorCode.CORRUPT_MESSAGE
        (event,) = told_by(incarnation)
        assert "refuses its role" in event.cause and log.log_end_offset == 4
        await world.elect(2, isr=(2,))
        await world.until_equal(1, 2)
        assert world.log(1).log_end_offset == 3

    run(scenario())


# ---- found by a truncation, while the state of the producers is rebuilt from what is left


async def send_as_producer(world: ReplicationWorld, sequence: int, acks: int = -1) -> None:
    """A batch of more bytes than lie between two entries of the index."""
    records = sent(b"%04d" % sequence * 2000, sequence=sequence)
    request = ProduceRequest(acks, 5000, [ProducePartition(*TP, records)])
    response = await world.on(1, world.incarnations[1].manager.produces.produce(request))
    assert [one.error_code for one in response.partitions] == [ErrorCode.NONE]


@pytest.mark.parametrize(
    ("isr", "eligible"),
    [((2,), ()), ((2,), (1,)), ((1, 2), ())],
    ids=["out of sync", "eligible", "in sync"],
)
@pytest.mark.parametrize("damaged", [[1], [2], [0, 2]])
@pytest.mark.parametrize("rule", ["leader-epoch", "high-watermark"])
def test_a_truncation_that_cannot_read_what_is_left_has_it_fetched_again(
    rule: str, damaged: list[int], isr: tuple[int, ...], eligible: tuple[int, ...]
) -> None:
    """Otherwise the replica would not know the last batches of the producers, when it leads."""

    async def scenario() -> None:
        world = ReplicationWorld(config={"replica.truncation": rule})
        await world.start(1, 2)
        await world.create(1, 2)
        for sequence in range(6):
            await send_as_producer(world, sequence)
        await world.until_equal(1, 2)
        world.cut(1, 2)
        await send_as_producer(world, 6, acks=1)
        data = world.disks[1].look_into(f"/data/{TP}")[f"{0:020}.log"].data
        places = [position for position, _ in batches(bytes(data))]
        for number in damaged:
            data[places[number] + 16] ^= 1
        asked: list[bool] = []
        world.incarnations[1].manager.damaged._ask_for_roles = lambda: asked.append(True)
        await world.elect(2, isr=isr, eligible=eligible)
        world.heal(1, 2)
        await world.until(lambda: world.partition(1).waits_for_role)
        assert asked
        may_be_elected = 1 in (*isr, *eligible)
        refusal = ErrorCode.CORRUPT_MESSAGE if may_be_elected else ErrorCode.NONE
        assert await take_role(world, 1) == refusal
        assert not may_be_elected or world.log(1).log_end_offset == 6
        await world.elect(2, isr=(2,))
        await world.until_equal(1, 2)
        assert world.log(1).producers.entries == world.log(2).producers.entries
        (event, *_) = told_by(world.incarnations[1])
        assert event.details["offset"] == damaged[0]

    run(scenario())
