"""What each error of a coordinator means for a transactional producer: tables, no code.

The tables are those of the handlers in Kafka's `TransactionManager`. In them the class of an error
does not always say what the producer can do: an INVALID_TXN_STATE is fatal as an answer to EndTxn.
`raised` makes an error that says it.
"""

from collections.abc import Mapping
from enum import Enum

from barnabas_common.errors import (
    BarnabasError,
    InvalidProducerIdMappingError,
    KafkaError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionFailedError,
    error_for,
)
from barnabas_common.errors.error_code import ErrorCode

from barnabas.cluster.coordinator import NextAttempt
from barnabas.group.offsets import CommitFailedError


class Outcome(Enum):
    """What the producer does about an answer."""

    DONE = "the request succeeded"
    TRY_AGAIN = "send it again after a pause"
    FIND_COORDINATOR = "another broker coordinates now: find it and send the request again"
    ABORT = "the transaction must be aborted"
    LEFT_GROUP = "the transaction must be aborted: others read the partitions now"
    FENCED = "another producer has the transactional id: close"
    FAIL = "nothing can succeed any more: close"


_E, _O = ErrorCode, Outcome
Table = Mapping[ErrorCode, Outcome]

_COMMON = {
    _E.NONE: _O.DONE,
    _E.COORDINATOR_NOT_AVAILABLE: _O.FIND_COORDINATOR,
    _E.NOT_COORDINATOR: _O.FIND_COORDINATOR,
    _E.INVALID_PRODUCER_EPOCH: _O.FENCED,
    _E.PRODUCER_FENCED: _O.FENCED,
    _E.TRANSACTION_ABORTABLE: _O.ABORT,
}
# The coordinator has forgotten the transactional id: after the abort the producer asks for another
# producer id.
_FORGOTTEN = {
    _E.INVALID_PRODUCER_ID_MAPPING: _O.ABORT,
    _E.UNKNOWN_PRODUCER_ID: _O.ABORT,
}
INIT_PRODUCER_ID: Table = _COMMON
ADD_PARTITIONS: Table = {
    **_COMMON,
    **_FORGOTTEN,
    _E.TOPIC_AUTHORIZATION_FAILED: _O.ABORT,
    _E.OPERATION_NOT_ATTEMPTED: _O.ABORT,
    _E.INVALID_TOPIC_EXCEPTION: _O.ABORT,
}
ADD_OFFSETS: Table = {
    **_COMMON,
    **_FORGOTTEN,
    _E.GROUP_AUTHORIZATION_FAILED: _O.ABORT,
    _E.INVALID_GROUP_ID: _O.ABORT,
}
TXN_OFFSET_COMMIT: Table = {
    **_COMMON,
    _E.REQUEST_TIMED_OUT: _O.FIND_COORDINATOR,
    _E.GROUP_AUTHORIZATION_FAILED: _O.ABORT,
    _E.OFFSET_METADATA_TOO_LARGE: _O.ABORT,
    _E.FENCED_INSTANCE_ID: _O.ABORT,
    _E.UNKNOWN_MEMBER_ID: _O.LEFT_GROUP,
    _E.ILLEGAL_GENERATION: _O.LEFT_GROUP,
    _E.REBALANCE_IN_PROGRESS: _O.LEFT_GROUP,
}
END_TXN: Table = {**_COMMON, **_FORGOTTEN}

_ATTEMPTS = {_O.TRY_AGAIN: NextAttempt.SAME, _O.FIND_COORDINATOR: NextAttempt.FIND}


def outcome(table: Table, code: int) -> Outcome:
    """The outcome that an error code leads to; other codes are retriable, or fatal."""
    try:
        known = ErrorCode(code)
    except ValueError:  # a code of a newer broker
        return Outcome.FAIL
    return table.get(known, Outcome.TRY_AGAIN if known.retriable else Outcome.FAIL)


def next_attempt(table: Table, code: int) -> NextAttempt:
    """Whether the request is sent again."""
    return _ATTEMPTS.get(outcome(table, code), NextAttempt.NONE)


def raised(table: Table, code: int, message: str) -> BarnabasError:
    """The error to raise for a code that is final; its class says what the producer can do."""
    found, error = outcome(table, code), error_for(code, message)
    if found is Outcome.FENCED:
        return ProducerFencedError(
            f"{message}: another producer has initialized it since, or the transaction was open "
            "for too long: close this producer"
        )
    if found is Outcome.LEFT_GROUP:
        return CommitFailedError(f"the group goes on without this consumer: {error}")
    return as_fatal(error) if found is Outcome.FAIL else as_abortable(error)


def after_produce(error: BarnabasError) -> BarnabasError:
    """The error for records that were given up: abortable, unless the producer is shut out."""
    shut_out = isinstance(error, KafkaError) and error.fatal
    return error if shut_out else as_abortable(error)


def as_fatal(error: BarnabasError) -> BarnabasError:
    """The error, or one of a class that is fatal."""
    return error if error.fatal else _of(TransactionFailedError, error)


def as_abortable(error: BarnabasError) -> BarnabasError:
    """The error, or one of a class that is neither retriable nor fatal."""
    if error.retriable or error.fatal:
        return _of(TransactionAbortableError, error)
    return error


def raised_again(error: BarnabasError) -> BarnabasError:
    """The error for another call: one of the same class and text, without the old traceback."""
    text = error.message if isinstance(error, KafkaError) else str(error)
    return _of(type(error), error, text)


def needs_producer_id(error: BarnabasError | None) -> bool:
    """Whether the coordinator no longer knows the producer: it would refuse EndTxn too."""
    return isinstance(error, InvalidProducerIdMappingError)


def _of(cls: type[BarnabasError], cause: BarnabasError, text: str | None = None) -> BarnabasError:
    error = cls(str(cause) if text is None else text)
    error.__cause__ = cause
    return error
