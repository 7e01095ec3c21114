"""What happens to batches whose request failed: the whole table."""

import pytest
from barnabas.producer.send_error_action import (
    SendErrorAction,
    makes_metadata_stale,
    send_error_action,
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
