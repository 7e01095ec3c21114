"""The tables of a transactional producer: its states, and what each error leads to."""

import pytest
from barnabas.cluster.cluster import may_ask_another, only_reads
from barnabas.cluster.coordinator import NextAttempt
from barnabas.group.offsets import CommitFailedError
from barnabas.producer.transaction.outcomes import (
    ADD_OFFSETS,
    ADD_PARTITIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    TXN_OFFSET_COMMIT,
    Outcome,
    Table,
    after_produce,
    as_abortable,
    as_fatal,
    next_attempt,
    outcome,
    raised,
    raised_again,
)
from barnabas.producer.transaction.states import VALID_PREVIOUS, State, may_follow
from barnabas_common.errors import (
    BarnabasError,
    ClusterAuthorizationFailedError,
    DeliveryTimeoutError,
    InvalidArgumentError,
    InvalidProducerEpochError,
    InvalidTxnStateError,
    MaybeApplied,
    MessageTooLargeError,
    NotApplied,
    NotLeaderOrFollowerError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionalIdAuthorizationFailedError,
    TransactionFailedError,
    UnsupportedVersionError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.producer_ids import InitProducerIdRequest

E = ErrorCode
TABLES = {
    "InitProducerId": INIT_PRODUCER_ID,
    "AddPartitionsToTxn": ADD_PARTITIONS,
    "AddOffsetsToTxn": ADD_OFFSETS,
    "TxnOffsetCommit": TXN_OFFSET_COMMIT,
    "EndTxn": END_TXN,
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
def test_what_every_request_has_in_common(table: Table) -> None:
    assert outcome(table, E.NONE) is Outcome.DONE
    assert outcome(table, E.COORDINATOR_NOT_AVAILABLE) is Outcome.FIND_COORDINATOR
    assert outcome(table, E.NOT_COORDINATOR) is Outcome.FIND_COORDINATOR
    assert outcome(table, E.COORDINATOR_LOAD_IN_PROGRESS) is Outcome.TRY_AGAIN
    assert outcome(table, E.CONCURRENT_TRANSACTIONS) is Outcome.TRY_AGAIN
    assert outcome(table, E.INVALID_PRODUCER_EPOCH) is Outcome.FENCED
    assert outcome(table, E.PRODUCER_FENCED) is Outcome.FENCED
    assert outcome(table, E.TRANSACTION_ABORTABLE) is Outcome.ABORT
    assert outcome(table, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED) is Outcome.FAIL
    assert outcome(table, E.INVALID_TXN_STATE) is Outcome.FAIL
    assert outcome(table, E.UNKNOWN_SERVER_ERROR) is Outcome.FAIL
    assert outcome(table, 30_000) is Outcome.FAIL, "a code of a newer broker"


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES.keys())
@pytest.mark.parametrize("code", [c for c in ErrorCode if c is not E.NONE])
def test_the_class_of_what_is_raised_says_what_to_do(table: Table, code: ErrorCode) -> None:
    found = outcome(table, code)
    if next_attempt(table, code) is not NextAttempt.NONE:
        assert found in (Outcome.TRY_AGAIN, Outcome.FIND_COORDINATOR)
        return
    error = raised(table, code, "transactional id 'copy'")
    assert error.fatal == (found in (Outcome.FENCED, Outcome.FAIL))
    assert not error.retriable, "the request was answered for good"


@pytest.mark.parametrize(
    ("table", "code", "kind"),
    [
        (END_TXN, E.INVALID_PRODUCER_EPOCH, ProducerFencedError),
        (END_TXN, E.INVALID_TXN_STATE, TransactionFailedError),
        (TXN_OFFSET_COMMIT, E.ILLEGAL_GENERATION, CommitFailedError),
        (TXN_OFFSET_COMMIT, E.UNKNOWN_MEMBER_ID, CommitFailedError),
        (ADD_PARTITIONS, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
         TransactionalIdAuthorizationFailedError),
    ],
)  # fmt: skip
def test_errors_that_are_raised(table: Table, code: ErrorCode, kind: type[BarnabasError]) -> None:
    assert type(raised(table, code, "here")) is kind


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (MessageTooLargeError("m"), MessageTooLargeError),
        (InvalidProducerEpochError("m"), InvalidProducerEpochError),
        (DeliveryTimeoutError("m"), DeliveryTimeoutError),
        (InvalidTxnStateError("m"), InvalidTxnStateError),
        (NotLeaderOrFollowerError("m"), TransactionAbortableError),
        (MaybeApplied("m"), TransactionAbortableError),
        (TransactionFailedError("m"), TransactionAbortableError),
        (ProducerFencedError("m"), ProducerFencedError),
        (ClusterAuthorizationFailedError("m"), ClusterAuthorizationFailedError),
        (UnsupportedVersionError("m"), UnsupportedVersionError),
    ],
)
def test_records_that_were_given_up(given: BarnabasError, kind: type[BarnabasError]) -> None:
    error = after_produce(given)
    assert type(error) is kind and "m" in str(error)
    assert error.fatal == (kind in (
        ProducerFencedError, ClusterAuthorizationFailedError, UnsupportedVersionError
    ))  # fmt: skip


