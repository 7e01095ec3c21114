"""ISR members that no longer host the partition, as their own fetch sessions show.

A caught-up member of an idle partition stays in the ISR for as long as its log end is the leader's
(as in Kafka), so a replica that is gone would stay there forever, and could be elected. Its fetch
session names all that the broker follows at this leader; a member that the session does not name
cannot be in sync. Members that are merely silent are left to `replica.lag.time.max.ms`.
Plain functions; times are monotonic seconds.
"""

from collections.abc import Iterable, Mapping


def absences(
    before: Mapping[int, float], spoke_without: Iterable[int], now: float
) -> dict[int, float]:
    """Since when each member has been absent from its session; `before` is the last result."""
    return {member: before.get(member, now) for member in spoke_without}


def no_longer_hosting(
    absent_since: Mapping[int, float],
    last_named: Mapping[int, float],
    now: float,
    grace: float,
) -> list[int]:
    """The members that have been absent for `grace` seconds, and were not named meanwhile.

    After a LeaderAndIsr, and after an error, a follower needs time to name the partition (again).
    """
    return [
        member
        for member, since in absent_since.items()
        if now - max(since, last_named[member]) >= grace
    ]


def describe_absence(broker_id: int) -> str:
    """Why such a member leaves the ISR, as text for humans."""
    return f"the fetch session of broker {broker_id} does not name the partition: it hosts none"
