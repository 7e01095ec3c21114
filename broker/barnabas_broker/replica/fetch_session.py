"""The leader's side of incremental fetch sessions (KIP-227): one per follower.

A session remembers every partition a follower reads and from where, so that a request names only
what moved since the last one. The session keeps an ordered set of the partitions that may have
something to say: data beyond the follower's offset, a new high watermark or log start, an error.
Answering costs as much as changed, however many partitions there are.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.error_code import ErrorCode
from barnabas.messages.fetch import FetchedPartition, FetchPartition, FetchRequest
from barnabas.topic_partition import TopicPartition

from barnabas_broker.replica.deadlines import Waiter, wake

if TYPE_CHECKING:
    from barnabas_broker.replica.leadership import Leadership
    from barnabas_broker.replica.partition import Partition

NO_SESSION = 0
FIRST_EPOCH = 0
NOTHING_SENT = -1
UNKNOWN_BROKER_EPOCH = -1


class SessionPartition:
    """One partition of a session: the follower's position, and what it was last told.

    `partition` is where it is attached, and None while this broker does not host it. `noted_by` is
    the leadership that found the position valid and took note of it, None until one has.
    """

    __slots__ = (
        "noted_by",
        "partition",
        "position",
        "sent_high_watermark",
        "sent_log_start_offset",
        "session",
        "topic_partition",
    )

    def __init__(self, session: "FollowerSession", position: FetchPartition) -> None:
        self.session = session
        self.topic_partition = TopicPartition(position.topic, position.partition)
        self.partition: Partition | None = None
        self.move_to(position)

    def move_to(self, position: FetchPartition) -> None:
        """The follower names the partition: tell it everything again. It may have set the last
        answer aside, because it diverged or because its role had changed."""
        self.position = position
        self.noted_by: Leadership | None = None
        self.sent_high_watermark = NOTHING_SENT
        self.sent_log_start_offset = NOTHING_SENT

    def data_arrived(self) -> None:
        """The leader appended: worth answering a parked fetch."""
        self.session.changed[self] = None
        self.session.wake()

    def offsets_moved(self) -> None:
        """High watermark or log start moved: goes along with the next answer."""
        self.session.changed[self] = None

    def leadership_changed(self) -> None:
        """The follower's idea of the leader is out of date: let it know at once."""
        self.session.changed[self] = None
        self.session.wake()

    def watch_for_admission(self) -> None:
        """Try this follower for the ISR at each fetch, whether the partition changed or not."""
        self.session.outsiders[self] = None

    def is_news(self, answer: FetchedPartition) -> bool:
        """Whether the follower has not been told all of this already."""
        return bool(
            answer.records
            or answer.error_code
            or answer.diverging_epoch >= 0
            or answer.high_watermark != self.sent_high_watermark
            or answer.log_start_offset != self.sent_log_start_offset
        )

    def has_more(self) -> bool:
        """Whether there is data, or a high watermark or log start, not sent so far."""
        log = self.partition.log if self.partition is not None else None
        return log is not None and (
            self.position.fetch_offset < log.log_end_offset
            or self.sent_high_watermark != log.high_watermark
            or self.sent_log_start_offset != log.log_start_offset
        )

    def attach(self, partition: "Partition") -> None:
        """Be told from now on what happens at the partition."""
        if self.partition is partition:
            return
        self.detach()
        self.partition = partition
        partition.waiting.followers[self.session.broker_id] = self
        if partition.leadership is not None:
            partition.leadership.isr_changes.watch_outsiders()

    def detach(self) -> None:
        """No longer wait at the partition."""
        if self.partition is not None:
            followers = self.partition.waiting.followers
            if followers.get(self.session.broker_id) is self:
                del followers[self.session.broker_id]
            self.partition = None


