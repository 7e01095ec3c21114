"""What becomes of batches whose request failed: the whole table."""

import pytest
from barnabas.error_code import ErrorCode
from barnabas.errors import BarnabasError, MaybeApplied, Refused, error_for
from barnabas.producer.verdict import Verdict, judge, makes_metadata_stale

TOO_LARGE = error_for(ErrorCode.MESSAGE_TOO_LARGE)


@pytest.mark.parametrize(
    ("failure", "batches", "splittable", "verdict"),
    [
        (Refused("nobody there"), 1, True, Verdict.RETRY),
        (MaybeApplied("no answer"), 3, False, Verdict.RETRY),
        (error_for(ErrorCode.NOT_LEADER_OR_FOLLOWER), 1, True, Verdict.RETRY),
        (error_for(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND), 2, False, Verdict.RETRY),
        (TOO_LARGE, 2, False, Verdict.ISOLATE),
        (TOO_LARGE, 1, True, Verdict.SPLIT),
        (TOO_LARGE, 1, False, Verdict.FAIL),
        (error_for(ErrorCode.INVALID_RECORD), 2, False, Verdict.ISOLATE),
        (error_for(ErrorCode.INVALID_RECORD), 1, True, Verdict.FAIL),
        (error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED), 1, True, Verdict.FAIL),
    ],
)
def test_verdict(failure: BarnabasError, batches: int, splittable: bool, verdict: Verdict) -> None:
    assert judge(failure, batches, splittable) is verdict


@pytest.mark.parametrize(
    ("failure", "stale"),
    [
        (Refused("nobody there"), True),
        (error_for(ErrorCode.FENCED_LEADER_EPOCH), True),
        (error_for(ErrorCode.NOT_ENOUGH_REPLICAS), False),
        (TOO_LARGE, False),
    ],
)
def test_what_makes_metadata_stale(failure: BarnabasError, stale: bool) -> None:
    assert makes_metadata_stale(failure) is stale
