"""The next step for batches whose request has failed: a decision on plain values."""

from enum import Enum

from barnabas_common.errors import BarnabasError, KafkaError
from barnabas_common.errors.error_code import ErrorCode


class SendErrorAction(Enum):
    """The next step for the batches of one partition that were in one request."""

    RETRY = "send again, in the same order, after a pause"
    ISOLATE = "send again one by one: the error is in one of them"
    SPLIT = "halve the batch: it is too large for the broker"
    FAIL = "sending again cannot help"


def makes_metadata_stale(failure: BarnabasError) -> bool:
    """Whether the leader must be looked up again before the next attempt."""
    if isinstance(failure, KafkaError):
        return failure.code.stale_metadata
    return True


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
