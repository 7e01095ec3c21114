"""Offsets that a group commits in transactions: when they count, and who may commit them."""

import pytest
from barnabas_broker.coordinator.group.committed.committed import Committed
from barnabas_broker.coordinator.group.committed.transactional import (
    PendingCommit,
    TransactionalCommits,
)
from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.loading import LoadedGroups
from barnabas_broker.coordinator.group.member import Member
from barnabas_broker.coordinator.group.open_groups import OpenGroups
from barnabas_broker.coordinator.group.records import (
    OffsetKey,
    OffsetValue,
    encode_offset_key,
    encode_offset_value,
)
from barnabas_broker.coordinator.group.states import GroupState
from barnabas_broker.coordinator.group.txn_offsets import check_txn_commit
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.transactions import TxnOffsetCommitRequest
from barnabas_common.record.batch import batches
from barnabas_common.record.builder import BatchBuilder
from barnabas_common.record.reader import read_batch
from barnabas_common.record.transactional import marker_batch, transactional_batch
from barnabas_common.topic_partition import TopicPartition

E = ErrorCode
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def pending(offset: int, at: int) -> PendingCommit:
    return PendingCommit(OffsetValue(offset), at)


def committed_at(committed: Committed, partition: TopicPartition) -> int | None:
    found = committed.offsets.get(partition)
    return None if found is None else found.value.offset


# ---- one group


@pytest.mark.parametrize(("commit", "offset"), [(True, 42), (False, None)])
def test_an_offset_counts_when_its_transaction_commits(commit: bool, offset: int | None) -> None:
    committed = Committed()
    waiting = committed.transactional
    waiting.begin(7, [A])
    assert committed.is_pending(A) and committed.partitions() == [A]
    waiting.put(7, A, pending(42, at=3))
    waiting.end(7, [A])
    assert committed.is_pending(A) and committed_at(committed, A) is None
    committed.transaction_ended(8, True, at=99)
    assert committed.is_pending(A), "another producer's marker"
    committed.transaction_ended(7, commit, at=99)
    assert not committed.is_pending(A) and committed_at(committed, A) == offset
    committed.transaction_ended(7, True, at=99)
    assert committed_at(committed, A) == offset, "a repeated marker"


def test_a_commit_that_could_not_be_written_leaves_nothing() -> None:
    committed = Committed()
    committed.transactional.begin(7, [A, B])
    committed.transactional.end(7, [A, B])
    assert not committed.is_pending(A) and committed.partitions() == []
    committed.transaction_ended(7, True, at=99)
    assert not committed.offsets


def test_an_offset_that_was_deleted_does_not_come_back_with_its_transaction() -> None:
    """The answer to its write comes after the tombstone, which is behind it in the log."""
    committed = Committed()
    committed.begin_in_transaction(7, [A])
    committed.remove(A, at=5)
    committed.put_in_transaction(7, A, pending(42, at=3))
    committed.end_in_transaction(7, [A])
    assert not committed.is_pending(A), "nobody waits for the end of the transaction"
    committed.transaction_ended(7, True, at=99)
    assert committed_at(committed, A) is None


@pytest.mark.parametrize("commit", [True, False])
def test_a_commit_whose_marker_was_taken_first_waits_for_no_other(commit: bool) -> None:
    """Both are committed at once. The member would wait for a stable offset for ever."""
    committed = Committed()
    committed.begin_in_transaction(7, [A])
    committed.transaction_ended(7, commit, at=4)
    committed.transaction_ended(7, not commit, at=9)  # of the next transaction
    committed.put_in_transaction(7, A, pending(42, at=3))
    committed.end_in_transaction(7, [A])
    assert not committed.is_pending(A)
    assert committed_at(committed, A) == (42 if commit else None)
    committed.begin_in_transaction(7, [A])
    committed.put_in_transaction(7, A, pending(50, at=2))
    committed.end_in_transaction(7, [A])
    assert committed.is_pending(A), "the markers are those of the first write"


