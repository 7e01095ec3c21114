"""A follower that could append only the first batches of an answer fetches what is missing."""

from types import SimpleNamespace
from typing import Any

import pytest
from barnabas_broker.log.errors import OutOfDescriptorsError
from barnabas_broker.replica.follower.follower import Follower
from barnabas_broker.replica.follower.truncation import TruncationPolicy
from barnabas_common.errors import KafkaStorageError
from barnabas_common.messages.fetch import FetchedPartition
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk

from tests.support.log_world import LogWorld, produced, read_all, values_in
from tests.support.scarce_disk import ScarceDisk

TP = TopicPartition("t", 0)


def test_it_goes_on_where_its_log_ends() -> None:
    leader = LogWorld()
    led = leader.open()
    for number in range(6):
        leader.append(led, b"%d" % number)
    disk = ScarceDisk(MemoryDisk())
    log = LogWorld(disk=disk).open(segment_bytes=2 * len(produced(b"0")))
    partition: Any = SimpleNamespace(
        follower_log=lambda: log, topic_partition=TP, leader_epoch=0, topic_id=None
    )
    follower = Follower(partition, TruncationPolicy(), 1 << 20)
    disk.left = 0
    with pytest.raises(KafkaStorageError, match="Too many open files"):
        follower.take(FetchedPartition(*TP, high_watermark=6, records=read_all(led)))
    assert follower.position.fetch_offset == log.log_end_offset == 2
    disk.left = None
    missing = led.read(follower.position.fetch_offset, 1 << 20, led.log_end_offset)
    assert follower.take(FetchedPartition(*TP, high_watermark=6, records=missing))
    assert values_in(read_all(log)) == [b"%d" % number for number in range(6)]
    assert follower.position.fetch_offset == 6


def test_what_it_has_is_flushed_before_it_asks_for_the_rest() -> None:
    leader = LogWorld()
    led = leader.open()
    for number in range(6):
        leader.append(led, b"%d" % number)
    disk = ScarceDisk(MemoryDisk())
    size = len(produced(b"0"))
    log = LogWorld(disk=disk).open(segment_bytes=2 * size, flush_messages=1)
    log.append_as_follower(led.read(0, size, led.log_end_offset))
    assert log.recovery_point == log.log_end_offset == 1
    disk.left = 0
    with pytest.raises(OutOfDescriptorsError):
        log.append_as_follower(led.read(1, 1 << 20, led.log_end_offset))
    assert log.recovery_point == log.log_end_offset == 2
