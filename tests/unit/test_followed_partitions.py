"""Which answers of a leader a follower applies, and when it asks again."""

from dataclasses import replace

import pytest
from barnabas_broker.config.throttled_replicas import throttled_replicas
from barnabas_broker.replica.follower.truncation import TruncationPolicy
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.fetch import FetchedPartition, FetchForgotten
from barnabas_common.messages.offsets import EpochEndOffset

from tests.support.following import Following, answer
from tests.support.log_world import PARTITION, LogWorld


async def test_an_answer_to_a_request_of_an_earlier_role_is_ignored() -> None:
    following = Following()
    following.followed.next_request()
    following.follow(leader_epoch=1)
    following.followed.take(answer())
    assert following.log.log_end_offset == 0
    following.fetch(answer())
    assert following.log.log_end_offset == 1


async def test_an_epoch_end_from_an_earlier_role_truncates_nothing() -> None:
    """The leader of the epoch before may have had less than the present one has."""
    world = LogWorld()
    log = world.open()
    for value in (b"a", b"b", b"c"):
        world.append(log, value)
    following = Following(log, truncation=TruncationPolicy(asks_before_fetching=True))
    late = following.followed.epoch_questions()[PARTITION]
    following.follow(leader_epoch=1)
    end = EpochEndOffset(*PARTITION, leader_epoch=0, end_offset=1)
    following.followed.truncate(PARTITION, late, end)
    assert log.log_end_offset == 3
    present = following.followed.epoch_questions()[PARTITION]
    following.followed.truncate(PARTITION, present, replace(end, end_offset=2))
    assert log.log_end_offset == 2


async def test_after_a_success_the_next_error_begins_another_series() -> None:
    """It is reported again, and waited for as long as the first one."""
    following = Following()
    refusal = FetchedPartition(*PARTITION, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    pauses: list[float | None] = []
    for fetched in (refusal, refusal, refusal, answer(), refusal):
        following.fetch(fetched)
        pauses.append(following.followed.shortest_delay())
        following.now += 1.0
        following.followed.resume_delayed()
    assert pauses == pytest.approx([0.02, 0.04, 0.08, None, 0.02])
    failures = [e for e in following.events.since(0) if e.kind is EventKind.FETCH_FAILED]
    assert len(failures) == 2


async def test_a_replica_that_waits_leaves_the_fetch_session_for_so_long() -> None:
    """What its leader sent meanwhile would be thrown away, and use up the quota."""
    following = Following()
    following.session.opened(7)
    following.fetch(FetchedPartition(*PARTITION, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    request = following.followed.next_request()
    assert (request.partitions, request.forgotten) == ([], [FetchForgotten(*PARTITION)])
    following.now += 1.0
    following.followed.resume_delayed()
    (position,) = following.followed.next_request().partitions
    assert (position.topic, position.partition, position.fetch_offset) == (*PARTITION, 0)


@pytest.mark.parametrize(("high_watermark", "is_delayed"), [(1, False), (2, True)])
async def test_only_a_replica_that_is_behind_waits_for_its_quota(
    high_watermark: int, is_delayed: bool
) -> None:
    """One that keeps up is not copied, and would leave the ISR if it waited."""
    throttled = throttled_replicas("*")
    following = Following(quota_rate=1, follower_replication_throttled_replicas=throttled)
    following.fetch(replace(answer(), high_watermark=high_watermark))
    assert (following.followed.shortest_delay() is not None) == is_delayed
