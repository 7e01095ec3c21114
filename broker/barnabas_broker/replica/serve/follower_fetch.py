"""A follower's fetch, at the leader: read up to the log end, and note how far the follower is.

The steps for each partition come in Kafka's order: the offsets of the answer are taken before the
fetch has its effect, so a follower receives a new high watermark one fetch later.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from barnabas_common.errors import KafkaError, OffsetOutOfRangeError
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import BrokerEndpoint
from barnabas_common.messages.fetch import FetchedPartition, FetchRequest, FetchResponse
from barnabas_common.runtime import PausePoint, Pauses
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.epochs.leader_epoch_cache import UNDEFINED, EpochEnd
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.damaged_replicas import DamagedReplicas
from barnabas_broker.replica.deadlines import Deadlines
from barnabas_broker.replica.fetch_session import CachedPartition, FetchSession, FetchSessionCache
from barnabas_broker.replica.follower.truncation import diverges
from barnabas_broker.replica.leader.in_sync import NEVER, RemoteReplica
from barnabas_broker.replica.leader.leadership import Leadership
from barnabas_broker.replica.partition.partition import Partition
from barnabas_broker.replica.partition.partitions import Partitions
from barnabas_broker.replica.replication_quota import ReplicationQuota
from barnabas_broker.replica.serve.read_result import read_records, refused_fetch


@dataclass(slots=True)
class _Findings:
    """The result of one look at the changed partitions; `size` is in bytes."""

    answers: list[tuple[CachedPartition, FetchedPartition]] = field(default_factory=list)
    size: int = 0
    urgent: bool = False  # an error or a divergence: answer immediately


class FollowerFetches:
    """Answers the fetches of all followers of this broker, `broker_id`.

    `quota` limits what throttled followers outside the ISR are sent.
    """

    def __init__(
        self,
        broker_id: int,
        partitions: Partitions,
        deadlines: Deadlines,
        now: Callable[[], float],
        quota: ReplicationQuota,
        damaged: DamagedReplicas,
        pauses: Pauses | None = None,
    ) -> None:
        self._broker_id = broker_id
        self._partitions = partitions
        self._deadlines = deadlines
        self._now = now
        self._quota = quota
        self._damaged = damaged
        self._pauses = pauses
        self._sessions = FetchSessionCache()

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Answer immediately if there is data, an error or a divergence; otherwise park."""
        now = self._now()
        session = self._sessions.session_for(request, now)
        if isinstance(session, ErrorCode):
            return FetchResponse(session)
        session.take(request, now)
        self._try_isr_expansions(session)
        findings = self._look(session, request, is_fetch=True)
        deadline = now + request.max_wait_ms / 1000
        timed_out = request.max_wait_ms <= 0 or not session.partitions
        while not (timed_out or findings.urgent or findings.size >= request.min_bytes):
            session.parked = waiter = self._deadlines.park(deadline)
            timed_out = not await waiter
            if not self._sessions.is_open(session):
                return FetchResponse(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
            if session.epoch != request.session_epoch:
                return FetchResponse(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
            findings = self._look(session, request, is_fetch=False)
        for entry, answer in findings.answers:
            session.settle(entry, answer, self._log_of(entry))
        if self._pauses is not None:
            await self._pauses.at(PausePoint.LEADER_BEFORE_FETCH_ANSWER, session.broker_id)
        return FetchResponse(
            session_id=session.session_id, partitions=[answer for _, answer in findings.answers]
        )

    def announce(self, brokers: Iterable[BrokerEndpoint]) -> None:
        """Note the broker epochs of the registered brokers."""
        self._sessions.announce({one.broker_id: one.broker_epoch for one in brokers})

    def last_fetch_without(self, broker_id: int, key: TopicPartition) -> float:
        """When a follower last fetched in a session that does not name the partition.

        `NEVER` if the follower's session names the partition, or if it has no session.
        """
        session = self._sessions.of(broker_id)
        return NEVER if session is None or key in session.partitions else session.last_fetch_time

    def last_fetch_time(self) -> float:
        """When any follower last fetched, in monotonic seconds; -inf if none has."""
        return self._sessions.last_fetch_time()

    def close(self) -> None:
        """End all sessions and answer the parked fetches."""
        self._sessions.close()

    def _try_isr_expansions(self, session: FetchSession) -> None:
        """Propose for the ISR the followers that did not move but may join now.

        That happens, for example, when this broker learns that a follower is alive. Only positions
        that were noted in this session count: an older one may be of an earlier incarnation of the
        follower, whose log was longer.
        """
        for entry in list(session.out_of_sync):
            partition = self._partitions.get(entry.topic_partition)
            leadership = partition.leadership if partition is not None else None
            follower = leadership.followers.get(session.broker_id) if leadership else None
            if leadership is None or follower is None or leadership.is_member(follower):
                del session.out_of_sync[entry]
            elif entry.noted_epoch == leadership.epoch:
                leadership.maybe_expand_isr(follower)

    def _look(self, session: FetchSession, request: FetchRequest, is_fetch: bool) -> _Findings:
        """Read what changed. `is_fetch` is False for the second look of a parked request, which
        proves nothing about the follower's present position."""
        findings = _Findings()
        for entry in list(session.changed):
            limit = min(entry.position.max_bytes, request.max_bytes - findings.size)
            answer = self._read(entry, limit, findings.size == 0, is_fetch)
            if entry.is_news(answer):
                findings.answers.append((entry, answer))
                findings.size += len(answer.records)
                if answer.error_code or answer.diverging_epoch >= 0:
                    findings.urgent = True
            elif not entry.has_more(self._log_of(entry)):
                del session.changed[entry]
        return findings

    def _log_of(self, entry: CachedPartition) -> UnifiedLog | None:
        partition = self._partitions.get(entry.topic_partition)
        return partition.log if partition is not None else None

    def _read(
        self, entry: CachedPartition, limit: int, at_least_one: bool, is_fetch: bool
    ) -> FetchedPartition:
        try:
            partition = self._partitions.hosted(entry.topic_partition, entry.position.topic_id)
            is_new = entry.attach(partition.delayed_operations.followers)
            if is_new and partition.leadership is not None:
                partition.leadership.watch_out_of_sync_followers()
            return self._read_as_follower(partition, entry, limit, at_least_one, is_fetch)
        except KafkaError as error:
            return refused_fetch(entry.topic_partition, error, self._partitions)

    def _read_as_follower(
        self,
        partition: Partition,
        entry: CachedPartition,
        limit: int,
        at_least_one: bool,
        is_fetch: bool,
    ) -> FetchedPartition:
        """Check, compare epochs, read, and note the position, in this order."""
        position = entry.position
        leadership = partition.lead(position.current_leader_epoch)
        follower = leadership.follower(entry.session.broker_id, position.current_leader_epoch)
        log = leadership.log
        end, offset = log.log_end_offset, position.fetch_offset
        answer = FetchedPartition(
            *entry.topic_partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
        )
        if position.last_fetched_epoch >= 0:
            epoch_end = _end_of_epoch(leadership, position.last_fetched_epoch, offset)
            if diverges(position.last_fetched_epoch, offset, epoch_end):
                answer.diverging_epoch, answer.diverging_end_offset = epoch_end
                return answer
        log.check_in_range(offset)
        if (
            offset < end
            and (limit > 0 or at_least_one)
            and not self._is_held_back(leadership, follower)
        ):
            # If the follower asks for the same records again, their checksums may be wrong.
            checked = None if is_fetch and offset == follower.sent_from else 0
            answer.records = read_records(
                leadership, self._damaged, offset, limit, end, at_least_one, checked=checked
            )
            follower.sent_from = offset
            if self._is_throttled(leadership):  # members of the ISR count too, as in Kafka
                self._quota.record(len(answer.records))
        if is_fetch:
            follower.log_start_offset = position.log_start_offset
            leadership.record_fetch(follower, offset, end)
            entry.noted_epoch = leadership.epoch
        return answer

    def _is_held_back(self, leadership: Leadership, follower: RemoteReplica) -> bool:
        """Whether the follower gets nothing now: it is not in sync, and the quota is used up."""
        return (
            not leadership.is_member(follower)
            and self._is_throttled(leadership)
            and self._quota.is_exceeded()
        )

    def _is_throttled(self, leadership: Leadership) -> bool:
        throttled = leadership.log.config.leader_replication_throttled_replicas
        return throttled.covers(leadership.topic_partition.partition, self._broker_id)


def _end_of_epoch(leadership: Leadership, epoch: int, fetch_offset: int) -> EpochEnd:
    """Where the follower's latest epoch ends in the leader's log."""
    log = leadership.log
    epoch_end = log.end_offset_for_epoch(epoch)
    if epoch_end.end_offset == UNDEFINED or fetch_offset < log.log_start_offset:
        raise OffsetOutOfRangeError(
            f"{leadership.topic_partition}: epoch {epoch} or offset {fetch_offset} is not in the"
            f" leader's log, which starts at {log.log_start_offset}"
        )
    return epoch_end
