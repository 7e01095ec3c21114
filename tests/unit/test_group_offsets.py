"""Which commits count, which offsets expire, which states may follow, and what clients are told."""

import pytest
from barnabas_broker.coordinator.group.committed.committed import Committed
from barnabas_broker.coordinator.group.committed.expiry import expired_offsets
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.records import OffsetValue
from barnabas_broker.coordinator.group.states import VALID_PREVIOUS, GroupState, may_follow
from barnabas_broker.coordinator.group.write_errors import commit_error, group_error
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.topic_partition import TopicPartition

READ, UNREAD = TopicPartition("read", 0), TopicPartition("unread", 0)
RETENTION, NOW = 1_000, 10_000


def committed(at_ms: int = NOW - RETENTION, **changes: int) -> Committed:
    offsets = Committed()
    for key in (READ, UNREAD):
        offsets.put(key, OffsetValue(1, commit_timestamp_ms=at_ms, **changes), 0)
    return offsets


def expired(
    offsets: Committed,
    state: GroupState = GroupState.EMPTY,
    protocol_type: str | None = "consumer",
    topics: frozenset[str] | None = frozenset(),
    since: int = NOW - RETENTION,
) -> list[TopicPartition]:
    return expired_offsets(offsets, state, protocol_type, topics, since, NOW, RETENTION)


def test_of_two_commits_the_one_that_is_later_in_the_log_counts() -> None:
    offsets = Committed()
    offsets.put(READ, OffsetValue(7), at=11)
    offsets.put(READ, OffsetValue(5), at=10)
    assert offsets.offsets[READ].value.offset == 7
    offsets.put(READ, OffsetValue(3), at=12)
    assert offsets.offsets[READ].value.offset == 3


def test_an_offset_is_pending_until_all_its_writes_have_ended() -> None:
    offsets = Committed()
    offsets.begin([READ])
    offsets.begin([READ])
    offsets.end([READ])
    assert offsets.is_pending(READ) and offsets.partitions() == [READ]
    offsets.end([READ])
    assert not offsets.is_pending(READ) and not offsets.partitions()


def test_a_tombstone_removes_what_is_before_it_in_the_log() -> None:
    offsets = Committed()
    offsets.put(READ, OffsetValue(7), at=10)
    offsets.begin([READ])
    offsets.remove(READ, at=12)
    assert READ not in offsets.offsets
    offsets.put(READ, OffsetValue(8), at=11)
    assert READ not in offsets.offsets, "its outcome was known after the tombstone's"
    offsets.put(READ, OffsetValue(9), at=13)
    offsets.remove(READ, at=12)
    assert offsets.offsets[READ].value.offset == 9
    offsets.end([READ])
    assert not offsets._removed


def test_an_empty_group_counts_from_when_it_became_empty() -> None:
    assert expired(committed(0)) == [READ, UNREAD]
    assert not expired(committed(0), since=NOW - RETENTION + 1)
    assert expired(committed(), since=-1) == [READ, UNREAD], "unknown: from the commit"
    assert not expired(committed(NOW - 1), since=-1)


def test_a_consumer_that_was_never_in_a_group_counts_from_each_commit() -> None:
    assert expired(committed(), protocol_type=None, since=NOW) == [READ, UNREAD]
    assert not expired(committed(NOW - RETENTION + 1), protocol_type=None, since=0)


def test_a_stable_group_keeps_what_its_members_subscribe_to() -> None:
    stable = GroupState.STABLE
    assert expired(committed(), stable, topics=frozenset({"read"})) == [UNREAD]
    assert not expired(committed(), stable, topics=None), "not known"
    assert not expired(committed(), stable, "connect")
    assert not expired(committed(), GroupState.PREPARING_REBALANCE)


def test_a_pending_commit_keeps_its_offset() -> None:
    offsets = committed()
    offsets.begin([READ])
    assert expired(offsets) == [UNREAD]


def test_an_expiry_of_its_own_counts_alone() -> None:
    assert expired(committed(0, expire_timestamp_ms=NOW)) == [READ, UNREAD]
    assert not expired(committed(0, expire_timestamp_ms=NOW + 1))


@pytest.mark.parametrize("state", list(GroupState))
@pytest.mark.parametrize("previous", list(GroupState))
def test_only_the_changes_in_the_table_are_made(state: GroupState, previous: GroupState) -> None:
    group = Group("g", previous)
    if previous in VALID_PREVIOUS[state]:
        assert may_follow(state, previous)
        group.change_state(state, 5)
        assert (group.state, group.state_timestamp_ms) == (state, 5)
    else:
        with pytest.raises(ValueError, match="cannot follow"):
            group.change_state(state, 5)
        assert group.state is previous


def test_what_is_told_of_an_append_that_failed() -> None:
    told = {code: (commit_error(code), group_error(code)) for code in ErrorCode}
    unavailable = (ErrorCode.COORDINATOR_NOT_AVAILABLE,) * 2
    moved = (ErrorCode.NOT_COORDINATOR,) * 2
    assert told[ErrorCode.NONE] == (ErrorCode.NONE,) * 2
    assert told[ErrorCode.NOT_ENOUGH_REPLICAS] == unavailable
    assert told[ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND] == unavailable
    assert told[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] == unavailable
    assert told[ErrorCode.NOT_LEADER_OR_FOLLOWER] == moved
    assert told[ErrorCode.KAFKA_STORAGE_ERROR] == moved
    assert told[ErrorCode.REQUEST_TIMED_OUT] == (
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    )
    assert told[ErrorCode.MESSAGE_TOO_LARGE] == (
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    )
