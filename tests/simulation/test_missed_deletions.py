"""A broker that missed the deletion of a topic does not show the topic until it is restarted.

Only the brokers with a replica have to confirm a deletion. Another one may not hear of it: its
session is over, or the controller dies before its request arrives.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from barnabas import Admin
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import UpdateMetadataRequest, UpdateMetadataResponse
from barnabas_common.messages.topics import CreateTopicsRequest, CreateTopicsResponse, NewTopic
from barnabas_common.runtime import Address, Service
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.store import Store
from barnabas_simulator.campaign import state
from barnabas_simulator.cluster import CLIENT_PORT, INTERNAL_PORT, SimulatedCluster
from barnabas_simulator.loop import run

TOPIC = "flights"


class Story:
    """Four brokers: the controller, two with the replicas, and one that will be away."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        controller = state.controller(cluster)
        assert controller is not None
        self.controller = controller
        self.first, self.second, self.away = (b for b in cluster.broker_ids if b != controller)
        others = [broker_id for broker_id in cluster.broker_ids if broker_id != self.away]
        self.admin = Admin(
            bootstrap_servers=cluster.bootstrap_of(others), runtime=cluster.client_runtime("admin")
        )

    async def create(self, partitions: int) -> None:
        replicas = {p: [self.first, self.second] for p in range(partitions)}
        await self.admin.create_topic(TOPIC, assignments=replicas)

    @property
    def store(self) -> Store:
        """ZooKeeper, as a broker with a replica sees it."""
        store = self.cluster.broker(self.first).membership.store
        assert store is not None
        return store

    def kinds(self) -> set[EventKind]:
        return {event.kind for event in self.cluster.events()}

    def shown(self) -> int:
        """How many partitions of the topic the broker that was away shows to its clients."""
        return len(self.cluster.broker(self.away).metadata_cache.partitions(TOPIC))

    @asynccontextmanager
    async def without_session(self) -> AsyncIterator[None]:
        """One broker has no session, as the others know; afterwards it is registered again."""
        membership = self.cluster.broker(self.away).membership
        epoch = membership.broker_epoch
        self.cluster.part_from_zookeeper(self.away)
        self.cluster.expire_session(self.away)
        known = self.cluster.broker(self.first).metadata_cache
        await until(lambda: self.away not in known.broker_ids())
        yield
        self.cluster.reunite_with_zookeeper(self.away)
        await until(lambda: membership.broker_epoch > epoch)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.1)


def play(test: Callable[[Story], Awaitable[None]]) -> None:
    """Play a test on a cluster that has a topic of six partitions."""

    async def main() -> None:
        cluster = SimulatedCluster(brokers=4)
        await cluster.start()
        story = Story(cluster)
        async with story.admin:
            await story.create(6)
            await until(lambda: story.shown() == 6)
            await test(story)

    run(main())


def test_it_was_deleted_while_the_broker_had_no_session() -> None:
    async def test(story: Story) -> None:
        async with story.without_session():
            await story.admin.delete_topics([TOPIC])
        await until(lambda: story.shown() == 0)

    play(test)


def test_another_topic_has_its_name_and_fewer_partitions() -> None:
    """A producer would send to partitions that no broker has."""

    async def test(story: Story) -> None:
        async with story.without_session():
            await story.admin.delete_topics([TOPIC])
            await story.create(2)
        await until(lambda: story.shown() == 2)

    play(test)


def test_its_znodes_were_removed_by_hand() -> None:
    async def test(story: Story) -> None:
        await remove_by_hand(story.store, znodes.topic_path(TOPIC))
        brokers = story.cluster.brokers().values()
        await until(lambda: not any(b.metadata_cache.contains(TOPIC) for b in brokers))

    play(test)


async def remove_by_hand(store: Store, path: str) -> None:
    for name in await store.session.children(path):
        await remove_by_hand(store, f"{path}/{name}")
    await store.remove(path)


def test_its_deletion_has_begun_and_waits() -> None:
    async def test(story: Story) -> None:
        async with story.without_session():
            story.cluster.expire_session(story.second)
            story.cluster.kill(story.second)
            await story.store.ensure(znodes.delete_topic_path(TOPIC))
            await until(lambda: EventKind.TOPIC_DELETION_STARTED in story.kinds())
        await until(lambda: story.shown() == 0)
        assert await story.store.topic(TOPIC) is not None

    play(test)


def test_the_controller_died_before_it_told_the_broker() -> None:
    async def test(story: Story) -> None:
        cluster = story.cluster
        cluster.cut(story.controller, story.away)
        await story.admin.delete_topics([TOPIC])
        assert story.shown() == 6
        cluster.kill(story.controller)
        await until(lambda: story.shown() == 0)

    play(test)