def test_an_error_that_changes_its_class_keeps_its_cause() -> None:
    first = InvalidTxnStateError("why")
    assert as_fatal(first).__cause__ is first and "INVALID_TXN_STATE: why" in str(as_fatal(first))
    lost = MaybeApplied("why")
    assert as_abortable(lost).__cause__ is lost
    for error in (first, lost, InvalidArgumentError("why")):
        again = raised_again(error)
        assert type(again) is type(error) and str(again) == str(error)
        assert again.__cause__ is error and again is not error


def test_the_states_are_those_of_kafka() -> None:
    s = State
    kafka = {
        (s.UNINITIALIZED, s.INITIALIZING), (s.ABORTING, s.INITIALIZING),
        (s.INITIALIZING, s.READY), (s.COMMITTING, s.READY), (s.ABORTING, s.READY),
        (s.READY, s.IN_TRANSACTION), (s.IN_TRANSACTION, s.COMMITTING),
        (s.IN_TRANSACTION, s.ABORTING), (s.ABORTABLE_ERROR, s.ABORTING),
        (s.IN_TRANSACTION, s.ABORTABLE_ERROR), (s.COMMITTING, s.ABORTABLE_ERROR),
        (s.ABORTABLE_ERROR, s.ABORTABLE_ERROR), (s.INITIALIZING, s.ABORTABLE_ERROR),
        *((state, s.FATAL_ERROR) for state in s),
        # KIP-939
        (s.IN_TRANSACTION, s.PREPARED), (s.INITIALIZING, s.PREPARED),
        (s.PREPARED, s.COMMITTING), (s.PREPARED, s.ABORTING), (s.PREPARED, s.ABORTABLE_ERROR),
    }  # fmt: skip
    table = {(before, after) for after, allowed in VALID_PREVIOUS.items() for before in allowed}
    assert table == kafka
    assert set(VALID_PREVIOUS) == set(State)
    assert may_follow(s.READY, s.COMMITTING) and not may_follow(s.COMMITTING, s.READY)


def test_which_states_drop_batches_and_which_have_a_transaction() -> None:
    s = State
    assert {x for x in s if x.drops_batches} == {s.ABORTABLE_ERROR, s.ABORTING, s.FATAL_ERROR}
    assert {x for x in s if x.is_open} == {
        s.IN_TRANSACTION, s.COMMITTING, s.ABORTING, s.ABORTABLE_ERROR
    }  # fmt: skip


def test_an_init_with_a_transactional_id_is_a_change() -> None:
    plain, transactional = InitProducerIdRequest(), InitProducerIdRequest("copy", 60_000)
    assert only_reads(plain) and not only_reads(transactional)
    assert may_ask_another(plain, MaybeApplied("lost"))
    assert not may_ask_another(transactional, MaybeApplied("lost"))
    assert may_ask_another(transactional, NotApplied("refused"))
