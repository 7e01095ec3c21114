"""What a coordinator answers to InitProducerId, AddPartitionsToTxn and EndTxn, state by state."""

from dataclasses import replace

import pytest
from barnabas_broker.coordinator.transaction.admission import (
    UNNAMED,
    Fence,
    Kept,
    Producer,
    add_to_transaction,
    granted_timeout_ms,
    init_producer_id,
    verify,
)
from barnabas_broker.coordinator.transaction.ending import abort_fenced, end_transaction
from barnabas_broker.coordinator.transaction.metadata import (
    LAST_CLIENT_EPOCH,
    MAX_EPOCH,
    Transaction,
    TransactionMetadata,
    complete,
    fence_producer,
    prepare_end,
)
from barnabas_broker.coordinator.transaction.states import TransactionState
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.prepared_transaction import NO_TIMEOUT_MS
from barnabas_common.topic_partition import TopicPartition

S, E = TransactionState, ErrorCode
A, B = TopicPartition("a", 0), TopicPartition("b", 1)
ME = Producer(7, 3)
OPEN = TransactionMetadata("copy", 7, 3, 1000, S.ONGOING, frozenset({A}), 100, 100)
OVER = (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)


def in_state(state: S, **changes: object) -> Transaction:
    partitions = frozenset() if state in OVER else OPEN.partitions
    return Transaction(replace(OPEN, state=state, partitions=partitions, **changes))  # type: ignore[arg-type]


# ---- InitProducerId


def init(transaction: Transaction, producer: Producer = UNNAMED, new_id: int = -1) -> object:
    return init_producer_id(transaction, producer, 500, 200, new_id)


@pytest.mark.parametrize("state", OVER)
def test_initializing_raises_the_epoch(state: S) -> None:
    answer = init(in_state(state))
    assert isinstance(answer, TransactionMetadata)
    assert (answer.producer_id, answer.producer_epoch, answer.state) == (7, 4, S.EMPTY)


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_initializing_waits_for_the_markers(state: S) -> None:
    assert init(in_state(state)) is E.CONCURRENT_TRANSACTIONS


def test_initializing_fences_the_producer_of_an_open_transaction() -> None:
    answer = init(in_state(S.ONGOING))
    assert isinstance(answer, Fence) and answer.fenced.producer_epoch == 4


def test_what_may_be_prepared_is_kept_if_asked_for() -> None:
    prepared = in_state(S.ONGOING, timeout_ms=NO_TIMEOUT_MS)
    assert init_producer_id(prepared, UNNAMED, 500, 200, -1, True) == Kept(prepared.metadata)
    assert isinstance(init_producer_id(prepared, UNNAMED, 500, 200, -1), Fence)
    # The producer of any other transaction may still be writing.
    assert isinstance(init_producer_id(in_state(S.ONGOING), UNNAMED, 500, 200, -1, True), Fence)


