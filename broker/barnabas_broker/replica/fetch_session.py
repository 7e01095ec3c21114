"""The leader's side of incremental fetch sessions (KIP-227): one for each follower.

A session remembers every partition that a follower reads and from where, so that a request names
only what moved since the last one. The session keeps an ordered set of the partitions that may have
news: data beyond the follower's offset, a new high watermark or log start, an error. The cost of an
answer depends on what changed, not on the number of partitions.
"""

import math
from collections.abc import Iterator, Mapping

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.fetch import FetchedPartition, FetchPartition, FetchRequest
from barnabas_common.messages.sentinels import NO_EPOCH
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.deadlines import Waiter, wake

NO_SESSION = 0
FIRST_EPOCH = 0
NOTHING_SENT = -1


class CachedPartition:
    """One partition of a session: the follower's position, and what was last sent to it.

    `noted_epoch` is the leader epoch in which the leader found this position valid and took note
    of it, -1 if it has not.
    """

    __slots__ = (
        "_attached_to",
        "noted_epoch",
        "position",
        "sent_high_watermark",
        "sent_log_start_offset",
        "session",
        "topic_partition",
    )

    def __init__(self, session: "FetchSession", position: FetchPartition) -> None:
        self.session = session
        self.topic_partition = TopicPartition(position.topic, position.partition)
        self._attached_to: dict[int, CachedPartition] | None = None
        self.move_to(position)

    def move_to(self, position: FetchPartition) -> None:
        """The follower names the partition: everything is news to it again.

        It may have ignored the last answer because its log diverged or its role had changed.
        """
        self.position = position
        self.noted_epoch = NO_EPOCH
        self.sent_high_watermark = NOTHING_SENT
        self.sent_log_start_offset = NOTHING_SENT

    def data_arrived(self) -> None:
        """The leader appended: wake the parked fetch."""
        self.session.changed[self] = None
        self.session.wake()

    def offsets_moved(self) -> None:
        """The high watermark or the log start moved: send it with the next answer."""
        self.session.changed[self] = None

    def leadership_changed(self) -> None:
        """The follower must look for another leader: wake the parked fetch."""
        self.session.changed[self] = None
        self.session.wake()

    def watch_for_isr_expansion(self) -> None:
        """At each fetch, see whether the follower may join the ISR, even without a change here."""
        self.session.out_of_sync[self] = None

    def is_news(self, answer: FetchedPartition) -> bool:
        """Whether something in the answer has not been sent to the follower yet."""
        return bool(
            answer.records
            or answer.error_code
            or answer.diverging_epoch >= 0
            or answer.high_watermark != self.sent_high_watermark
            or answer.log_start_offset != self.sent_log_start_offset
        )

    def has_more(self, log: UnifiedLog | None) -> bool:
        """Whether `log` has data, a high watermark or a log start that was not sent yet."""
        return log is not None and (
            self.position.fetch_offset < log.log_end_offset
            or self.sent_high_watermark != log.high_watermark
            or self.sent_log_start_offset != log.log_start_offset
        )

    def attach(self, followers: "dict[int, CachedPartition]") -> bool:
        """Be notified of changes at the partition whose `followers` these are; True if new."""
        if self._attached_to is followers:
            return False
        self.detach()
        self._attached_to = followers
        followers[self.session.broker_id] = self
        return True

    def detach(self) -> None:
        """No longer wait at a partition."""
        followers, self._attached_to = self._attached_to, None
        self.noted_epoch = NO_EPOCH
        if followers is not None and followers.get(self.session.broker_id) is self:
            del followers[self.session.broker_id]


