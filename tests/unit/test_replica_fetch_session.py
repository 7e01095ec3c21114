"""Incremental fetch sessions, at the leader and at the follower (KIP-227)."""

from barnabas_broker.replica.fetch_session import FetchSession, FetchSessionCache
from barnabas_broker.replica.follower.fetch_session_handler import (
    FetchLimits,
    FetchSessionHandler,
)
from barnabas_broker.replica.purgatory import DelayedOperations
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.fetch import (
    FetchedPartition,
    FetchForgotten,
    FetchPartition,
    FetchRequest,
)
from barnabas_common.topic_partition import TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))


def request(
    *positions: tuple[TopicPartition, int],
    session: tuple[int, int] = (0, 0),
    forgotten: tuple[TopicPartition, ...] = (),
    replica: tuple[int, int] = (2, 10),
) -> FetchRequest:
    return FetchRequest(
        500,
        1,
        1 << 20,
        replica_id=replica[0],
        replica_epoch=replica[1],
        session_id=session[0],
        session_epoch=session[1],
        partitions=[FetchPartition(*key, offset) for key, offset in positions],
        forgotten=[FetchForgotten(*key) for key in forgotten],
    )


def opened(sessions: FetchSessionCache, first: FetchRequest) -> FetchSession:
    session = sessions.session_for(first, 0.0)
    assert isinstance(session, FetchSession)
    session.take(first, 0.0)
    return session


def changed(session: FetchSession) -> list[TopicPartition]:
    return [entry.topic_partition for entry in session.changed]


# ---- at the leader


def test_a_session_goes_on_with_the_next_epoch_and_nothing_else() -> None:
    sessions = FetchSessionCache()
    session = opened(sessions, request((A, 0)))
    identity = session.session_id
    assert sessions.session_for(request(session=(identity, 1)), 0.0) is session
    for wrong in (2, 0 + 7):
        answer = sessions.session_for(request(session=(identity, wrong)), 0.0)
        assert answer is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    answer = sessions.session_for(request(session=(identity + 1, 1)), 0.0)
    assert answer is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_follower_without_a_session_is_told_to_open_one() -> None:
    answer = FetchSessionCache().session_for(request(session=(0, -1)), 0.0)
    assert answer is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_new_session_replaces_the_followers_old_one_and_no_other() -> None:
    sessions = FetchSessionCache()
    old = opened(sessions, request((A, 0)))
    other = opened(sessions, request((A, 0), replica=(3, 10)))
    new = opened(sessions, request((A, 0)))
    assert not sessions.is_open(old)
    assert sessions.is_open(new)
    assert sessions.is_open(other)


def test_a_fetch_from_an_earlier_incarnation_of_the_follower_is_refused() -> None:
    sessions = FetchSessionCache()
    opened(sessions, request((A, 0), replica=(2, 11)))
    late = sessions.session_for(request((A, 9), replica=(2, 10)), 0.0)
    assert late is ErrorCode.STALE_BROKER_EPOCH
    assert isinstance(sessions.session_for(request(replica=(2, -1)), 0.0), FetchSession)


def test_a_registered_incarnation_with_a_lower_epoch_is_believed_once_the_other_is_silent() -> None:
    """ZooKeeper was restored from an older copy, in which broker epochs are lower."""
    sessions = FetchSessionCache()
    opened(sessions, request((A, 0), replica=(2, 200)))
    sessions.announce({2: 165})
    opened(sessions, request((A, 0), replica=(2, 165)))
    opened(sessions, request((A, 0), replica=(2, 165)))
    assert sessions.session_for(request(replica=(2, 164)), 0.0) is ErrorCode.STALE_BROKER_EPOCH


def test_an_announcement_that_is_late_brings_no_earlier_incarnation_back() -> None:
    sessions = FetchSessionCache()
    opened(sessions, request((A, 0), replica=(2, 11)))
    sessions.announce({2: 10})
    opened(sessions, request((A, 0), replica=(2, 11)))
    sessions.announce({2: 10})
    assert sessions.session_for(request(replica=(2, 10)), 0.0) is ErrorCode.STALE_BROKER_EPOCH


def test_only_what_a_request_names_or_what_changed_is_looked_at() -> None:
    session = opened(FetchSessionCache(), request((A, 0), (B, 0), (C, 0)))
    assert changed(session) == [A, B, C]
    session.changed.clear()
    session.partitions[C].offsets_moved()
    session.take(request((A, 5), session=(1, 1)), 1.0)
    assert changed(session) == [C, A]
    assert session.partitions[A].position.fetch_offset == 5
    assert session.last_fetch_time == 1.0