@pytest.mark.parametrize(
    ("asked_ms", "two_phase", "enabled", "granted"),
    [
        (900, False, True, 900),
        (1001, False, True, E.INVALID_TRANSACTION_TIMEOUT),
        (0, False, True, E.INVALID_TRANSACTION_TIMEOUT),
        (900, True, True, NO_TIMEOUT_MS),
        (900, True, False, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_only_a_transaction_of_two_phases_has_no_timeout(
    asked_ms: int, two_phase: bool, enabled: bool, granted: int
) -> None:
    assert granted_timeout_ms(asked_ms, two_phase, 1000, enabled) == granted


@pytest.mark.parametrize("state", list(S))
def test_initializing_waits_for_what_is_being_written(state: S) -> None:
    waiting = Transaction(replace(OPEN, state=state), pending=S.ONGOING)
    assert init(waiting) is E.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(
    ("producer", "error"),
    [(Producer(8, 3), True), (Producer(7, 2), True), (Producer(7, 3), False)],
)
def test_a_producer_that_names_itself_must_be_the_current_one(
    producer: Producer, error: bool
) -> None:
    answer = init(in_state(S.EMPTY), producer)
    assert (answer is E.PRODUCER_FENCED) == error


def test_an_unknown_producer_is_fenced_before_its_open_transaction_is_looked_at() -> None:
    assert init(in_state(S.ONGOING), Producer(8, 3)) is E.PRODUCER_FENCED


def test_exhausted_epochs_need_another_producer_id() -> None:
    exhausted = in_state(S.COMPLETE_COMMIT, producer_epoch=LAST_CLIENT_EPOCH)
    assert init(exhausted) is E.CONCURRENT_TRANSACTIONS, "it was not asked for in time"
    answer = init(exhausted, Producer(7, LAST_CLIENT_EPOCH), new_id=9)
    assert isinstance(answer, TransactionMetadata)
    assert (answer.producer_id, answer.producer_epoch) == (9, 0)
    retry = init(Transaction(answer), Producer(7, LAST_CLIENT_EPOCH))
    assert isinstance(retry, TransactionMetadata)
    assert (retry.producer_id, retry.producer_epoch) == (9, 0), "the answer was lost"
    assert init(Transaction(answer), Producer(7, 5)) is E.PRODUCER_FENCED
    assert init(exhausted, Producer(7, 5), new_id=9) is E.PRODUCER_FENCED


# ---- AddPartitionsToTxn


def add(
    transaction: Transaction | None, producer: Producer = ME, key: TopicPartition = B, version=0
) -> object:
    return add_to_transaction(transaction, producer, frozenset({key}), 200, version)


def test_who_may_add_partitions() -> None:
    assert add(None) is E.INVALID_PRODUCER_ID_MAPPING
    assert add(in_state(S.EMPTY), Producer(8, 3)) is E.INVALID_PRODUCER_ID_MAPPING
    assert add(in_state(S.EMPTY), Producer(7, 2)) is E.PRODUCER_FENCED
    assert add(in_state(S.EMPTY), Producer(7, 4)) is E.PRODUCER_FENCED
    assert add(Transaction(OPEN, pending=S.ONGOING)) is E.CONCURRENT_TRANSACTIONS
    assert add(in_state(S.PREPARE_COMMIT)) is E.CONCURRENT_TRANSACTIONS
    assert add(in_state(S.PREPARE_ABORT)) is E.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("state", [*OVER, S.ONGOING])
def test_partitions_are_added(state: S) -> None:
    answer = add(in_state(state))
    assert isinstance(answer, TransactionMetadata)
    assert (answer.state, answer.partitions) == (
        S.ONGOING,
        {A, B} if state is S.ONGOING else {B},
    )


def test_what_is_part_of_the_transaction_is_not_written_again() -> None:
    assert add(in_state(S.ONGOING), key=A) is E.NONE


def test_a_producer_that_was_promised_another_id_waits_for_it() -> None:
    """EndTxn is answered before the markers are written (KIP-890)."""
    decided = prepare_end(
        replace(OPEN, producer_epoch=LAST_CLIENT_EPOCH), S.PREPARE_COMMIT, 200, 2, 9
    )
    assert add(Transaction(decided), Producer(9, 0), version=2) is E.CONCURRENT_TRANSACTIONS
    assert add(Transaction(decided), Producer(8, 0), version=2) is E.INVALID_PRODUCER_ID_MAPPING
    assert isinstance(
        add(Transaction(complete(decided, 300)), Producer(9, 0), version=2), TransactionMetadata
    )


def test_a_leader_may_append_to_partitions_of_the_open_transaction_only() -> None:
    assert verify(in_state(S.ONGOING), ME, A) is E.NONE
    assert verify(in_state(S.ONGOING), ME, B) is E.TRANSACTION_ABORTABLE
    assert verify(in_state(S.COMPLETE_COMMIT), ME, A) is E.TRANSACTION_ABORTABLE
    assert verify(in_state(S.PREPARE_ABORT), ME, A) is E.CONCURRENT_TRANSACTIONS
    assert verify(in_state(S.ONGOING), Producer(7, 2), A) is E.PRODUCER_FENCED
    assert verify(in_state(S.ONGOING), Producer(8, 3), A) is E.INVALID_PRODUCER_ID_MAPPING
    assert verify(None, ME, A) is E.INVALID_PRODUCER_ID_MAPPING


# ---- EndTxn


def end(
    transaction: Transaction | None,
    commit: bool,
    producer: Producer = ME,
    version: int = 0,
    new_id: int = -1,
) -> object:
    answer = end_transaction(transaction, producer, commit, version, 200, new_id)
    return answer.state if isinstance(answer, TransactionMetadata) else answer


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_who_may_end_a_transaction(commit: bool, version: int) -> None:
    assert end(None, commit, version=version) is E.INVALID_PRODUCER_ID_MAPPING
    for other, error in (
        (Producer(8, 3), E.INVALID_PRODUCER_ID_MAPPING),
        (Producer(7, 2), E.PRODUCER_FENCED),
        (Producer(7, 4), E.PRODUCER_FENCED),
    ):
        assert end(in_state(S.ONGOING), commit, other, version) is error
    waiting = Transaction(OPEN, pending=S.ONGOING)
    assert end(waiting, commit, version=version) is E.CONCURRENT_TRANSACTIONS
    decided = S.PREPARE_COMMIT if commit else S.PREPARE_ABORT
    assert end(in_state(S.ONGOING), commit, version=version) is decided


@pytest.mark.parametrize(
    ("state", "commit", "answer"),
    [
        (S.COMPLETE_COMMIT, True, E.NONE),
        (S.COMPLETE_COMMIT, False, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, True, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, False, E.NONE),
        (S.PREPARE_COMMIT, True, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_COMMIT, False, E.INVALID_TXN_STATE),
        (S.PREPARE_ABORT, True, E.INVALID_TXN_STATE),
        (S.PREPARE_ABORT, False, E.CONCURRENT_TRANSACTIONS),
        (S.EMPTY, True, E.INVALID_TXN_STATE),
        (S.EMPTY, False, E.INVALID_TXN_STATE),
    ],
)
def test_a_client_of_kafka_3_9_is_answered_by_the_state(
    state: S, commit: bool, answer: object
) -> None:
    assert end(in_state(state), commit) is answer


RETRY, CURRENT = Producer(7, 2), ME


@pytest.mark.parametrize(
    ("state", "producer", "abort", "commit"),
    [
        (S.EMPTY, RETRY, E.PRODUCER_FENCED, E.PRODUCER_FENCED),
        (S.EMPTY, CURRENT, S.PREPARE_ABORT, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, RETRY, E.NONE, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, CURRENT, S.PREPARE_ABORT, E.INVALID_TXN_STATE),
        (S.COMPLETE_COMMIT, RETRY, E.INVALID_TXN_STATE, E.NONE),
        (S.COMPLETE_COMMIT, CURRENT, S.PREPARE_ABORT, E.INVALID_TXN_STATE),
        (S.PREPARE_ABORT, RETRY, E.CONCURRENT_TRANSACTIONS, E.INVALID_TXN_STATE),
        (S.PREPARE_ABORT, CURRENT, E.PRODUCER_FENCED, E.PRODUCER_FENCED),
        (S.PREPARE_COMMIT, RETRY, E.INVALID_TXN_STATE, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_COMMIT, CURRENT, E.PRODUCER_FENCED, E.PRODUCER_FENCED),
        (S.ONGOING, RETRY, E.PRODUCER_FENCED, E.PRODUCER_FENCED),
    ],
)
def test_under_version_2_the_epoch_tells_a_retry_from_the_next_transaction(
    state: S, producer: Producer, abort: object, commit: object
) -> None:
    assert end(in_state(state), False, producer, version=2) is abort
    assert end(in_state(state), True, producer, version=2) is commit


def test_a_late_end_touches_the_next_transaction_of_kafka_3_9_but_not_of_version_2() -> None:
    """The schedule of KIP-890: an EndTxn is delayed, its retry ends the transaction, the next one
    begins, and then the delayed request arrives."""

    def story(version: int) -> object:
        done = complete(prepare_end(OPEN, S.PREPARE_COMMIT, 200, version), 300)
        next_one = Producer(done.producer_id, done.producer_epoch)
        begun = add(Transaction(done), next_one, version=version)
        assert isinstance(begun, TransactionMetadata)
        return end(Transaction(begun), True, ME, version)

    assert story(0) is S.PREPARE_COMMIT
    assert story(2) is E.PRODUCER_FENCED


def test_the_last_epoch_ends_with_another_producer_id() -> None:
    last = Producer(7, LAST_CLIENT_EPOCH)
    transaction = in_state(S.ONGOING, producer_epoch=LAST_CLIENT_EPOCH)
    assert end(transaction, True, last, 2) is E.CONCURRENT_TRANSACTIONS, "no id was asked for"
    decided = end_transaction(transaction, last, True, 2, 200, 9)
    assert isinstance(decided, TransactionMetadata) and decided.next_producer_id == 9
    assert end(Transaction(decided), True, last, 2, 10) is E.CONCURRENT_TRANSACTIONS
    done = Transaction(complete(decided, 300))
    assert end(done, True, last, 2, 10) is E.NONE, "a retry"
    assert end(done, False, last, 2, 10) is E.INVALID_TXN_STATE
    assert end(done, True, Producer(7, 5), 2) is E.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("epoch", [3, LAST_CLIENT_EPOCH - 1, LAST_CLIENT_EPOCH])
def test_a_fenced_producer_is_never_taken_for_a_retry(epoch: int) -> None:
    """Under version 2 an answer to it would give it the epoch that fences it."""
    transaction = in_state(S.ONGOING, producer_epoch=epoch, client_version=2)
    aborted = abort_fenced(fence_producer(transaction), 200)
    assert aborted.producer_epoch == min(epoch + 2, MAX_EPOCH)
    for metadata in (aborted, complete(aborted, 300)):
        for commit in (True, False):
            answer = end(Transaction(metadata), commit, Producer(7, epoch), 2, 9)
            assert answer is E.PRODUCER_FENCED