class FetchSession:
    """All that one follower reads here. `epoch` is that of its latest request.

    `last_fetch_time` is the time of that request in monotonic seconds. `broker_epoch` names the
    incarnation of the follower that sent it. Both hold for all partitions of the session.
    """

    def __init__(self, session_id: int, broker_id: int, now: float) -> None:
        self.session_id = session_id
        self.broker_id = broker_id
        self.epoch = FIRST_EPOCH
        self.last_fetch_time = now
        self.broker_epoch = NO_EPOCH
        self.partitions: dict[TopicPartition, CachedPartition] = {}
        self.changed: dict[CachedPartition, None] = {}
        self.out_of_sync: dict[CachedPartition, None] = {}
        self.parked: Waiter | None = None

    def take(self, request: FetchRequest, now: float) -> None:
        """Apply a request's positions; each partition that it names is looked at."""
        self.epoch = request.session_epoch
        self.last_fetch_time = now
        self.broker_epoch = request.replica_epoch
        self.wake()
        for position in request.partitions:
            key = TopicPartition(position.topic, position.partition)
            entry = self.partitions.get(key)
            if entry is None:
                entry = self.partitions[key] = CachedPartition(self, position)
            else:
                entry.move_to(position)
            self.changed[entry] = None
        for item in request.forgotten:
            self._forget(TopicPartition(item.topic, item.partition))

    def _forget(self, key: TopicPartition) -> None:
        entry = self.partitions.pop(key, None)
        if entry is not None:
            entry.detach()
            self.changed.pop(entry, None)
            self.out_of_sync.pop(entry, None)

    def wake(self) -> None:
        """Have the parked request, if there is one, look again."""
        if self.parked is not None:
            wake(self.parked)
            self.parked = None

    def settle(
        self, entry: CachedPartition, answer: FetchedPartition, log: UnifiedLog | None
    ) -> None:
        """`answer` is being sent; `log` is the partition's, None without one.

        A partition that was read goes to the back, so that each gets its turn. A partition without
        further news leaves the set of changed ones.
        """
        entry.sent_high_watermark = answer.high_watermark
        entry.sent_log_start_offset = answer.log_start_offset
        if answer.records or answer.error_code or answer.diverging_epoch >= 0:
            self.changed.pop(entry, None)
            self.changed[entry] = None
        elif not entry.has_more(log):
            self.changed.pop(entry, None)

    def close(self) -> None:
        """Drop the session; a parked request notices it when it looks again."""
        for entry in self.partitions.values():
            entry.detach()
        self.partitions.clear()
        self.changed.clear()
        self.out_of_sync.clear()
        self.wake()


class FetchSessionCache:
    """The sessions of a broker, one for each follower; a new one replaces the old one.

    A fetch of an earlier incarnation of a follower is refused. Broker epochs grow, unless ZooKeeper
    was restored from an older copy: then the registered one counts, if no fetch with the higher one
    has come since it was announced.
    """

    def __init__(self) -> None:
        self._by_broker: dict[int, FetchSession] = {}
        self._broker_epochs: dict[int, int] = {}
        self._registered: dict[int, int] = {}
        self._unconfirmed: dict[int, int] = {}
        self._last_id = NO_SESSION

    def __iter__(self) -> Iterator[FetchSession]:
        return iter(list(self._by_broker.values()))

    def session_for(self, request: FetchRequest, now: float) -> FetchSession | ErrorCode:
        """Return the session of a request, a new one if it asks for it, or the error."""
        broker_id = request.replica_id
        if not self._admit(broker_id, request.replica_epoch):
            return ErrorCode.STALE_BROKER_EPOCH
        session = self._by_broker.get(broker_id)
        if request.session_epoch == FIRST_EPOCH:
            return self._open(broker_id, now)
        if session is None or session.session_id != request.session_id:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if request.session_epoch != session.epoch + 1:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        return session

    def announce(self, broker_epochs: Mapping[int, int]) -> None:
        """Note the epochs of the registered brokers."""
        for broker_id, epoch in broker_epochs.items():
            if self._registered.get(broker_id) != epoch:
                self._registered[broker_id] = self._unconfirmed[broker_id] = epoch

    def _admit(self, broker_id: int, epoch: int) -> bool:
        if epoch < 0:
            return True
        known = self._broker_epochs.get(broker_id, -1)
        if epoch < known and self._unconfirmed.get(broker_id) != epoch:
            return False
        self._broker_epochs[broker_id] = epoch
        self._unconfirmed.pop(broker_id, None)
        return True

    def of(self, broker_id: int) -> FetchSession | None:
        """The open session of a follower; None without one."""
        return self._by_broker.get(broker_id)

    def is_open(self, session: FetchSession) -> bool:
        """Whether no later session of the same follower has replaced this one."""
        return self._by_broker.get(session.broker_id) is session

    def last_fetch_time(self) -> float:
        """When any of the followers last fetched; -inf if none has."""
        return max((session.last_fetch_time for session in self), default=-math.inf)

    def _open(self, broker_id: int, now: float) -> FetchSession:
        old = self._by_broker.pop(broker_id, None)
        if old is not None:
            old.close()
        self._last_id += 1
        session = FetchSession(self._last_id, broker_id, now)
        self._by_broker[broker_id] = session
        return session

    def close(self) -> None:
        """End every session."""
        for session in self:
            session.close()
        self._by_broker.clear()