def test_a_topic_whose_znode_is_malformed_is_still_shown() -> None:
    """Its leaders serve it; the znode may be repaired."""

    async def test(story: Story) -> None:
        cluster = story.cluster
        await story.admin.create_topic("other", assignments={0: [story.first]})
        await story.store.put(znodes.topic_path(TOPIC), b"nonsense")
        await story.store.put(znodes.state_path(TopicPartition("other", 0)), b"nonsense")
        cluster.kill(story.controller)
        await until(lambda: state.controller(cluster) not in (None, story.controller))
        await asyncio.sleep(5)
        cache = cluster.broker(story.away).metadata_cache
        assert story.shown() == 6 and cache.contains("other")

    play(test)


@pytest.mark.parametrize("created_again", [False, True])
def test_a_coordinator_that_missed_it_removes_the_offsets_of_the_topic(created_again: bool) -> None:
    """A group of the next topic of that name began at an offset of the deleted one."""

    async def test(story: Story) -> None:
        cluster, committed = story.cluster, TopicPartition(TOPIC, 0)
        names = [f"g{number}" for number in range(20)]
        for name in names:
            await story.admin.alter_group_offsets(name, {committed: 1000})
        described = await story.admin.describe_groups(names)
        group = next(n for n in names if described[n].coordinator == story.away)
        cluster.cut(story.controller, story.away)
        await story.admin.delete_topics([TOPIC])
        if created_again:
            await story.create(2)
        assert await story.admin.list_group_offsets(group)
        cluster.kill(story.controller)
        async with asyncio.timeout(60):
            while await story.admin.list_group_offsets(group):
                await asyncio.sleep(1)

    play(test)


def test_a_late_message_that_does_not_know_the_topic_yet_removes_no_offsets() -> None:
    """It came over a connection that was half open, and the topic was created meanwhile."""

    async def test(story: Story) -> None:
        cluster, committed = story.cluster, TopicPartition(TOPIC, 0)
        names = [f"g{number}" for number in range(20)]
        for name in names:
            await story.admin.alter_group_offsets(name, {committed: 1000})
        broker = cluster.broker(story.away)
        epoch, cache = broker.replica_manager.highest_controller_epoch, broker.metadata_cache
        alive = [*cache.endpoints("CLIENT"), *cache.endpoints("INTERNAL")]
        late = UpdateMetadataRequest(story.controller, epoch, -1, [], alive, [], [], True)
        late.other_topics = ["__consumer_offsets"]
        channel = cluster.client_runtime("late").network.connect(
            Address(cluster.host(story.away), INTERNAL_PORT), Service.CONTROL
        )
        answer = await channel.call(late, 5.0)
        assert isinstance(answer, UpdateMetadataResponse) and not answer.error_code
        await channel.close()
        assert story.shown() == 0
        await asyncio.sleep(10)
        for name in names:
            assert await story.admin.list_group_offsets(name), name

    play(test)


def test_the_controller_died_while_it_deleted_the_znodes() -> None:
    """The partitions whose states are gone are forgotten like the others."""

    async def test(story: Story) -> None:
        cluster = story.cluster
        cluster.cut(story.controller, story.away)
        cluster.kill(story.controller)
        await story.store.ensure(znodes.delete_topic_path(TOPIC))
        for partition in range(3):
            await story.store.remove(znodes.state_path(TopicPartition(TOPIC, partition)))
        assert story.shown() == 6
        await until(lambda: EventKind.TOPIC_DELETED in story.kinds())
        await until(lambda: story.shown() == 0)

    play(test)


def test_a_topic_with_a_malformed_state_is_forgotten_when_it_is_deleted() -> None:
    """A broker went on showing that partition, and the deletion was answered with a timeout."""

    async def test(story: Story) -> None:
        cluster = story.cluster
        await story.store.put(znodes.state_path(TopicPartition(TOPIC, 0)), b"nonsense")
        cluster.kill(story.controller)
        await until(lambda: state.controller(cluster) not in (None, story.controller))
        assert story.shown() == 6
        await story.admin.delete_topics([TOPIC])
        await until(lambda: story.shown() == 0)

    play(test)


def test_a_creation_is_not_answered_with_the_leaders_of_the_topic_that_had_the_name() -> None:
    async def test(story: Story) -> None:
        cluster = story.cluster
        cluster.cut(story.controller, story.away)
        await story.admin.delete_topics([TOPIC])
        assert story.shown() == 6
        address = Address(cluster.host(story.away), CLIENT_PORT)
        network = cluster.client_runtime("other").network
        channel = network.connect(address, Service.ADMIN)
        request = CreateTopicsRequest(3000, False, [NewTopic(TOPIC, 6, 2)])
        response = await channel.call(request, 10.0)
        await channel.close()
        assert isinstance(response, CreateTopicsResponse)
        assert response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT

    play(test)