class FollowerSession:
    """All that one follower reads here. `epoch` is that of its latest request.

    `last_fetch_time`: when it last asked, in monotonic seconds; `broker_epoch`: which life of the
    follower did. Both hold for all its partitions.
    """

    def __init__(self, session_id: int, broker_id: int, now: float) -> None:
        self.session_id = session_id
        self.broker_id = broker_id
        self.epoch = FIRST_EPOCH
        self.last_fetch_time = now
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.partitions: dict[TopicPartition, SessionPartition] = {}
        self.changed: dict[SessionPartition, None] = {}
        self.outsiders: dict[SessionPartition, None] = {}
        self.parked: Waiter | None = None

    def take(self, request: FetchRequest, now: float) -> None:
        """Apply a request's positions; each partition it names is looked at."""
        self.epoch = request.session_epoch
        self.last_fetch_time = now
        self.broker_epoch = request.replica_epoch
        self.wake()
        for position in request.partitions:
            key = TopicPartition(position.topic, position.partition)
            entry = self.partitions.get(key)
            if entry is None:
                entry = self.partitions[key] = SessionPartition(self, position)
            else:
                entry.move_to(position)
            self.changed[entry] = None
        for gone in request.forgotten:
            self._forget(TopicPartition(gone.topic, gone.partition))

    def _forget(self, key: TopicPartition) -> None:
        entry = self.partitions.pop(key, None)
        if entry is not None:
            entry.detach()
            self.changed.pop(entry, None)
            self.outsiders.pop(entry, None)

    def wake(self) -> None:
        """Have the parked request, if any, look again."""
        if self.parked is not None:
            wake(self.parked)
            self.parked = None

    def settle(self, entry: SessionPartition, answer: FetchedPartition) -> None:
        """`answer` is being sent. What was read goes to the back, so that all get their turn;
        what has been told everything leaves the set of the changed."""
        entry.sent_high_watermark = answer.high_watermark
        entry.sent_log_start_offset = answer.log_start_offset
        if answer.records or answer.error_code or answer.diverging_epoch >= 0:
            self.changed.pop(entry, None)
            self.changed[entry] = None
        elif not entry.has_more():
            self.changed.pop(entry, None)

    def close(self) -> None:
        """Drop the session; a parked request finds out when it looks again."""
        for entry in self.partitions.values():
            entry.detach()
        self.partitions.clear()
        self.changed.clear()
        self.outsiders.clear()
        self.wake()


class FollowerSessions:
    """The sessions of a broker, one per follower: a new one replaces the old."""

    def __init__(self) -> None:
        self._by_broker: dict[int, FollowerSession] = {}
        self._broker_epochs: dict[int, int] = {}
        self._last_id = NO_SESSION

    def __iter__(self) -> Iterator[FollowerSession]:
        return iter(list(self._by_broker.values()))

    def session_for(self, request: FetchRequest, now: float) -> FollowerSession | ErrorCode:
        """The session of a request, opened if it asks for a new one; or why there is none."""
        broker_id = request.replica_id
        if 0 <= request.replica_epoch < self._broker_epochs.get(broker_id, -1):
            return ErrorCode.STALE_BROKER_EPOCH
        self._broker_epochs[broker_id] = max(
            request.replica_epoch, self._broker_epochs.get(broker_id, -1)
        )
        session = self._by_broker.get(broker_id)
        if request.session_epoch == FIRST_EPOCH:
            return self._open(broker_id, now)
        if session is None or session.session_id != request.session_id:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if request.session_epoch != session.epoch + 1:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        return session

    def is_open(self, session: FollowerSession) -> bool:
        return self._by_broker.get(session.broker_id) is session

    def _open(self, broker_id: int, now: float) -> FollowerSession:
        old = self._by_broker.pop(broker_id, None)
        if old is not None:
            old.close()
        self._last_id += 1
        session = FollowerSession(self._last_id, broker_id, now)
        self._by_broker[broker_id] = session
        return session

    def close(self) -> None:
        """End every session."""
        for session in self:
            session.close()
        self._by_broker.clear()
