"""What to do with batches whose request has come back: a decision, made on plain values."""

from enum import Enum

from barnabas.error_code import ErrorCode
from barnabas.errors import BarnabasError, KafkaError, TransportError


class Verdict(Enum):
    """The next step for the batches of one partition that travelled together."""

    RETRY = "send again, in the same order, after a pause"
    ISOLATE = "send again one by one: the fault is in one of them"
    SPLIT = "halve the batch: it is too large for the broker"
    FAIL = "sending again cannot help"


def is_retriable(failure: BarnabasError) -> bool:
    """Whether the same request may succeed later; a lost or refused connection always may."""
    if isinstance(failure, KafkaError):
        return failure.retriable
    return isinstance(failure, TransportError)


def makes_metadata_stale(failure: BarnabasError) -> bool:
    """Whether the leader is to be looked up anew before the next attempt."""
    if isinstance(failure, KafkaError):
        return failure.code.stale_metadata
    return True


def judge(failure: BarnabasError, batches: int, splittable: bool) -> Verdict:
    """The verdict on `batches` batches of one partition whose attempts are not used up.

    `splittable`: there is one batch, of several records, built here.
    """
    if is_retriable(failure):
        return Verdict.RETRY
    if batches > 1:
        return Verdict.ISOLATE
    too_large = isinstance(failure, KafkaError) and failure.code in (
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
    )
    return Verdict.SPLIT if too_large and splittable else Verdict.FAIL
