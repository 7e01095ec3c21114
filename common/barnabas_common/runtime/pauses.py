"""Named points in the code where a test or a lab can hold a process, to make a race exact.

A broker checks at each point whether it must wait. Without a `Pauses` in its `Runtime`, the normal
case, that is one attribute lookup: nothing is awaited. Only the task that has reached the point
stops; everything else in the process continues.

    if pauses is not None:
        await pauses.at(PausePoint.FOLLOWER_BEFORE_FETCH, leader_id)
"""

from enum import StrEnum
from typing import Protocol


class PausePoint(StrEnum):
    """Where a process can be held. `peer`: the broker at the other end, if there is one."""

    ROLE_BEFORE_CHANGE = "role-before-change"
    """A LeaderAndIsr was received and accepted; nothing of it is done yet."""

    FOLLOWER_BEFORE_FETCH = "follower-before-fetch"
    """All that was fetched is in the log; the next fetch is not built yet. Peer: the leader."""

    FOLLOWER_BEFORE_TRUNCATION = "follower-before-truncation"
    """A new follower is about to ask where to truncate its log, which it does only with
    `replica.truncation.lookup=offsets-for-leader-epoch`. Peer: the leader."""

    FOLLOWER_BEFORE_APPLY = "follower-before-apply"
    """An answer has arrived; nothing of it is in the log yet. Peer: the leader."""

    LEADER_BEFORE_FETCH_ANSWER = "leader-before-fetch-answer"
    """A follower's fetch has had its effect; its answer is not sent yet. Peer: the follower."""

    LEADER_BEFORE_ALTER_PARTITION = "leader-before-alter-partition"
    """An ISR change is due; it is not proposed to the controller yet."""

    CONTROLLER_BEFORE_LEADER_AND_ISR = "controller-before-leader-and-isr"
    """An election is in ZooKeeper; no request was sent to the broker yet. Peer: that broker."""


class Pauses(Protocol):
    """Knows which points are held."""

    async def at(self, point: PausePoint, peer: int | None = None) -> None:
        """Return when the point is not held, for all peers or for this one."""
        ...
