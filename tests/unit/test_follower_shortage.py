"""A follower without file descriptors: what it could not append it fetches again, and what it could
not flush it confirms only when it has.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from barnabas_broker.log.errors import OutOfDescriptorsError
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.follower.follower import Follower
from barnabas_broker.replica.follower.truncation import TruncationPolicy
from barnabas_common.errors import KafkaStorageError
from barnabas_common.messages.fetch import FetchedPartition
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk

from tests.support.following import Following
from tests.support.log_world import LogWorld, produced, read_all, values_in
from tests.support.scarce_disk import ScarceDisk

TP = TopicPartition("t", 0)


def log_of_six() -> UnifiedLog:
    """The leader's: six batches of one record."""
    world = LogWorld()
    log = world.open()
    for number in range(6):
        world.append(log, b"%d" % number)
    return log


def test_it_goes_on_where_its_log_ends() -> None:
    led = log_of_six()
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
    led = log_of_six()
    disk = ScarceDisk(MemoryDisk())
    size = len(produced(b"0"))
    log = LogWorld(disk=disk).open(segment_bytes=2 * size, flush_messages=1)
    log.append_as_follower(led.read(0, size, led.log_end_offset))
    assert log.recovery_point == log.log_end_offset == 1
    disk.left = 0
    with pytest.raises(OutOfDescriptorsError):
        log.append_as_follower(led.read(1, 1 << 20, led.log_end_offset))
    assert log.recovery_point == log.log_end_offset == 2


def following_without_flush() -> tuple[Following, ScarceDisk]:
    """Return a follower that has appended six batches and could flush none.

    The append needs no descriptor; the first flush of a file needs one for its folder.
    """
    disk = ScarceDisk(MemoryDisk())
    following = Following(LogWorld(disk=disk).open(flush_messages=1))
    assert following.positions() == [0]
    disk.left = 0
    answer = FetchedPartition(*TP, high_watermark=6, records=read_all(log_of_six()))
    following.followed.take(answer)
    assert (following.log.log_end_offset, following.log.recovery_point) == (6, 0)
    return following, disk


def test_what_could_not_be_flushed_is_confirmed_only_when_it_is() -> None:
    following, disk = following_without_flush()
    for following.now in (1.0, 3.0, 5.0):
        assert following.positions() == []
    disk.left = None
    following.now = 7.0
    assert following.positions() == [6]
    assert following.log.recovery_point == 6


def test_a_new_role_does_not_confirm_it_either() -> None:
    following, disk = following_without_flush()
    following.follow(leader_epoch=1)
    assert following.positions() == []
    disk.left = None
    following.now = 1.0
    assert following.positions() == [6]
    assert following.log.recovery_point == 6
