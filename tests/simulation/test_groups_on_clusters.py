"""Consumer groups on whole simulated clusters: brokers, coordinators, clients, and their deaths."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from barnabas import Admin, Consumer, Producer
from barnabas.errors import GroupIdNotFoundError
from barnabas.group.explaining import About
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

TOPIC = "orders"
PARTITIONS = [TopicPartition(TOPIC, number) for number in range(6)]
CONFIG = {"group.initial.rebalance.delay.ms": "500"}


def story(scenario: Callable[[SimulatedCluster], Awaitable[None]], seed: int = 3) -> None:
    async def tell() -> None:
        cluster = SimulatedCluster(seed=seed, config=CONFIG)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(TOPIC, len(PARTITIONS), 3)
        await scenario(cluster)

    run(tell(), seed=seed, max_time=1800.0)


def member(cluster: SimulatedCluster, name: str, topic: str, **options: Any) -> Consumer:
    return Consumer(
        topic,
        bootstrap_servers=cluster.bootstrap,
        runtime=cluster.client_runtime(name),
        **{
            "group_id": "g",
            "client_id": name,
            "auto_offset_reset": "earliest",
            "session_timeout_ms": 6_000,
            "heartbeat_interval_ms": 500,
            **options,
        },
    )


async def produce(cluster: SimulatedCluster, numbers: range) -> None:
    runtime = cluster.client_runtime("producer")
    async with Producer(cluster.bootstrap, runtime=runtime) as producer:
        for number in numbers:
            await producer.send(TOPIC, b"%d" % number, partition=number % len(PARTITIONS))
        await producer.flush()


class Workers:
    """Members that iterate; `done` counts how often each value was worked on."""

    def __init__(self, cluster: SimulatedCluster, **options: Any) -> None:
        self.cluster = cluster
        self.options = options
        self.topic = TOPIC
        self.done: Counter[bytes] = Counter()
        self.consumers: dict[str, Consumer] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def join(self, name: str) -> Consumer:
        consumer = self.consumers[name] = member(self.cluster, name, self.topic, **self.options)
        self.tasks[name] = asyncio.create_task(self._work(consumer))
        return consumer

    async def _work(self, consumer: Consumer) -> None:
        async with consumer:
            async for record in consumer:
                await asyncio.sleep(0.002)
                self.done[record.value or b""] += 1

    async def leave(self, name: str) -> None:
        await self.consumers.pop(name).close()
        await self.tasks.pop(name)

    def die(self, name: str) -> None:
        """Its connections end, and no word of it arrives."""
        self.cluster.network.kill(name)
        self.cluster.network.lose_power(name)  # what its tasks still send goes nowhere
        self.tasks.pop(name).cancel()
        del self.consumers[name]

    async def until_done(self, numbers: range, within: float) -> None:
        async with asyncio.timeout(within):
            while len(self.done) < len(numbers):
                await asyncio.sleep(0.05)

    async def until_shared(self, within: float) -> None:
        """Until the members hold all partitions, each in equal parts, and nothing is due."""
        async with asyncio.timeout(within):
            while not self._shared():
                await asyncio.sleep(0.02)

    def _shared(self) -> bool:
        held = [consumer.assignment() for consumer in self.consumers.values()]
        return (
            sorted(tp for tps in held for tp in tps) == PARTITIONS
            and max(map(len, held)) - min(map(len, held)) <= 1
            and all("reads" in consumer.health()[0] for consumer in self.consumers.values())
        )

    async def end(self) -> None:
        for name in list(self.consumers):
            await self.leave(name)


def test_three_members_share_a_topic_and_describe_shows_them() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        workers = Workers(cluster)
        for name in ("a", "b", "c"):
            workers.join(name)
        await produce(cluster, range(300))
        await workers.until_shared(30)
        await workers.until_done(range(300), 30)
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            assert [g.group_id for g in await admin.list_groups()] == ["g"]
            group = (await admin.describe_groups(["g"]))["g"]
            assert (group.state, group.assignor) == ("Stable", "range")
            assert sorted(m.client_id for m in group.members) == ["a", "b", "c"]
            assert sorted(tp for m in group.members for tp in m.assignment) == PARTITIONS
            await workers.end()
            committed = await admin.list_group_offsets("g")
            assert {tp: at.offset for tp, at in committed.items()} == dict.fromkeys(PARTITIONS, 50)
            await admin.alter_group_offsets("g", {PARTITIONS[0]: 7})
            assert (await admin.list_group_offsets("g"))[PARTITIONS[0]].offset == 7
            await admin.delete_group_offsets("g", [PARTITIONS[0]])
            assert PARTITIONS[0] not in await admin.list_group_offsets("g")
            await admin.delete_groups(["g"])
            assert await admin.list_groups() == []
        assert set(workers.done.values()) == {1}

    story(scenario)


def test_groups_are_deleted_although_another_one_does_not_exist() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            for group_id in ("a", "b"):
                await admin.alter_group_offsets(group_id, {PARTITIONS[0]: 1})
            with pytest.raises(GroupIdNotFoundError, match="missing"):
                await admin.delete_groups(["a", "missing", "b"])
            assert await admin.list_groups() == []

    story(scenario)


def test_the_partitions_of_a_dead_member_go_to_the_others() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        workers = Workers(cluster)
        for name in ("a", "b", "c"):
            workers.join(name)
        await workers.until_shared(30)
        loop = asyncio.get_running_loop()
        workers.die("b")
        died = loop.time()
        await workers.until_shared(30)
        assert loop.time() - died <= 6.0 + 0.5 + 2.0, "session timeout, one heartbeat, 2 s"
        await produce(cluster, range(100))
        await workers.until_done(range(100), 30)
        await workers.end()

    story(scenario)


def test_the_group_goes_on_when_its_coordinator_dies() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        workers = Workers(cluster, auto_commit_interval_ms=200)
        for name in ("a", "b"):
            workers.join(name)
        await produce(cluster, range(100))
        await workers.until_done(range(100), 60)
        membership = workers.consumers["a"]._membership
        assert membership is not None
        cluster.kill(membership.coordinator.broker_id)
        await produce(cluster, range(100, 200))
        await workers.until_done(range(200), 60)
        await workers.until_shared(30)
        await workers.end()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            committed = await admin.list_group_offsets("g")
        assert sum(at.offset for at in committed.values()) == 200
        assert set(workers.done.values()) == {1}, "no generation was lost, so nothing is read twice"

    story(scenario)


def test_members_leave_a_coordinator_that_only_they_can_reach() -> None:
    """Cut off from ZooKeeper and from all brokers, it does not learn that it has a successor."""

    async def scenario(cluster: SimulatedCluster) -> None:
        workers = Workers(cluster, auto_commit_interval_ms=200, metadata_max_age_ms=10_000)
        workers.join("a")
        await produce(cluster, range(60))
        await workers.until_done(range(60), 60)
        membership = workers.consumers["a"]._membership
        assert membership is not None
        old = membership.coordinator.broker_id
        cluster.part_from_zookeeper(old)
        for other in set(cluster.broker_ids) - {old}:
            cluster.cut(old, other)
            cluster.cut(other, old)
        workers.join("b")
        await workers.until_shared(60)
        assert membership.coordinator.broker_id != old
        await produce(cluster, range(60, 120))
        await workers.until_done(range(120), 60)
        await workers.end()

    story(scenario)


def test_an_idle_member_leaves_a_coordinator_that_only_it_can_reach() -> None:
    """Its heartbeats are answered, and it commits nothing that would be refused."""

    async def scenario(cluster: SimulatedCluster) -> None:
        workers = Workers(cluster, enable_auto_commit=False, metadata_max_age_ms=10_000)
        workers.join("a")
        await workers.until_shared(60)
        membership = workers.consumers["a"]._membership
        assert membership is not None
        old = membership.coordinator.broker_id
        cluster.part_from_zookeeper(old)
        for other in set(cluster.broker_ids) - {old}:
            cluster.cut(old, other)
            cluster.cut(other, old)
        async with asyncio.timeout(60):
            while membership.coordinator.broker_id == old:
                await asyncio.sleep(0.1)
            await workers.until_shared(60)
        await workers.end()

    story(scenario)


def test_a_cooperative_join_stops_no_partition_that_stays() -> None:
    """While a third member joins, every partition that stays with its member is read on."""

    async def scenario(cluster: SimulatedCluster) -> None:
        workers = Workers(cluster, partition_assignment_strategy=["cooperative-sticky"])
        workers.join("a")
        workers.join("b")
        await workers.until_shared(30)
        before = {name: set(c.assignment()) for name, c in workers.consumers.items()}
        watched: dict[str, list[set[TopicPartition]]] = {"a": [], "b": []}

        async def watch() -> None:
            while True:
                for name, seen in watched.items():
                    seen.append(set(workers.consumers[name].assignment()))
                await asyncio.sleep(0.005)

        watcher = asyncio.create_task(watch())
        workers.join("c")
        await workers.until_shared(30)
        watcher.cancel()
        for name, seen in watched.items():
            after = set(workers.consumers[name].assignment())
            assert after < before[name]
            assert all(held >= after for held in seen), "a partition that stays was given up"
        await workers.end()

    story(scenario)


def test_a_static_member_that_restarts_rebalances_nothing() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        workers = Workers(cluster)
        workers.join("a")
        workers.options["group_instance_id"] = "second"
        workers.join("b")
        await workers.until_shared(30)
        membership = workers.consumers["a"]._membership
        assert membership is not None
        generation = membership.member.generation
        await workers.leave("b")
        workers.join("b")
        await asyncio.sleep(3)
        await workers.until_shared(30)
        assert membership.member.generation == generation
        await workers.end()

    story(scenario)


def test_a_static_leader_that_restarts_notices_that_its_topic_has_grown() -> None:
    """It does not assign when it comes back, so nothing else would tell the group (KIP-814)."""

    async def scenario(cluster: SimulatedCluster) -> None:
        workers = Workers(cluster, partition_assignment_strategy=["range"])
        workers.options["group_instance_id"] = "leader"
        workers.join("a")
        await workers.until_shared(30)
        workers.options["group_instance_id"] = "other"
        workers.join("b")
        await workers.until_shared(30)
        first = workers.consumers["a"]._membership
        assert first is not None and first.member.is_leader
        await workers.leave("a")
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_partitions(TOPIC, len(PARTITIONS) + 1)
        workers.options["group_instance_id"] = "leader"
        workers.join("a")
        added = TopicPartition(TOPIC, len(PARTITIONS))
        async with asyncio.timeout(30):
            while not any(added in c.assignment() for c in workers.consumers.values()):
                await asyncio.sleep(0.1)
        await workers.end()

    story(scenario)


def test_a_partition_that_a_consumer_does_not_know_yet_is_read() -> None:
    """Its metadata is minutes old, and the one that assigns knows more."""

    async def scenario(cluster: SimulatedCluster) -> None:
        runtime = cluster.client_runtime("reader")
        consumer = Consumer(
            bootstrap_servers=cluster.bootstrap, runtime=runtime, auto_offset_reset="earliest"
        )
        added = TopicPartition(TOPIC, len(PARTITIONS))
        async with consumer:
            consumer.assign(PARTITIONS)
            assert await consumer.poll(timeout_ms=500) == []
            async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
                await admin.create_partitions(TOPIC, len(PARTITIONS) + 1)
            runtime = cluster.client_runtime("producer")
            async with Producer(cluster.bootstrap, runtime=runtime) as producer:
                await producer.send_and_wait(TOPIC, b"new", partition=added.partition)
            consumer.assign([*PARTITIONS, added])
            (record,) = await consumer.poll(timeout_ms=5_000)
            assert (record.topic_partition, record.value) == (added, b"new")

    story(scenario)


def test_a_producer_sends_to_a_partition_that_it_does_not_know_yet() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        runtime = cluster.client_runtime("producer")
        added = TopicPartition(TOPIC, len(PARTITIONS))
        async with Producer(cluster.bootstrap, runtime=runtime) as producer:
            await producer.send_and_wait(TOPIC, b"old", partition=0)
            async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
                await admin.create_partitions(TOPIC, len(PARTITIONS) + 1)
            stored = await producer.send_and_wait(TOPIC, b"new", partition=added.partition)
            assert (stored.partition, stored.offset) == (added.partition, 0)

    story(scenario)


@pytest.mark.lengthy
def test_a_group_of_fifty_settles_within_two_seconds_of_a_heartbeat() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("many", 100, 3)
            workers = Workers(cluster, heartbeat_interval_ms=3_000)
            workers.topic = "many"
            for number in range(50):
                workers.join(f"m{number}")
            await until_settled(workers, 50)
            loop = asyncio.get_running_loop()
            workers.die("m7")
            async with asyncio.timeout(20):
                while (await admin.describe_groups(["g"]))["g"].state == "Stable":
                    await asyncio.sleep(0.05)
            expired = loop.time()
            await until_settled(workers, 49)
            assert loop.time() - expired <= 3.0 + 2.0
            await workers.end()

    story(scenario)


async def until_settled(workers: Workers, members: int) -> None:
    """Until all members are stable in one generation, with two or three partitions each."""
    async with asyncio.timeout(60):
        while True:
            consumers = list(workers.consumers.values())
            generations = {
                c._membership.member.generation.number for c in consumers if c._membership
            }
            counts = [len(c.assignment()) for c in consumers]
            if (
                len(generations) == 1
                and sum(counts) == 100
                and min(counts) >= 2
                and all("reads" in c.health()[0] for c in consumers)
            ):
                assert len(consumers) == members
                return
            await asyncio.sleep(0.02)


def test_offsets_kept_in_zookeeper_are_read_on_from_and_shown() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await produce(cluster, range(60))
        workers = Workers(cluster, offsets_storage="zookeeper")
        workers.join("a")
        await workers.until_done(range(60), 60)
        await workers.end()
        await produce(cluster, range(60, 90))
        workers.join("b")
        await workers.until_done(range(90), 60)
        await workers.end()
        assert set(workers.done.values()) == {1}
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            kept = await admin.list_group_offsets("g", "zookeeper")
            assert sum(at.offset for at in kept.values()) == 90
            assert await admin.list_group_offsets("g") == {}
            assert [g.group_id for g in await admin.list_groups(storage="zookeeper")] == ["g"]
            await admin.delete_groups(["g"], "zookeeper")
            assert await admin.list_groups(storage="zookeeper") == []

    story(scenario)


def test_a_group_is_explained_from_its_coordinators_events() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        workers = Workers(cluster)
        workers.join("a")
        workers.join("b")
        await workers.until_shared(30)
        workers.die("b")
        await workers.until_shared(30)
        cluster.network.lose_power("a")  # it is a member until its session expires
        await produce(cluster, range(60))
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            sentences = await admin.explain_group("g")
        said = {about: [s.text for s in sentences if s.about == about] for about in About}
        assert any("expired" in text for text in said[About.REBALANCE])
        assert any(f"reads {PARTITIONS[0]}" in text for text in said[About.OWNER])
        assert len(said[About.LAG]) == len(PARTITIONS)
        assert said[About.DOUBT] == []
        workers.die("a")

    story(scenario)