def test_forgotten_partitions_are_gone() -> None:
    session = opened(FetchSessionCache(), request((A, 0), (B, 0)))
    session.take(request(session=(1, 1), forgotten=(A,)), 1.0)
    assert list(session.partitions) == [B]
    assert changed(session) == [B]


def test_what_happens_in_a_forgotten_partition_is_no_news() -> None:
    """Its follower would get what it did not ask for, at each append."""
    session = opened(FetchSessionCache(), request((A, 0), (B, 0)))
    waiting = DelayedOperations()
    session.partitions[A].attach(waiting.followers)
    session.take(request(session=(1, 1), forgotten=(A,)), 1.0)
    session.changed.clear()
    waiting.data_arrived()
    waiting.leadership_ended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert changed(session) == []


def test_what_was_read_goes_to_the_back_so_that_all_get_their_turn() -> None:
    session = opened(FetchSessionCache(), request((A, 0), (B, 0), (C, 0)))
    session.settle(session.partitions[A], FetchedPartition(*A, records=b"full"), None)
    assert changed(session) == [B, C, A]


def test_the_same_offsets_are_no_news_twice() -> None:
    session = opened(FetchSessionCache(), request((A, 0)))
    entry = session.partitions[A]
    answer = FetchedPartition(*A, high_watermark=5, log_start_offset=0)
    assert entry.is_news(answer)
    session.settle(entry, answer, None)
    assert not entry.is_news(answer)
    assert changed(session) == [], "not looked at again before something changes"
    assert entry.is_news(FetchedPartition(*A, high_watermark=6, log_start_offset=0))
    assert entry.is_news(FetchedPartition(*A, high_watermark=5, log_start_offset=1))
    assert entry.is_news(FetchedPartition(*A, error_code=ErrorCode.FENCED_LEADER_EPOCH))
    assert changed(session) == []


def test_a_partition_that_is_named_again_is_told_everything_again() -> None:
    """Its follower may have ignored the last answer:

    its log had diverged, or its leader changed.
    """
    session = opened(FetchSessionCache(), request((A, 9)))
    entry = session.partitions[A]
    answer = FetchedPartition(*A, high_watermark=5, log_start_offset=0)
    session.settle(entry, answer, None)
    session.take(request((A, 7), session=(1, 1)), 1.0)
    assert entry.is_news(answer)


# ---- at the follower


def follower_session() -> FetchSessionHandler:
    return FetchSessionHandler(FetchLimits(500, 1, 10 << 20, 1 << 20), 2, lambda: 77)


def position(key: TopicPartition, offset: int) -> FetchPartition:
    return FetchPartition(*key, fetch_offset=offset, current_leader_epoch=3)


def test_the_first_request_names_all_and_the_next_only_what_moved() -> None:
    session = follower_session()
    for key in (A, B):
        session.moved(key)
    first = session.request({key: position(key, 0) for key in (A, B)})
    assert (first.session_id, first.session_epoch, first.replica_epoch) == (0, 0, 77)
    session.opened(9)
    session.moved(B)
    assert session.to_name() == [B]
    second = session.request({B: position(B, 5)})
    assert (second.session_id, second.session_epoch) == (9, 1)
    assert [p.partition for p in second.partitions] == [1]
    session.opened(9)
    assert session.request({}).session_epoch == 2


def test_what_is_gone_is_forgotten_once_and_no_answer_is_expected_for_it() -> None:
    session = follower_session()
    session.request({key: position(key, 0) for key in (A, B)})
    session.opened(9)
    session.gone(A)
    assert session.requested(A) is not None  # its answer may still be in flight
    assert [f.partition for f in session.request({}).forgotten] == [0]
    assert session.requested(A) is None
    session.opened(9)
    assert session.request({}).forgotten == []


def test_what_comes_back_before_it_was_forgotten_is_named_again() -> None:
    session = follower_session()
    session.request({A: position(A, 0)})
    session.opened(9)
    session.gone(A)
    session.moved(A)
    assert session.to_name() == [A]
    assert session.request({A: position(A, 0)}).forgotten == []


def test_after_a_reset_everything_is_new_again() -> None:
    session = follower_session()
    session.request({A: position(A, 0)})
    session.opened(9)
    session.gone(A)
    session.reset()
    assert session.is_full
    assert session.requested(A) is None
    again = session.request({B: position(B, 0)})
    assert (again.session_id, again.session_epoch, again.forgotten) == (0, 0, [])


def test_a_pause_about_to_end_shortens_how_long_the_leader_may_park_a_request() -> None:
    session = follower_session()
    whole = session.request({A: position(A, 0)}).max_wait_ms
    assert session.request({}, longest_wait=0.02).max_wait_ms == 20
    assert session.request({}, longest_wait=3600.0).max_wait_ms == whole
