"""Named points in the code where a test or a lab can hold a process, to make a race exact.

A broker checks at each point whether it must wait. Normally its `Runtime` has no `Pauses`; then the
check is one attribute lookup, and nothing is awaited. Only the task that has reached the point
waits; everything else in the process continues.

    if pauses is not None:
        await pauses.at(PausePoint.FOLLOWER_BEFORE_FETCH, leader_id)
"""

from enum import StrEnum
from typing import Protocol


class PausePoint(StrEnum):
    """The points where a process can be held. The peer is the broker at the other end, if any."""

    ROLE_BEFORE_CHANGE = "role-before-change"
    """A LeaderAndIsr was received and accepted, but not carried out yet."""

    FOLLOWER_BEFORE_FETCH = "follower-before-fetch"
    """All that was fetched is in the log; the next fetch is not built yet. Peer: the leader."""

    FOLLOWER_BEFORE_TRUNCATION = "follower-before-truncation"
    """A new follower is about to ask where to truncate its log, which it does only with
    `replica.truncation.lookup=offsets-for-leader-epoch`. Peer: the leader."""

    FOLLOWER_BEFORE_APPLY = "follower-before-apply"
    """A response has arrived; none of its records are in the log yet. Peer: the leader."""

    LEADER_BEFORE_FETCH_ANSWER = "leader-before-fetch-answer"
    """A follower's fetch has had its effect; its response is not sent yet. Peer: the follower."""

    LEADER_BEFORE_ALTER_PARTITION = "leader-before-alter-partition"
    """An ISR change is due; it is not proposed to the controller yet."""

    CONTROLLER_BEFORE_LEADER_AND_ISR = "controller-before-leader-and-isr"
    """An election is in ZooKeeper; the request to a broker is not sent yet. Peer: that broker."""


class Pauses(Protocol):
    """Knows which points are held."""

    async def at(self, point: PausePoint, peer: int | None = None) -> None:
        """Return when the point is not held, for all peers or for this one."""
        ...
