"""The states of a member, and what each error of a coordinator means for it: tables, no code.

Kafka's `AbstractCoordinator` has the same rules in its handlers of responses. Two states more are
needed here, in which a member waits for the application's next poll: partitions are given up and
taken there only, so that no record is worked on while its partition changes hands.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from barnabas_common.errors.error_code import ErrorCode


class MemberState(Enum):
    """The value says in words what the member does."""

    UNJOINED = "is in no group"
    REVOKING = "waits for the application to give up partitions before it joins"
    PREPARING_REBALANCE = "has joined and waits for the others"
    COMPLETING_REBALANCE = "waits for the leader's assignment"
    ASSIGNING = "waits for the application to take its partitions"
    STABLE = "reads its partitions"
    FAILED = "cannot go on without the application"

    @property
    def beats(self) -> bool:
        """Whether heartbeats are sent; while the join is parked the coordinator expects none."""
        return self in (_S.REVOKING, _S.COMPLETING_REBALANCE, _S.ASSIGNING, _S.STABLE)

    @property
    def needs_application(self) -> bool:
        """Whether nothing goes on before the application's next poll."""
        return self in (_S.REVOKING, _S.ASSIGNING, _S.FAILED)


_S = MemberState
_ANY = frozenset(_S)

# The states from which each state may be entered.
PREVIOUS: Mapping[MemberState, frozenset[MemberState]] = {
    _S.UNJOINED: _ANY,
    _S.REVOKING: _ANY - {_S.FAILED},
    _S.PREPARING_REBALANCE: frozenset({_S.REVOKING, _S.COMPLETING_REBALANCE}),
    _S.COMPLETING_REBALANCE: frozenset({_S.PREPARING_REBALANCE}),
    _S.ASSIGNING: frozenset({_S.COMPLETING_REBALANCE}),
    _S.STABLE: frozenset({_S.ASSIGNING}),
    _S.FAILED: _ANY,
}


class Generation(NamedTuple):
    """Who this member is to the coordinator. `number` -1: it is in no generation."""

    number: int = -1
    member_id: str = ""
    protocol: str = ""


class Reaction(Enum):
    """What a member does about an answer."""

    GO_ON = "the request succeeded"
    TRY_AGAIN = "send it again after a pause"
    FIND_COORDINATOR = "another broker coordinates the group now: find it and send it again"
    REJOIN = "the group rebalances: join again, partitions are still this member's"
    FORGET_GENERATION = "the generation is over: join again with the same member id"
    FORGET_MEMBER = "the group does not know this member: join again as a new one"
    TAKE_MEMBER_ID = "join again with the member id in the answer (KIP-394)"
    FAIL = "only the application can do something about it"


_E, _R = ErrorCode, Reaction

_COORDINATOR_MOVED = {
    _E.NONE: _R.GO_ON,
    _E.COORDINATOR_NOT_AVAILABLE: _R.FIND_COORDINATOR,
    _E.NOT_COORDINATOR: _R.FIND_COORDINATOR,
    _E.COORDINATOR_LOAD_IN_PROGRESS: _R.TRY_AGAIN,
}
_MEMBER_UNKNOWN = {
    _E.UNKNOWN_MEMBER_ID: _R.FORGET_MEMBER,
    _E.ILLEGAL_GENERATION: _R.FORGET_GENERATION,
}
JOIN: Mapping[ErrorCode, Reaction] = {
    **_COORDINATOR_MOVED,
    _E.UNKNOWN_MEMBER_ID: _R.FORGET_MEMBER,
    _E.MEMBER_ID_REQUIRED: _R.TAKE_MEMBER_ID,
    _E.REBALANCE_IN_PROGRESS: _R.TRY_AGAIN,
}
SYNC: Mapping[ErrorCode, Reaction] = {
    **_COORDINATOR_MOVED,
    **_MEMBER_UNKNOWN,
    _E.REBALANCE_IN_PROGRESS: _R.REJOIN,
}
HEARTBEAT: Mapping[ErrorCode, Reaction] = {
    **_COORDINATOR_MOVED,
    **_MEMBER_UNKNOWN,
    _E.REBALANCE_IN_PROGRESS: _R.REJOIN,
}
COMMIT: Mapping[ErrorCode, Reaction] = {
    **_COORDINATOR_MOVED,
    **_MEMBER_UNKNOWN,
    _E.REQUEST_TIMED_OUT: _R.FIND_COORDINATOR,
    _E.UNKNOWN_TOPIC_OR_PARTITION: _R.TRY_AGAIN,
    _E.REBALANCE_IN_PROGRESS: _R.REJOIN,
}
# Requests that need no membership: FetchOffsets, DescribeGroups, DeleteGroups and the like.
PLAIN: Mapping[ErrorCode, Reaction] = {
    **_COORDINATOR_MOVED,
    _E.UNSTABLE_OFFSET_COMMIT: _R.TRY_AGAIN,
}


def reaction(table: Mapping[ErrorCode, Reaction], code: int) -> Reaction:
    """The reaction to an error code; what the table does not name is the application's."""
    try:
        return table.get(ErrorCode(code), Reaction.FAIL)
    except ValueError:  # a code of a newer broker
        return Reaction.FAIL
