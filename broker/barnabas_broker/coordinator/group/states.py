"""The states of a group, and which may follow which (Kafka's `GroupState`).

    Empty ──────────────► PreparingRebalance ──────► CompletingRebalance ──────► Stable
      ▲   first member      │  ▲                       │  every member has        │
      │                     │  └───────────────────────┴──────────────────────────┘
      └─────────────────────┘     a member joins, leaves or changes what it supports
        no member has joined

Every state may be followed by Dead: the group was deleted, has expired, or its partition has moved
to another broker.
"""

from collections.abc import Mapping
from enum import StrEnum


class GroupState(StrEnum):
    """`value` is Kafka's name, as DescribeGroups returns it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


VALID_PREVIOUS: Mapping[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}


def may_follow(state: GroupState, previous: GroupState) -> bool:
    """Whether a group in `previous` may become `state`."""
    return previous in VALID_PREVIOUS[state]


def can_rebalance(state: GroupState) -> bool:
    """Whether a rebalance may begin now; in PreparingRebalance one has begun already."""
    return may_follow(GroupState.PREPARING_REBALANCE, state)