def test_the_order_of_the_log_counts_not_that_of_the_markers() -> None:
    committed = Committed()
    committed.transactional.put(7, A, pending(10, at=1))
    committed.transactional.put(7, A, pending(12, at=4))
    committed.transactional.put(7, A, pending(11, at=2))
    committed.put(A, OffsetValue(20), at=5)
    committed.transaction_ended(7, True, at=99)
    assert committed_at(committed, A) == 20, "committed later, outside the transaction"
    committed.transactional.put(7, A, pending(30, at=8))
    committed.transactional.put(9, A, pending(40, at=9))
    committed.transaction_ended(9, True, at=99)
    committed.transaction_ended(7, True, at=99)
    assert committed_at(committed, A) == 40


def test_a_repeated_marker_leaves_the_next_transaction_alone() -> None:
    committed = Committed()
    committed.transactional.begin(7, [B])
    committed.transactional.put(7, A, pending(10, at=1))
    committed.transaction_ended(7, True, at=2)
    committed.transactional.put(7, A, pending(11, at=4))
    committed.transaction_ended(7, False, at=3)
    assert committed_at(committed, A) == 10
    assert committed.is_pending(A) and committed.is_pending(B), "written or in flight since"
    committed.transaction_ended(7, True, at=5)
    assert committed_at(committed, A) == 11 and not committed.is_pending(A)


def test_the_groups_that_a_producers_marker_concerns() -> None:
    found = OpenGroups()
    one, other = Group("one"), Group("other")
    one.committed.transactional.put(7, A, pending(1, at=1))
    one.committed.transactional.put(8, A, pending(1, at=2))
    for each in (one, other):
        found.add(each)
    assert (found.of(7), found.of(8), found.of(9)) == ([one], [one], [])
    other.committed.begin_in_transaction(7, [A])
    found.review(7, other)
    assert found.of(7) == [one, other]
    other.committed.end_in_transaction(7, [A])
    found.review(7, other)
    assert found.of(7) == [one], "it could not be written"
    one.committed.transaction_ended(7, True, at=3)
    found.review(7, one)
    assert (found.of(7), found.of(8)) == ([], [one])
    one.committed.remove(A, 4)
    found.remove(one)
    assert found.of(8) == [], "although its offset was removed before"


def test_a_removed_offset_does_not_return_with_the_marker() -> None:
    committed = Committed()
    for partition in (A, B):
        committed.transactional.put(7, partition, pending(10, at=1))
    committed.remove(A, 2)
    assert committed.is_pending(B) and not committed.is_pending(A), "nothing to wait for"
    committed.transaction_ended(7, True, at=99)
    assert list(committed.offsets) == [B]


# ---- who may commit


def group(state: GroupState) -> Group:
    found = Group("g", state)
    found.generation_id = 5
    if state is not GroupState.EMPTY:
        found.add(Member("m", "i", "c", "/h", 1, 1, ()))
    return found


@pytest.mark.parametrize("state", [GroupState.EMPTY, GroupState.STABLE])
def test_a_producer_that_names_no_member_may_commit(state: GroupState) -> None:
    assert check_txn_commit(group(state), TxnOffsetCommitRequest("t", "g", 7, 3)) is E.NONE


@pytest.mark.parametrize(
    ("generation", "member", "instance", "error"),
    [
        (5, "m", "", E.NONE),
        (5, "m", "i", E.NONE),
        (4, "m", "", E.ILLEGAL_GENERATION),
        (6, "m", "", E.ILLEGAL_GENERATION),
        (-1, "m", "", E.ILLEGAL_GENERATION),
        (5, "n", "", E.UNKNOWN_MEMBER_ID),
        (5, "", "", E.UNKNOWN_MEMBER_ID),
        (5, "n", "i", E.FENCED_INSTANCE_ID),
    ],
)
def test_a_member_must_be_of_this_generation(
    generation: int, member: str, instance: str, error: ErrorCode
) -> None:
    request = TxnOffsetCommitRequest("t", "g", 7, 3, generation, member, instance)
    for state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        assert check_txn_commit(group(state), request) is error
    assert check_txn_commit(group(GroupState.DEAD), request) is E.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize(
    ("producer_id", "epoch", "error"),
    [
        (-1, 3, E.INVALID_PRODUCER_ID_MAPPING),
        (7, -1, E.INVALID_PRODUCER_EPOCH),
        (7, 2**15, E.INVALID_PRODUCER_EPOCH),
    ],
)
def test_a_producer_that_no_batch_can_name_is_refused(
    producer_id: int, epoch: int, error: ErrorCode
) -> None:
    request = TxnOffsetCommitRequest("t", "g", producer_id, epoch)
    assert check_txn_commit(group(GroupState.EMPTY), request) is error


