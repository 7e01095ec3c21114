"""What a broker knows about the cluster from the controller's UpdateMetadata."""

import asyncio
from dataclasses import replace

from barnabas_broker.replica.metadata_cache import MetadataCache
from barnabas_common.messages.control import (
    BrokerEndpoint,
    SuspectedBroker,
    UpdateMetadataPartition,
    UpdateMetadataRequest,
)
from barnabas_common.runtime import Address
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator import loop as virtual


def state(topic: str, partition: int, leader: int = 1, epoch: int = 0) -> UpdateMetadataPartition:
    return UpdateMetadataPartition(
        topic, partition, f"id-of-{topic}", 1, leader, epoch, 0, [1, 2], [1, 2, 3]
    )


def update(
    *partitions: UpdateMetadataPartition, brokers: tuple[int, ...] = (2, 1)
) -> UpdateMetadataRequest:
    endpoints = [
        BrokerEndpoint(broker, listener, f"host{broker}", port + broker)
        for broker in brokers
        for listener, port in (("CLIENT", 9000), ("INTERNAL", 9100))
    ]
    return UpdateMetadataRequest(1, 1, -1, list(partitions), endpoints)


def test_an_empty_cache_knows_no_one() -> None:
    cache = MetadataCache()
    assert cache.topics() == []
    assert cache.controller_id == -1
    assert cache.address_of(1, "INTERNAL") is None
    assert not cache.is_alive(1)


def test_brokers_are_found_by_listener_and_sorted() -> None:
    cache = MetadataCache()
    cache.update(update())
    assert [endpoint.broker_id for endpoint in cache.endpoints("CLIENT")] == [1, 2]
    assert cache.address_of(2, "INTERNAL") == Address("host2", 9102)
    assert cache.address_of(2, "OTHER") is None
    assert cache.endpoints("OTHER") == []


def test_the_list_of_brokers_is_replaced_whole() -> None:
    cache = MetadataCache()
    cache.update(update())
    cache.update(update(brokers=(2,)))
    assert cache.broker_ids() == [2]
    assert not cache.is_alive(1)


def test_a_broker_that_is_suspected_or_shutting_down_is_registered_and_not_alive() -> None:
    """It must not join an ISR, and clients must not be sent to it for their coordinator."""
    cache = MetadataCache()
    going = update(brokers=(1, 2, 3))
    going.shutting_down_brokers, going.suspected_brokers = [2], [SuspectedBroker(3, 7)]
    cache.update(going)
    assert (cache.broker_ids(), cache.alive()) == ([1, 2, 3], [1])
    assert [cache.is_alive(broker_id) for broker_id in (1, 2, 3)] == [True, False, False]
    assert cache.suspects == {3: 7}
    cache.update(update(brokers=(1, 2, 3)))
    assert cache.alive() == [1, 2, 3]


def test_topics_that_do_not_exist_are_forgotten_if_all_are_named() -> None:
    cache = MetadataCache()
    cache.update(update(state("a", 0), state("b", 0), state("c", 0)))
    cache.update(replace(update(state("b", 0)), names_all_topics=True, other_topics=["c"]))
    assert cache.topics() == ["b", "c"]


def test_partitions_of_an_earlier_topic_of_that_name_are_forgotten() -> None:
    cache = MetadataCache()
    cache.update(update(state("a", 0), state("a", 1)))
    another = update(replace(state("a", 0), topic_id="another"), state("b", 0))
    assert cache.replaced_by(another) == {"another": [("a", 0), ("a", 1)]}
    cache.update(another)
    assert not cache.replaced_by(another)
    assert [state.partition for state in cache.partitions("a")] == [0]
    assert cache.topic_id("a") == "another"


def test_a_partition_without_state_is_known_and_replaces_no_state() -> None:
    cache = MetadataCache()
    cache.update(update(state("a", 0, leader=2)))
    without = [replace(state("a", p), leader=-1, leader_epoch=-1) for p in (0, 1)]
    cache.update(replace(update(), partitions_without_state=without))
    assert [(s.partition, s.leader) for s in cache.partitions("a")] == [(0, 2), (1, -1)]
    cache.update(update(state("a", 1, leader=3)))
    assert [(s.partition, s.leader) for s in cache.partitions("a")] == [(0, 2), (1, 3)]


