"""The next step for batches whose request has failed: a decision on plain values."""

from enum import Enum

from barnabas_common.errors import BarnabasError, KafkaError, NotApplied
from barnabas_common.errors.error_code import ErrorCode

# With these a broker answers after the append, or does not know whether there was one.
_AFTER_AN_APPEND = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


class SendErrorAction(Enum):
    """The next step for the batches of one partition that were in one request."""

    RETRY = "send again, in the same order, after a pause"
    ISOLATE = "send again one by one: the error is in one of them"
    SPLIT = "halve the batch: it is too large for the broker"
    FAIL = "sending again cannot help"
    WIDEN = "send again together with batches behind it: the leader may remember only those"
    RENUMBER = "send again under a new producer epoch: the leader misses an earlier batch"
    STORED = "the leader has stored the batch already, at an offset that it does not know any more"


def makes_metadata_stale(failure: BarnabasError) -> bool:
    """Whether the leader must be looked up again before the next attempt."""
    if isinstance(failure, KafkaError):
        return failure.code.stale_metadata
    return True


def maybe_stored(failure: BarnabasError) -> bool:
    """Whether the leader may have stored the batches nevertheless."""
    if isinstance(failure, KafkaError):
        return failure.code in _AFTER_AN_APPEND
    return not isinstance(failure, NotApplied)


def sequence_error_action(
    failure: BarnabasError, earliest: bool, may_be_forgotten: bool, log_start_offset: int
) -> SendErrorAction | None:
    """The action for numbered batches that the leader did not take because of their number.

    None if that is not the reason. `earliest`: every batch before them is delivered or given up.
    `may_be_forgotten`: a leader that has stored them may not recognize them any more.
    `log_start_offset` is that of the answer.
    """
    if not isinstance(failure, KafkaError):
        return None
    code = failure.code
    if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        return SendErrorAction.STORED
    if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
        if not earliest:  # it only arrived before the retry of one that was refused
            return SendErrorAction.RETRY
        # Under a new epoch the leader would store a batch that it has forgotten a second time.
        return SendErrorAction.WIDEN if may_be_forgotten else SendErrorAction.RENUMBER
    if code == ErrorCode.UNKNOWN_PRODUCER_ID:
        # An answer without a log start offset comes from a broker that has just lost the partition.
        known = log_start_offset >= 0
        return SendErrorAction.RENUMBER if earliest and known else SendErrorAction.RETRY
    return None


def send_error_action(failure: BarnabasError, batches: int, splittable: bool) -> SendErrorAction:
    """The action for batches of one partition whose attempts are not used up.

    `batches` is how many of the partition were in the request, with those given up since.
    `splittable`: the first batch was built here and has several records.
    """
    if failure.retriable:
        return SendErrorAction.RETRY
    if batches > 1:
        return SendErrorAction.ISOLATE
    too_large = isinstance(failure, KafkaError) and failure.code in (
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
    )
    return SendErrorAction.SPLIT if too_large and splittable else SendErrorAction.FAIL
