"""What happens to batches whose request failed: the whole table."""

import pytest
from barnabas.producer.send_error_action import (
    SendErrorAction,
    makes_metadata_stale,
    send_error_action,
    sequence_error_action,
)
from barnabas_common.errors import BarnabasError, MaybeApplied, NotApplied, error_for
from barnabas_common.errors.error_code import ErrorCode

TOO_LARGE = error_for(ErrorCode.MESSAGE_TOO_LARGE)


@pytest.mark.parametrize(
    ("failure", "batches", "splittable", "action"),
    [
        (NotApplied("nobody there"), 1, True, SendErrorAction.RETRY),
        (MaybeApplied("no answer"), 3, False, SendErrorAction.RETRY),
        (error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER), 1, True, SendErrorAction.RETRY),
        (error_for(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND), 2, False, SendErrorAction.RETRY),
        (TOO_LARGE, 2, False, SendErrorAction.ISOLATE),
        (TOO_LARGE, 1, True, SendErrorAction.SPLIT),
        (TOO_LARGE, 1, False, SendErrorAction.FAIL),
        (error_for(ErrorCode.INVALID_RECORD), 2, False, SendErrorAction.ISOLATE),
        (error_for(ErrorCode.INVALID_RECORD), 1, True, SendErrorAction.FAIL),
        (error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED), 1, True, SendErrorAction.FAIL),
    ],
)
def test_verdict(
    failure: BarnabasError, batches: int, splittable: bool, action: SendErrorAction
) -> None:
    assert send_error_action(failure, batches, splittable) is action


OUT_OF_ORDER = error_for(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
UNKNOWN_PRODUCER = error_for(ErrorCode.UNKNOWN_PRODUCER_ID)


@pytest.mark.parametrize(
    ("failure", "earliest", "may_be_forgotten", "log_start_offset", "action"),
    [
        (error_for(ErrorCode.DUPLICATE_SEQUENCE_NUMBER), False, False, 0, SendErrorAction.STORED),
        (OUT_OF_ORDER, False, True, 0, SendErrorAction.RETRY),
        (OUT_OF_ORDER, True, True, 0, SendErrorAction.WIDEN),
        (OUT_OF_ORDER, True, False, 0, SendErrorAction.RENUMBER),
        (UNKNOWN_PRODUCER, False, False, 5, SendErrorAction.RETRY),
        (UNKNOWN_PRODUCER, True, False, -1, SendErrorAction.RETRY),
        (UNKNOWN_PRODUCER, True, False, 5, SendErrorAction.RENUMBER),
        (TOO_LARGE, True, True, 0, None),
        (MaybeApplied("no answer"), True, True, 0, None),
    ],
)
def test_what_a_refused_sequence_leads_to(
    failure: BarnabasError,
    earliest: bool,
    may_be_forgotten: bool,
    log_start_offset: int,
    action: SendErrorAction | None,
) -> None:
    found = sequence_error_action(failure, earliest, may_be_forgotten, log_start_offset)
    assert found is action


@pytest.mark.parametrize(
    ("failure", "stale"),
    [
        (NotApplied("nobody there"), True),
        (error_for(ErrorCode.FENCED_LEADER_EPOCH), True),
        (error_for(ErrorCode.NOT_ENOUGH_REPLICAS), False),
        (TOO_LARGE, False),
    ],
)
def test_what_makes_metadata_stale(failure: BarnabasError, stale: bool) -> None:
    assert makes_metadata_stale(failure) is stale
