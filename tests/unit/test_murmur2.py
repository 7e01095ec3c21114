"""The partitioner's hash, compared with the values in Kafka's own tests."""

import pytest
from barnabas_common.record.murmur2 import murmur2, partition_for_key
from hypothesis import given
from hypothesis import strategies as st

# org.apache.kafka.common.utils.UtilsTest.testMurmur2
KAFKA_VALUES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "expected"), KAFKA_VALUES.items())
def test_hashes_are_kafkas(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected


@pytest.mark.parametrize(("key", "expected"), KAFKA_VALUES.items())
def test_partition_is_the_hash_without_its_sign_bit(key: bytes, expected: int) -> None:
    assert partition_for_key(key, 6) == (expected & 0x7FFFFFFF) % 6


@given(st.binary(max_size=200), st.integers(1, 1000))
def test_any_key_has_one_partition_that_exists(key: bytes, partitions: int) -> None:
    partition = partition_for_key(key, partitions)
    assert 0 <= partition < partitions
    assert partition == (murmur2(key) & 0x7FFFFFFF) % partitions


@given(st.binary(max_size=200))
def test_hash_is_a_signed_int32(key: bytes) -> None:
    assert -(2**31) <= murmur2(key) < 2**31
