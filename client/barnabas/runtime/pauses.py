"""Named places in the code where a test or a lab can hold a process, to make a race exact.

A broker asks at each of these places whether it is to wait. Without a `Pauses` in its `Runtime`,
which is the rule, that is one look at an attribute: nothing is awaited. Holding stops only the task
that has come to the place; everything else in the process goes on.

    if pauses is not None:
        await pauses.at(PausePoint.FOLLOWER_BEFORE_FETCH, leader_id)
"""

from enum import StrEnum
from typing import Protocol


class PausePoint(StrEnum):
    """Where a process can be held. `peer`: the broker at the other end, where there is one."""

    ROLE_BEFORE_CHANGE = "role-before-change"
    """A LeaderAndIsr has arrived and is accepted; nothing of it is done yet."""

    FOLLOWER_BEFORE_FETCH = "follower-before-fetch"
    """All that was fetched is in the log; the next fetch is not built yet. Peer: the leader."""

    FOLLOWER_BEFORE_TRUNCATION = "follower-before-truncation"
    """A new follower is about to ask where to cut its log, which it does only with
    `replica.truncation.lookup=offsets-for-leader-epoch`. Peer: the leader."""

    FOLLOWER_BEFORE_APPLY = "follower-before-apply"
    """An answer has arrived; nothing of it is in the log yet. Peer: the leader."""

    LEADER_BEFORE_FETCH_ANSWER = "leader-before-fetch-answer"
    """A follower's fetch has had its effect; its answer is not sent yet. Peer: the follower."""

    LEADER_BEFORE_ALTER_PARTITION = "leader-before-alter-partition"
    """An ISR change is wished for; the controller does not know of it yet."""

    CONTROLLER_BEFORE_LEADER_AND_ISR = "controller-before-leader-and-isr"
    """An election is in ZooKeeper; the broker concerned is not told yet. Peer: that broker."""


class Pauses(Protocol):
    """Knows which places are held."""

    async def at(self, point: PausePoint, peer: int | None = None) -> None:
        """Return when the place is not held, for all peers or for this one."""
        ...