def test_partitions_without_state_replace_those_of_an_earlier_topic() -> None:
    cache = MetadataCache()
    cache.update(update(state("a", 0), state("a", 1)))
    without = [replace(state("a", 0), topic_id="another", leader=-1, leader_epoch=-1)]
    another = replace(update(), partitions_without_state=without)
    assert cache.replaced_by(another) == {"another": [("a", 0), ("a", 1)]}
    cache.update(another)
    assert [(s.partition, s.leader) for s in cache.partitions("a")] == [(0, -1)]


def test_partitions_not_named_stay_as_they_were() -> None:
    cache = MetadataCache()
    cache.update(update(state("a", 1), state("a", 0), state("b", 0)))
    cache.update(update(state("a", 1, leader=2, epoch=5)))
    assert [(s.partition, s.leader) for s in cache.partitions("a")] == [(0, 1), (1, 2)]
    assert cache.topics() == ["a", "b"]
    assert cache.topic_id("a") == "id-of-a"


def test_leader_minus_two_removes_the_topic() -> None:
    cache = MetadataCache()
    cache.update(update(state("a", 0), state("a", 1), state("b", 0)))
    cache.update(update(state("a", 0, leader=-2), state("a", 1, leader=-2)))
    assert not cache.contains("a")
    assert cache.partitions("a") == []
    assert cache.topics() == ["b"]


def test_a_late_deletion_removes_nothing_of_the_topic_that_has_the_name_now() -> None:
    cache = MetadataCache()
    cache.update(update(state("a", 0)))
    late = update(replace(state("a", 0, leader=-2), topic_id="another"))
    assert cache.deleted_by(late) == []
    cache.update(late)
    assert cache.contains("a")


def test_a_state_newer_than_the_one_that_is_sent_is_kept_until_it_is_passed() -> None:
    """ZooKeeper has been set back; the next controller may be on this broker."""
    cache, key = MetadataCache(), TopicPartition("a", 0)
    assert cache.newest_state(key, "id-of-a") is None
    newest = state("a", 0, leader=3, epoch=7)
    cache.update(update(newest))
    for epoch in (2, 4):
        cache.update(update(state("a", 0, epoch=epoch)))
        assert cache.partitions("a")[0].leader_epoch == epoch
        assert cache.newest_state(key, "id-of-a") == newest
        assert cache.newest_state(key, "another") is None
    cache.update(update(state("a", 0, epoch=8)))
    assert cache.newest_state(key, "id-of-a") == state("a", 0, epoch=8)
    cache.update(update(state("a", 0, epoch=1)))
    cache.update(update(replace(state("a", 0), topic_id="another")))
    assert cache.newest_state(key, "another") == cache.partition(*key)
    cache.update(update(replace(state("a", 0, leader=-2), topic_id="another")))
    assert cache.newest_state(key, "another") is None


def test_waiting_ends_with_the_update_that_makes_it_true() -> None:
    async def scenario() -> tuple[bool, float]:
        cache = MetadataCache()
        loop = asyncio.get_running_loop()
        loop.call_later(1.0, cache.update, update(state("a", 0)))
        loop.call_later(2.0, cache.update, update(state("b", 0)))
        found = await cache.wait_for(lambda: cache.contains("b"), timeout=10.0)
        return found, loop.time()

    assert virtual.run(scenario()) == (True, 2.0)


def test_waiting_gives_up_when_the_time_is_over() -> None:
    async def scenario() -> tuple[bool, float]:
        cache = MetadataCache()
        found = await cache.wait_for(lambda: cache.contains("b"), timeout=3.0)
        return found, asyncio.get_running_loop().time()

    assert virtual.run(scenario()) == (False, 3.0)


def test_two_waiters_and_one_that_leaves_do_not_disturb_each_other() -> None:
    async def scenario() -> list[bool]:
        cache = MetadataCache()
        asyncio.get_running_loop().call_later(2.0, cache.update, update(state("a", 0)))
        return await asyncio.gather(
            cache.wait_for(lambda: cache.contains("a"), timeout=1.0),
            cache.wait_for(lambda: cache.contains("a"), timeout=5.0),
        )

    assert virtual.run(scenario()) == [False, True]
