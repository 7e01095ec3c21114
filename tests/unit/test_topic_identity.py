"""Pure checks: which topic a request means, and what a fetch session shows about a replica."""

from barnabas_broker.replica.fetch_session import FetchSessionCache
from barnabas_broker.replica.leader.hosting import absences, no_longer_hosting
from barnabas_broker.replica.topic_identity import same_topic
from barnabas_broker.replica.vanished import is_assigned
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import AlterPartitionItem, UpdateMetadataPartition
from barnabas_common.messages.fetch import FetchForgotten, FetchPartition, FetchRequest
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.partitions.alter_partition import (
    Reject,
    Write,
    decide_alter_partition,
)
from barnabas_controller.store.leader_and_isr import LeaderAndIsr

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_topics_are_the_same_unless_both_ids_are_known_and_differ() -> None:
    assert same_topic("x", "x")
    assert same_topic(None, "x") and same_topic("", "x") and same_topic("x", "")
    assert not same_topic("x", "y")


def test_an_alter_partition_of_another_topic_id_is_refused() -> None:
    current = LeaderAndIsr(1, leader_epoch=0, isr=(1, 2), controller_epoch=1, partition_epoch=0)
    for sent, known, is_refused in (("x", "y", True), ("x", "x", False), ("", "x", False)):
        item = AlterPartitionItem("t", 0, 0, 0, [1], topic_id=sent)
        decision = decide_alter_partition(item, current, (1, 2), 1, {}, known)
        assert isinstance(decision, Reject if is_refused else Write)
        if isinstance(decision, Reject):
            assert decision.code is ErrorCode.UNKNOWN_TOPIC_ID


def test_a_member_is_absent_since_its_session_first_left_the_partition_out() -> None:
    first = absences({}, [2], now=10.0)
    assert first == {2: 10.0}
    assert absences(first, [2, 3], now=15.0) == {2: 10.0, 3: 15.0}
    assert absences(first, [], now=15.0) == {}, "named again"


def test_a_member_is_given_time_to_name_the_partition_again() -> None:
    assert no_longer_hosting({2: 10.0}, {2: 1.0}, now=14.0, grace=4.0) == [2]
    assert no_longer_hosting({2: 10.0}, {2: 1.0}, now=13.9, grace=4.0) == []
    assert no_longer_hosting({2: 10.0}, {2: 12.0}, now=14.0, grace=4.0) == [], "named since"


def test_a_session_remembers_an_idle_partition_until_it_is_forgotten() -> None:
    sessions = FetchSessionCache()

    def fetch(epoch: int, named: list[TopicPartition], forgotten: list[TopicPartition]) -> None:
        known = sessions.of(2)
        request = FetchRequest(
            500,
            1,
            1 << 20,
            replica_id=2,
            replica_epoch=10,
            session_id=known.session_id if known is not None and epoch else 0,
            session_epoch=epoch,
            partitions=[FetchPartition(*key, 0) for key in named],
            forgotten=[FetchForgotten(*key) for key in forgotten],
        )
        session = sessions.session_for(request, 0.0)
        assert not isinstance(session, ErrorCode)
        session.take(request, 0.0)

    fetch(0, [A, B], [])
    fetch(1, [B], [])
    session = sessions.of(2)
    assert session is not None and A in session.partitions
    fetch(2, [], [A])
    assert A not in session.partitions and B in session.partitions


def test_a_replica_is_assigned_by_metadata_of_the_same_topic_that_is_not_being_deleted() -> None:
    def state(topic_id: str = "x", leader: int = 1) -> UpdateMetadataPartition:
        return UpdateMetadataPartition("t", 0, topic_id, 1, leader, 0, 0, [1, 2], [1, 2])

    assert is_assigned(2, state(), "x")
    assert not is_assigned(3, state(), "x")
    assert not is_assigned(2, state("y"), "x")
    assert not is_assigned(2, state(leader=-2), "x")
    assert not is_assigned(2, state(), None)
