"""Which states of a transaction may follow which, and how its metadata changes."""

from dataclasses import replace

import pytest
from barnabas_broker.coordinator.transaction.metadata import (
    LAST_CLIENT_EPOCH,
    MAX_EPOCH,
    Transaction,
    TransactionMetadata,
    add_partitions,
    complete,
    fence_producer,
    has_expired,
    has_timed_out,
    increment_epoch,
    prepare_end,
    rotate_producer_id,
)
from barnabas_broker.coordinator.transaction.states import (
    VALID_PREVIOUS,
    TransactionState,
    is_decided,
    may_follow,
    nothing_is_open,
)
from barnabas_common.errors import ProducerFencedError
from barnabas_common.prepared_transaction import NO_TIMEOUT_MS
from barnabas_common.topic_partition import TopicPartition

S = TransactionState
A, B = TopicPartition("a", 0), TopicPartition("b", 1)
NEW = TransactionMetadata("copy", 7)
READY = replace(NEW, producer_epoch=3, timeout_ms=1000, last_update_ms=50)
OPEN = add_partitions(READY, frozenset({A}), 100, 0)

KAFKA_3_9 = {
    S.EMPTY: {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.ONGOING: {S.ONGOING, S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT},
    S.PREPARE_COMMIT: {S.ONGOING},
    S.PREPARE_ABORT: {S.ONGOING, S.PREPARE_EPOCH_FENCE},
    S.COMPLETE_COMMIT: {S.PREPARE_COMMIT},
    S.COMPLETE_ABORT: {S.PREPARE_ABORT},
    S.DEAD: {S.EMPTY, S.COMPLETE_ABORT, S.COMPLETE_COMMIT},
    S.PREPARE_EPOCH_FENCE: {S.ONGOING},
}
ADDED_BY_KIP_890 = {S.PREPARE_ABORT: {S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT}}


@pytest.mark.parametrize("state", list(S))
@pytest.mark.parametrize("previous", list(S))
def test_only_kafkas_changes_are_possible(state: S, previous: S) -> None:
    allowed = KAFKA_3_9[state] | ADDED_BY_KIP_890.get(state, set())
    assert may_follow(state, previous) == (previous in allowed)
    assert VALID_PREVIOUS[state] == allowed


def test_numbers_and_names_are_kafkas() -> None:
    assert [(state.value, state.kafka_name) for state in S] == [
        (0, "Empty"),
        (1, "Ongoing"),
        (2, "PrepareCommit"),
        (3, "PrepareAbort"),
        (4, "CompleteCommit"),
        (5, "CompleteAbort"),
        (6, "Dead"),
        (7, "PrepareEpochFence"),
    ]
    assert [state for state in S if is_decided(state)] == [S.PREPARE_COMMIT, S.PREPARE_ABORT]
    nothing_open = [state for state in S if nothing_is_open(state)]
    assert nothing_open == [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT]


def test_a_change_that_kafka_does_not_make_is_an_error() -> None:
    with pytest.raises(ValueError, match="PrepareCommit cannot follow Empty"):
        prepare_end(READY, S.PREPARE_COMMIT, 1, 0)
    with pytest.raises(ValueError, match="CompleteAbort cannot follow Ongoing"):
        complete(OPEN, 1)
    with pytest.raises(ValueError, match="nothing to fence in Empty"):
        fence_producer(Transaction(READY))


# ---- InitProducerId (KIP-360)


@pytest.mark.parametrize(
    ("current", "last", "expected", "epochs"),
    [
        (-1, -1, -1, (0, -1)),  # a new transactional id
        (3, -1, -1, (4, -1)),  # a new producer takes over
        (3, 2, -1, (4, -1)),  # and the fenced one cannot be taken for a retry
        (3, -1, 3, (4, 3)),  # the producer asks for more
        (4, 3, 3, (4, 3)),  # again: its answer was lost
        (-1, -1, 8, (0, -1)),  # the transactional id had expired
        (LAST_CLIENT_EPOCH, LAST_CLIENT_EPOCH - 1, LAST_CLIENT_EPOCH - 1,
         (LAST_CLIENT_EPOCH, LAST_CLIENT_EPOCH - 1)),
    ],
)  # fmt: skip
def test_the_next_epoch(current: int, last: int, expected: int, epochs: tuple[int, int]) -> None:
    metadata = replace(NEW, producer_epoch=current, last_producer_epoch=last)
    changed = increment_epoch(metadata, 500, expected, 9)
    assert (changed.producer_epoch, changed.last_producer_epoch) == epochs
    assert (changed.state, changed.timeout_ms, changed.last_update_ms) == (S.EMPTY, 500, 9)
    assert (changed.producer_id, changed.start_ms) == (7, -1)


@pytest.mark.parametrize("expected", [0, 2, 5])
def test_another_epoch_than_the_current_and_the_last_is_fenced(expected: int) -> None:
    metadata = replace(NEW, producer_epoch=4, last_producer_epoch=3)
    with pytest.raises(ProducerFencedError):
        increment_epoch(metadata, 500, expected, 9)


def test_the_epoch_below_the_highest_gets_no_other_one_of_its_producer_id() -> None:
    metadata = replace(NEW, producer_epoch=MAX_EPOCH, last_producer_epoch=LAST_CLIENT_EPOCH)
    with pytest.raises(ProducerFencedError):
        increment_epoch(metadata, 500, LAST_CLIENT_EPOCH, 9)


def test_no_client_gets_the_highest_epoch() -> None:
    with pytest.raises(ValueError, match="no client may have epoch 32767"):
        increment_epoch(replace(NEW, producer_epoch=LAST_CLIENT_EPOCH), 500, -1, 9)


@pytest.mark.parametrize(("record", "last"), [(True, LAST_CLIENT_EPOCH), (False, -1)])
def test_another_producer_id_starts_at_epoch_0(record: bool, last: int) -> None:
    metadata = replace(NEW, producer_epoch=LAST_CLIENT_EPOCH, state=S.COMPLETE_COMMIT, start_ms=5)
    changed = rotate_producer_id(metadata, 9, 500, 10, record)
    assert (changed.producer_id, changed.producer_epoch) == (9, 0)
    assert (changed.previous_producer_id, changed.last_producer_epoch) == (7, last)
    assert (changed.state, changed.start_ms) == (S.EMPTY, -1)


# ---- a transaction of a client of Kafka 3.9


def test_the_first_partition_begins_a_transaction_and_others_join_it() -> None:
    assert (OPEN.state, OPEN.start_ms, OPEN.last_update_ms) == (S.ONGOING, 100, 100)
    more = add_partitions(OPEN, frozenset({B}), 200, 0)
    assert (more.partitions, more.start_ms, more.last_update_ms) == ({A, B}, 100, 200)


@pytest.mark.parametrize(
    ("prepare", "end"), [(S.PREPARE_COMMIT, S.COMPLETE_COMMIT), (S.PREPARE_ABORT, S.COMPLETE_ABORT)]
)
def test_a_client_of_kafka_3_9_keeps_its_epoch(prepare: S, end: S) -> None:
    decided = prepare_end(OPEN, prepare, 200, 0)
    assert (decided.state, decided.producer_epoch, decided.partitions) == (prepare, 3, {A})
    done = complete(decided, 300)
    assert (done.state, done.producer_epoch, done.partitions) == (end, 3, frozenset())
    assert (done.start_ms, done.last_update_ms) == (100, 300)
    again = add_partitions(done, frozenset({B}), 400, 0)
    assert (again.start_ms, again.partitions) == (400, {B}), "the next one begins"


# ---- transaction version 2 (KIP-890)


@pytest.mark.parametrize("prepare", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_a_decision_raises_the_epoch(prepare: S) -> None:
    decided = prepare_end(OPEN, prepare, 200, 2)
    assert (decided.producer_epoch, decided.last_producer_epoch) == (4, 3)
    done = complete(decided, 300)
    assert (done.producer_id, done.producer_epoch, done.previous_producer_id) == (7, 4, 7)


def test_the_last_epoch_is_followed_by_another_producer_id() -> None:
    last = replace(OPEN, producer_epoch=LAST_CLIENT_EPOCH)
    decided = prepare_end(last, S.PREPARE_COMMIT, 200, 2, next_producer_id=8)
    assert (decided.producer_id, decided.producer_epoch) == (7, MAX_EPOCH), "of the markers"
    done = complete(decided, 300)
    assert (done.producer_id, done.producer_epoch) == (8, 0)
    assert (done.previous_producer_id, done.last_producer_epoch) == (7, LAST_CLIENT_EPOCH)
    assert done.next_producer_id == -1


def test_an_abort_of_nothing_has_a_start() -> None:
    decided = prepare_end(READY, S.PREPARE_ABORT, 200, 2)
    assert (decided.start_ms, decided.partitions) == (200, frozenset())


# ---- fencing


def test_fencing_raises_the_epoch_once_even_if_it_could_not_be_written() -> None:
    transaction = Transaction(OPEN)
    fenced = fence_producer(transaction)
    assert (fenced.producer_epoch, fenced.last_producer_epoch, fenced.state) == (4, -1, S.ONGOING)
    transaction.fencing_failed(fenced)
    assert fence_producer(transaction).producer_epoch == 4, "no client was told of it"
    abort = prepare_end(fenced, S.PREPARE_ABORT, 200, 0)
    transaction.begin(abort)
    transaction.complete(abort)
    transaction.complete(complete(abort, 300))
    assert not transaction.has_failed_epoch_fence


def test_fencing_the_last_epoch_needs_no_other_producer_id() -> None:
    fenced = fence_producer(Transaction(replace(OPEN, producer_epoch=LAST_CLIENT_EPOCH)))
    assert fenced.producer_epoch == MAX_EPOCH
    assert prepare_end(fenced, S.PREPARE_ABORT, 200, 2).producer_epoch == MAX_EPOCH


# ---- what is being written


def test_one_change_at_a_time() -> None:
    transaction = Transaction(OPEN)
    change = prepare_end(OPEN, S.PREPARE_COMMIT, 200, 0)
    transaction.begin(change)
    assert transaction.metadata is OPEN, "it counts when it is committed"
    with pytest.raises(ValueError, match="PrepareAbort cannot be written while PrepareCommit is"):
        transaction.begin(prepare_end(OPEN, S.PREPARE_ABORT, 200, 0))
    transaction.fail()
    assert (transaction.metadata, transaction.pending) == (OPEN, None)
    transaction.begin(change)
    transaction.complete(change)
    assert (transaction.metadata, transaction.pending) == (change, None)


# ---- time


def test_only_an_open_transaction_times_out() -> None:
    assert not has_timed_out(OPEN, 1100)
    assert has_timed_out(OPEN, 1101)
    assert has_timed_out(replace(OPEN, last_update_ms=1100), 1101), "however much it was added to"
    for state in set(S) - {S.ONGOING}:
        assert not has_timed_out(replace(OPEN, state=state), 10_000)


def test_a_transaction_that_may_be_prepared_never_times_out() -> None:
    prepared = replace(OPEN, timeout_ms=NO_TIMEOUT_MS)
    assert prepared.is_two_phase and not OPEN.is_two_phase
    assert not has_timed_out(prepared, OPEN.start_ms + NO_TIMEOUT_MS + 1)


def test_a_transactional_id_expires_when_nothing_is_open() -> None:
    assert not has_expired(Transaction(READY), 149, 100)
    assert has_expired(Transaction(READY), 150, 100)
    for state in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT):
        assert not has_expired(Transaction(replace(READY, state=state)), 10_000, 100)
    assert not has_expired(Transaction(READY, pending=S.EMPTY), 10_000, 100)
