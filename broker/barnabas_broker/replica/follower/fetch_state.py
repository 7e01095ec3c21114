"""The state of a partition that a follower fetches (Kafka's `PartitionFetchState`). Pure decisions.

    state         what the fetcher does                         next states
    TRUNCATING    asks the leader where an epoch ends           TRUNCATING, FETCHING, DELAYED
    FETCHING      keeps the partition in the fetch session      FETCHING, OUT_OF_RANGE, DELAYED
    OUT_OF_RANGE  asks where the leader's log starts and ends   FETCHING, DELAYED
    DELAYED       waits until `delayed_until`                   TRUNCATING, FETCHING, DELAYED

A partition starts in TRUNCATING if the policy asks before it fetches, otherwise in FETCHING. It is
removed from any state by the next LeaderAndIsr or StopReplica.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto

from barnabas_common.errors.error_code import ErrorCode

# The first backoff after an error, in seconds; doubled up to `replica.fetch.backoff.ms`. After an
# election a follower often fetches a few ms before the new leader has received its LeaderAndIsr.
FIRST_BACKOFF = 0.02


class ReplicaState(Enum):
    """See the table of this module."""

    TRUNCATING = auto()
    FETCHING = auto()
    OUT_OF_RANGE = auto()
    DELAYED = auto()


TRUNCATING, FETCHING, OUT_OF_RANGE, DELAYED = ReplicaState

NEXT_STATES = {
    TRUNCATING: {TRUNCATING, FETCHING, DELAYED},
    FETCHING: {FETCHING, OUT_OF_RANGE, DELAYED},
    OUT_OF_RANGE: {FETCHING, DELAYED},
    DELAYED: {TRUNCATING, FETCHING, DELAYED},
}


@dataclass(frozen=True, slots=True)
class PartitionFetchState:
    """`delayed_until` (monotonic seconds) and `resumes_in` belong to DELAYED. `backoff` is the last
    delay, in seconds, of a series of errors; None after a success."""

    state: ReplicaState
    backoff: float | None = None
    delayed_until: float = 0.0
    resumes_in: ReplicaState = FETCHING


def moved_to(current: PartitionFetchState, state: ReplicaState) -> PartitionFetchState:
    """Change the state only: a series of errors continues."""
    return replace(current, state=state)


def delayed(current: PartitionFetchState, until: float) -> PartitionFetchState:
    """Wait until `until`. A partition that has not been truncated resumes in TRUNCATING."""
    resumes_in = {TRUNCATING: TRUNCATING, DELAYED: current.resumes_in}.get(current.state, FETCHING)
    return replace(current, state=DELAYED, delayed_until=until, resumes_in=resumes_in)


def backed_off(current: PartitionFetchState, now: float, max_backoff: float) -> PartitionFetchState:
    """Wait after an error. Each error of a series doubles the wait, up to `max_backoff` seconds."""
    wanted = FIRST_BACKOFF if current.backoff is None else 2 * current.backoff
    backoff = min(wanted, max_backoff)
    return replace(delayed(current, now + backoff), backoff=backoff)


def after_error(
    current: PartitionFetchState, error_code: int, now: float, max_backoff: float
) -> PartitionFetchState | None:
    """The state after the leader answered with an error; None to wait for the next LeaderAndIsr.

    A fenced follower waits: answers to requests of an earlier leader epoch do not get here.
    """
    if error_code == ErrorCode.OFFSET_OUT_OF_RANGE and current.state is FETCHING:
        return moved_to(current, OUT_OF_RANGE)
    if error_code == ErrorCode.FENCED_LEADER_EPOCH:
        return None
    return backed_off(current, now, max_backoff)
