"""A follower's fetch, at the leader: read up to the log's end, and note how far the follower is.

The order of the steps for each partition is Kafka's: the offsets that go into the answer are taken
before the fetch has its effect, so a follower learns of a commit one round later.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.error_code import ErrorCode
from barnabas.errors import KafkaError, OffsetOutOfRangeError
from barnabas.messages.fetch import FetchedPartition, FetchRequest, FetchResponse
from barnabas.runtime import PausePoint, Pauses

from barnabas_broker.replica.deadlines import Deadlines
from barnabas_broker.replica.fetch_session import (
    FollowerSession,
    FollowerSessions,
    SessionPartition,
)
from barnabas_broker.replica.leadership import Leadership
from barnabas_broker.replica.partition import Partition
from barnabas_broker.replica.partitions import Partitions
from barnabas_broker.replica.read_result import refused_fetch
from barnabas_broker.replica.truncation import UNDEFINED, EpochEnd, diverges


@dataclass(slots=True)
class _Findings:
    """What one look at the changed partitions brought up."""

    answers: list[tuple[SessionPartition, FetchedPartition]] = field(default_factory=list)
    size: int = 0
    urgent: bool = False  # an error or a divergence: not to be kept from the follower


class FollowerFetches:
    """Answers the fetches of all followers of this broker."""

    def __init__(
        self,
        partitions: Partitions,
        deadlines: Deadlines,
        now: Callable[[], float],
        pauses: Pauses | None = None,
    ) -> None:
        self._partitions = partitions
        self._deadlines = deadlines
        self._now = now
        self._pauses = pauses
        self._sessions = FollowerSessions()

    async def fetch(self, request: FetchRequest) -> FetchResponse:
        """Answer at once if there is data, an error or a divergence; else park."""
        now = self._now()
        session = self._sessions.session_for(request, now)
        if isinstance(session, ErrorCode):
            return FetchResponse(session)
        session.take(request, now)
        self._try_admissions(session)
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
            session.settle(entry, answer)
        if self._pauses is not None:
            await self._pauses.at(PausePoint.LEADER_BEFORE_FETCH_ANSWER, session.broker_id)
        return FetchResponse(
            session_id=session.session_id, partitions=[answer for _, answer in findings.answers]
        )

    def close(self) -> None:
        """End all sessions; parked fetches are answered."""
        self._sessions.close()

    def _try_admissions(self, session: FollowerSession) -> None:
        """A follower outside the ISR may become eligible without moving, say when this broker
        learns that it is alive. Only where it says it is in this session counts: what the leader
        knows from before may be of an earlier life, whose log was longer."""
        for entry in list(session.outsiders):
            leadership = entry.partition.leadership if entry.partition is not None else None
            follower = leadership.followers.get(session.broker_id) if leadership else None
            if leadership is None or follower is None or leadership.is_member(follower):
                del session.outsiders[entry]
            elif entry.noted_by is leadership:
                leadership.isr_changes.maybe_expand_isr(follower)

    def _look(self, session: FollowerSession, request: FetchRequest, is_fetch: bool) -> _Findings:
        """Read what changed. `is_fetch`: not the second look of a parked request, which says
        nothing about where the follower is now."""
        findings = _Findings()
        for entry in list(session.changed):
            limit = min(entry.position.max_bytes, request.max_bytes - findings.size)
            answer = self._read(entry, limit, findings.size == 0, is_fetch)
            if entry.is_news(answer):
                findings.answers.append((entry, answer))
                findings.size += len(answer.records)
                if answer.error_code or answer.diverging_epoch >= 0:
                    findings.urgent = True
            elif not entry.has_more():
                del session.changed[entry]
        return findings

    def _read(
        self, entry: SessionPartition, limit: int, at_least_one: bool, is_fetch: bool
    ) -> FetchedPartition:
        try:
            partition = self._partitions.hosted(entry.topic_partition)
            entry.attach(partition)
            return _read_as_follower(partition, entry, limit, at_least_one, is_fetch)
        except KafkaError as error:
            return refused_fetch(entry.topic_partition, error, self._partitions)


def _read_as_follower(
    partition: Partition, entry: SessionPartition, limit: int, at_least_one: bool, is_fetch: bool
) -> FetchedPartition:
    """Check, compare epochs, read, take note: in this order."""
    position = entry.position
    leadership = partition.lead(position.current_leader_epoch)
    follower = leadership.follower(entry.session.broker_id, position.current_leader_epoch)
    log = leadership.log
    end, offset = log.log_end_offset, position.fetch_offset
    answer = FetchedPartition(
        *entry.topic_partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.high_watermark,
        log_start_offset=log.log_start_offset,
    )
    if position.last_fetched_epoch >= 0:
        epoch_end = _end_of_epoch(leadership, position.last_fetched_epoch, offset)
        if diverges(position.last_fetched_epoch, offset, epoch_end):
            answer.diverging_epoch, answer.diverging_end_offset = epoch_end
            return answer
    leadership.check_in_range(offset)
    if offset < end and (limit > 0 or at_least_one) and not leadership.is_held_back(follower):
        answer.records = log.read(offset, limit, end, at_least_one)
        leadership.count_copied(len(answer.records))
    if is_fetch:
        follower.log_start_offset = position.log_start_offset
        leadership.record_fetch(follower, offset, end)
        entry.noted_by = leadership
    return answer


def _end_of_epoch(leadership: Leadership, epoch: int, fetch_offset: int) -> EpochEnd:
    """Where the follower's latest epoch ends in the leader's log."""
    log = leadership.log
    epoch_end = EpochEnd(*log.end_offset_for_epoch(epoch))
    if epoch_end.end_offset == UNDEFINED or fetch_offset < log.log_start_offset:
        raise OffsetOutOfRangeError(
            f"{leadership.topic_partition}: epoch {epoch} or offset {fetch_offset} is not in the"
            f" leader's log, which starts at {log.log_start_offset}"
        )
    return epoch_end
