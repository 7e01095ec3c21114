"""Routing: the given partition, that of the key, or a free choice that keeps the load even."""

import itertools
from collections import Counter

from barnabas import Producer
from barnabas.producer.partitioner import next_round_robin, sticky_partition
from barnabas_common.record.murmur2 import partition_for_key
from hypothesis import given
from hypothesis import strategies as st

from tests.support.scripted_brokers import ScriptedBrokers

LENGTHS = st.lists(st.integers(0, 50), min_size=1, max_size=20)


@given(LENGTHS, st.data())
def test_sticky_chooses_a_partition_with_a_leader_if_there_is_one(
    lengths: list[int], data: st.DataObject
) -> None:
    led = data.draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)))
    chosen = sticky_partition(lengths, led, data.draw(st.floats(0, 1, exclude_max=True)))
    assert 0 <= chosen < len(lengths)
    assert led[chosen] or not any(led)


def test_sticky_prefers_shorter_queues_in_proportion() -> None:
    counts = Counter(sticky_partition([0, 9], [True, True], i / 1100) for i in range(1100))
    assert counts[0] == 1000
    assert counts[1] == 100


def test_sticky_reaches_every_partition_when_queues_are_equal() -> None:
    counts = Counter(sticky_partition([3] * 4, [True] * 4, i / 400) for i in range(400))
    assert set(counts.values()) == {100}


def test_round_robin_takes_turns_among_those_with_a_leader() -> None:
    turns, last = [], -1
    for _ in range(6):
        last = next_round_robin(last, [True, False, True, True])
        turns.append(last)
    assert turns == [0, 2, 3, 0, 2, 3]
    assert next_round_robin(1, [False, False, False]) == 2


async def test_keys_go_where_murmur2_says_also_without_a_leader() -> None:
    async with (
        ScriptedBrokers(partitions=6) as brokers,
        Producer(brokers.bootstrap, runtime=brokers.runtime) as producer,
    ):
        for i in range(60):
            key = b"key-%d" % i
            answer = await producer.send_and_wait("flights", b"v", key=key)
            assert answer.partition == partition_for_key(key, 6)


async def test_round_robin_spreads_record_by_record() -> None:
    async with (
        ScriptedBrokers(partitions=3) as brokers,
        Producer(brokers.bootstrap, runtime=brokers.runtime, partitioner="round-robin") as producer,
    ):
        got = [(await producer.send_and_wait("flights", b"v")).partition for _ in range(6)]
        assert got == [0, 1, 2, 0, 1, 2]


async def test_sticky_fills_a_batch_before_it_moves_on_and_reaches_all() -> None:
    async with ScriptedBrokers(partitions=3) as brokers:
        async with Producer(
            brokers.bootstrap, runtime=brokers.runtime, batch_size=1_000, linger_ms=5
        ) as producer:
            handles = [await producer.send("flights", b"x" * 100) for _ in range(900)]
            partitions = [(await handle).partition for handle in handles]
        assert set(partitions) == {0, 1, 2}
        moves = sum(a != b for a, b in itertools.pairwise(partitions))
        assert moves <= 900 / 7


async def test_sticky_counts_the_bytes_of_small_batches_together() -> None:
    async with (
        ScriptedBrokers(partitions=3) as brokers,
        Producer(brokers.bootstrap, runtime=brokers.runtime, batch_size=1_000) as producer,
    ):
        partitions = [
            (await producer.send_and_wait("flights", b"x" * 100)).partition for _ in range(70)
        ]
        moves = sum(a != b for a, b in itertools.pairwise(partitions))
        assert moves <= 70 / 4