# ---- loading


class Log:
    """Batches one after the other, as a coordinator reads them."""

    def __init__(self) -> None:
        self.loaded = LoadedGroups()
        self._offset = 0

    def add(self, batch: bytes) -> None:
        data = bytearray(batch)
        data[:8] = self._offset.to_bytes(8, "big")
        ((position, header),) = batches(bytes(data))
        self.loaded.take_batch(header, read_batch(bytes(data), position))
        self._offset = header.next_offset

    def commit(
        self,
        offset: int,
        producer_id: int | None = None,
        key: TopicPartition = A,
        group_id: str = "g",
    ) -> None:
        where = encode_offset_key(OffsetKey(group_id, *key))
        record = (where, encode_offset_value(OffsetValue(offset)))
        if producer_id is None:
            builder = BatchBuilder()
            builder.append(1, *record)
            self.add(builder.build())
        else:
            self.add(bytes(transactional_batch(producer_id, 0, 1, [record])))

    def delete(self, key: TopicPartition = A, group_id: str = "g") -> None:
        builder = BatchBuilder()
        builder.append(1, encode_offset_key(OffsetKey(group_id, *key)), None)
        self.add(builder.build())

    def end(self, producer_id: int, commit: bool) -> None:
        self.add(marker_batch(producer_id, 0, commit, 0, 1))

    def committed(self) -> Committed:
        (found,) = self.loaded.groups()
        return found.committed


def test_a_coordinator_reads_what_is_committed_aborted_and_open() -> None:
    log = Log()
    log.commit(1)
    log.commit(2, producer_id=7)
    log.end(7, True)
    log.commit(3, producer_id=7)
    log.end(7, False)
    log.commit(4, producer_id=8, key=B)
    committed = log.committed()
    assert (committed_at(committed, A), committed_at(committed, B)) == (2, None)
    assert committed.is_pending(B) and not committed.is_pending(A)
    committed.transaction_ended(8, True, at=99)
    assert committed_at(committed, B) == 4


def test_a_marker_is_looked_up_in_the_groups_of_its_producer_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A log may have thousands of groups, and as many markers."""
    asked = []
    complete = TransactionalCommits.complete

    def noted(
        waiting: TransactionalCommits, *marker: int
    ) -> list[tuple[TopicPartition, PendingCommit]]:
        asked.append(waiting)
        return complete(waiting, *marker)

    monkeypatch.setattr(TransactionalCommits, "complete", noted)
    log = Log()
    for number in range(100):
        log.commit(number, group_id=f"g{number}")
    log.commit(5, producer_id=7, group_id="g7")
    for _ in range(3):
        log.end(7, True)
    found = {group.group_id: group.committed for group in log.loaded.groups()}
    assert committed_at(found["g7"], A) == 5 and committed_at(found["g8"], A) == 8
    assert len(asked) == 1


def test_a_later_commit_outside_the_transaction_stays() -> None:
    log = Log()
    log.commit(5, producer_id=7)
    log.commit(6)
    log.end(7, True)
    assert committed_at(log.committed(), A) == 6


def test_a_deletion_counts_against_what_was_committed_before_it_in_an_open_transaction() -> None:
    log = Log()
    log.commit(5, producer_id=7)
    log.commit(5, producer_id=7, key=B)
    log.delete(A)
    log.delete(B)
    log.commit(6, producer_id=7, key=B)
    log.end(7, True)
    committed = log.committed()
    assert (committed_at(committed, A), committed_at(committed, B)) == (None, 6)


def test_a_group_of_which_only_aborted_offsets_are_there_is_none() -> None:
    log = Log()
    log.commit(5, producer_id=7)
    log.end(7, False)
    assert log.loaded.groups() == []
