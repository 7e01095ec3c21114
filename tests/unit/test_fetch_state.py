"""The states of a partition that a follower fetches, and what changes them."""

import pytest
from barnabas_broker.replica.follower.fetch_state import (
    FIRST_BACKOFF,
    NEXT_STATES,
    PartitionFetchState,
    ReplicaState,
    after_error,
    backed_off,
    delayed,
)
from barnabas_common.errors.error_code import ErrorCode

FETCHING = PartitionFetchState(ReplicaState.FETCHING)
TRUNCATING = PartitionFetchState(ReplicaState.TRUNCATING)


def error(code: ErrorCode, state: PartitionFetchState = FETCHING) -> PartitionFetchState | None:
    return after_error(state, code, now=100.0, max_backoff=1.0)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.OFFSET_OUT_OF_RANGE, ReplicaState.OUT_OF_RANGE),
        (ErrorCode.FENCED_LEADER_EPOCH, None),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, ReplicaState.DELAYED),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ReplicaState.DELAYED),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ReplicaState.DELAYED),
        (ErrorCode.KAFKA_STORAGE_ERROR, ReplicaState.DELAYED),
    ],
)
def test_what_a_follower_does_about_an_error(
    code: ErrorCode, expected: ReplicaState | None
) -> None:
    following = error(code)
    assert (following.state if following is not None else None) is expected


def test_a_series_of_errors_doubles_the_delay_up_to_the_limit() -> None:
    state, delays = FETCHING, []
    for _ in range(8):
        state = backed_off(state, 100.0, 1.0)
        delays.append(state.delayed_until - 100.0)
    assert delays[:3] == pytest.approx([FIRST_BACKOFF, 2 * FIRST_BACKOFF, 4 * FIRST_BACKOFF])
    assert delays[-1] == pytest.approx(1.0)


def test_a_delay_ends_in_the_state_it_interrupted() -> None:
    assert delayed(FETCHING, 1.0).resumes_in is ReplicaState.FETCHING
    assert delayed(delayed(TRUNCATING, 1.0), 2.0).resumes_in is ReplicaState.TRUNCATING
    out_of_range = PartitionFetchState(ReplicaState.OUT_OF_RANGE)
    assert delayed(out_of_range, 1.0).resumes_in is ReplicaState.FETCHING


@pytest.mark.parametrize("state", list(ReplicaState))
@pytest.mark.parametrize("code", [code for code in ErrorCode if code])
def test_errors_lead_to_legal_states_only(state: ReplicaState, code: ErrorCode) -> None:
    following = error(code, state=PartitionFetchState(state))
    assert following is None or following.state in NEXT_STATES[state]
