"""What a broker holds while it leads a partition: its followers, the ISR, the high watermark.

A `Leadership` exists for one leader epoch. `Partition` creates it on LeaderAndIsr and drops it with
the next one; answers of the controller that arrive after that change nothing. Nothing here awaits:
each step is one turn of the event loop, in the order Kafka takes it.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.error_code import ErrorCode
from barnabas.errors import (
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    UnknownLeaderEpochError,
)
from barnabas.events import EventKind, EventLog, Value
from barnabas.messages.control import AlteredPartition, AlterPartitionItem, LeaderAndIsrPartition
from barnabas.topic_partition import TopicPartition

from barnabas_broker.log.log import Appended, Log
from barnabas_broker.replica.alter_partition import AlterPartitions, Verdict, verdict
from barnabas_broker.replica.high_watermark import Hold, holds_back, next_high_watermark, what_holds
from barnabas_broker.replica.in_sync import (
    NEVER,
    InSyncReplicas,
    RemoteReplica,
    describe_lag,
    effective_min_in_sync,
    laggards,
    may_join,
)
from barnabas_broker.replica.last_replica import FlushSoon
from barnabas_broker.replica.last_replica_guard import LastReplicaGuard
from barnabas_broker.replica.leader_epoch import NO_EPOCH
from barnabas_broker.replica.purgatory import Waiting
from barnabas_broker.replica.replication_quota import ReplicationQuota

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LeaderEnvironment:
    """What leaders of all partitions of a broker share. `max_lag` in seconds.

    `flush_soon` is None where a last replica need not flush (`last.replica.fsync.enable`);
    `gate` holds the high watermark while the ISR is under its minimum
    (`high.watermark.min.isr.gate.enable`).
    """

    broker_id: int
    now: Callable[[], float]
    max_lag: float
    is_alive: Callable[[int], bool]
    alter_partitions: AlterPartitions
    flush_soon: FlushSoon | None = None
    gate: bool = True
    max_lag_messages: int | None = None
    quota: ReplicationQuota | None = None
    events: EventLog = field(default_factory=EventLog)


class Leadership:
    """The leader's state for one epoch. `previous` is set if this broker led just before."""

    def __init__(
        self,
        log: Log,
        appointment: LeaderAndIsrPartition,
        waiting: Waiting,
        environment: LeaderEnvironment,
        previous: "Leadership | None",
    ) -> None:
        self.log = log
        self.topic_partition = TopicPartition(appointment.topic, appointment.partition)
        self.epoch = appointment.leader_epoch
        self.partition_epoch = appointment.partition_epoch
        self.replicas = tuple(appointment.replicas)
        self.isr = InSyncReplicas(tuple(appointment.in_sync_replicas))
        self.epoch_start_offset = log.log_end_offset
        self._waiting = waiting
        self._environment = environment
        self.guard = LastReplicaGuard(self, environment, waiting)
        self.followers = self._followers(previous)
        # Even before the first record: it is how followers find out that their own last records,
        # of an older epoch, end here (KIP-101).
        log.assign_epoch(self.epoch, self.epoch_start_offset)

    def _followers(self, previous: "Leadership | None") -> dict[int, RemoteReplica]:
        # A leader that missed an epoch may have missed another leader, and that the followers
        # truncated to that one's log: what it knows of them proves nothing any more.
        led_until_now = previous is not None and previous.epoch == self.epoch - 1
        known = previous.followers if previous is not None and led_until_now else {}
        now = self._environment.now()
        followers = {}
        for broker_id in self.replicas:
            if broker_id != self._environment.broker_id:
                follower = known.get(broker_id) or RemoteReplica(broker_id)
                follower.begin_epoch(
                    self.epoch_start_offset,
                    in_sync=broker_id in self.isr.committed,
                    keep_offset=led_until_now,
                    now=now,
                )
                followers[broker_id] = follower
        return followers

    @property
    def min_in_sync(self) -> int:
        return effective_min_in_sync(self.log.config.min_insync_replicas, len(self.replicas))

    # ---- produce

    def append(self, records: bytes, acks: int, now_ms: int) -> Appended:
        """Append a producer's batches and wake who waits for them.

        Raises:
            NotEnoughReplicasError: acks=all and too few members in the ISR; nothing was written.
            KafkaError: the log refused the batches, or its disk failed.
        """
        if acks == -1 and len(self.isr.committed) < self.min_in_sync:
            raise NotEnoughReplicasError(
                f"{self.topic_partition}: {len(self.isr.committed)} replicas in sync"
                f" {list(self.isr.committed)}, {self.min_in_sync} are needed"
            )
        end_before = self.log.log_end_offset
        appended = self.log.append_as_leader(records, self.epoch, now_ms)
        self._remember_caught_up(end_before)
        if self.guard.last is not None:
            self.guard.last.flush()
        self.advance_high_watermark()
        self._waiting.data_arrived()
        return appended

    def _remember_caught_up(self, log_end_offset: int) -> None:
        """Followers that had everything until this append were caught up at their last fetch.

        In an incremental session an idle partition is not named in each fetch (KIP-227), so the
        fetches that would have said so are accounted for here, at once.
        """
        for broker_id, follower in self._waiting.followers.items():
            remote = self.followers.get(broker_id)
            if remote is not None and remote.log_end_offset == log_end_offset:
                last = max(remote.last_fetch_time, follower.session.last_fetch_time)
                remote.record_fetch(log_end_offset, log_end_offset, last)

    def produce_outcome(self, required_offset: int) -> ErrorCode | None:
        """What an acks=all produce up to `required_offset` is told now; None: it must wait."""
        if self.log.high_watermark < required_offset:
            return None
        return self._outcome_of_committed()

    def _outcome_of_committed(self) -> ErrorCode:
        if len(self.isr.maximal) >= self.min_in_sync:
            return ErrorCode.NONE
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    # ---- fetch

    def follower(self, broker_id: int, requested_epoch: int) -> RemoteReplica:
        """The replica a fetch comes from; raises when it is not assigned here."""
        follower = self.followers.get(broker_id)
        if follower is None:
            message = f"{self.topic_partition} has no replica on broker {broker_id}"
            if requested_epoch == NO_EPOCH:
                raise NotLeaderOrFollowerError(message)
            raise UnknownLeaderEpochError(message)
        return follower

    def check_in_range(self, offset: int) -> None:
        """Raises OffsetOutOfRangeError unless log start <= offset <= log end."""
        if not self.log.log_start_offset <= offset <= self.log.log_end_offset:
            raise OffsetOutOfRangeError(
                f"{self.topic_partition}: offset {offset} is not within"
                f" {self.log.log_start_offset}..{self.log.log_end_offset}"
            )

    def record_fetch(self, follower: RemoteReplica, offset: int, log_end_offset: int) -> None:
        """A follower fetched from `offset` when the log ended at `log_end_offset`."""
        offset_before = follower.log_end_offset
        follower.record_fetch(offset, log_end_offset, self._environment.now())
        self.maybe_expand_isr(follower)
        if offset != offset_before:
            self.advance_high_watermark()

    def advance_high_watermark(self) -> bool:
        """Move the high watermark if everybody who counts has more; wake who waited for it."""
        log = self.log
        moved_to = next_high_watermark(
            log.high_watermark,
            self._countable_end,
            self._awaited().values(),
            in_sync_count=len(self.isr.committed),
            min_in_sync=self.min_in_sync if self._environment.gate else 0,
        )
        if moved_to <= log.high_watermark:
            return False
        log.maybe_increment_high_watermark(moved_to)
        self._waiting.high_watermark_moved(moved_to, self._outcome_of_committed())
        return True

    def what_holds_high_watermark(self) -> Hold:
        """Why it is below the log's end, if it is."""
        return what_holds(
            self.log.high_watermark,
            self.log.log_end_offset,
            self._countable_end,
            self._awaited(),
            in_sync_count=len(self.isr.committed),
            min_in_sync=self.min_in_sync if self._environment.gate else 0,
        )

    @property
    def _countable_end(self) -> int:
        return self.log.log_end_offset if self.guard.last is None else self.guard.last.durable_end

    def _awaited(self) -> dict[int, int]:
        """The log ends of the followers that the high watermark waits for."""
        maximal, end = self.isr.maximal, self.log.log_end_offset
        return {
            broker_id: follower.log_end_offset
            for broker_id, follower in self.followers.items()
            if self._holds_back(follower, broker_id in maximal, end)
        }

    def _holds_back(self, follower: RemoteReplica, in_maximal_isr: bool, end: int) -> bool:
        if in_maximal_isr:
            return True
        environment = self._environment
        caught_up = follower.is_caught_up(end, environment.now(), environment.max_lag)
        return holds_back(False, caught_up, caught_up and environment.is_alive(follower.broker_id))

    def is_held_back(self, follower: RemoteReplica) -> bool:
        """Whether the follower gets nothing now: it is not in sync, and the quota is used up."""
        quota = self._environment.quota
        return (
            not self.is_member(follower)
            and quota is not None
            and self._is_throttled()
            and quota.is_exceeded()
        )

    def count_copied(self, size: int) -> None:
        """A follower is sent so many bytes; those of members count too, as in Kafka."""
        quota = self._environment.quota
        if quota is not None and self._is_throttled():
            quota.record(size)

    def _is_throttled(self) -> bool:
        throttled = self.log.config.leader_replication_throttled_replicas
        return throttled.covers(self.topic_partition.partition, self._environment.broker_id)

    # ---- the ISR

    def is_member(self, follower: RemoteReplica) -> bool:
        """Whether the follower is in the committed ISR."""
        return follower.broker_id in self.isr.committed

    def maybe_expand_isr(self, follower: RemoteReplica) -> None:
        """Ask for a follower's admission if it has what a member needs and is alive."""
        broker_id = follower.broker_id
        if (
            not self.isr.in_flight
            and not self.is_member(follower)
            and may_join(follower.log_end_offset, self.log.high_watermark, self.epoch_start_offset)
            and self._environment.is_alive(broker_id)
        ):
            logger.info(
                "%s: follower %d has caught up at offset %d, asking to add it to the ISR %s",
                self.topic_partition,
                broker_id,
                follower.log_end_offset,
                list(self.isr.committed),
            )
            self.propose(
                self.isr.expanding(broker_id),
                f"broker {broker_id} has caught up to offset {follower.log_end_offset}"
                f" (high watermark {self.log.high_watermark},"
                f" start of the leader's epoch {self.epoch_start_offset})",
            )

    def maybe_shrink_isr(self) -> None:
        """Ask for the removal of the members that have lagged too long."""
        if self.isr.in_flight:
            return
        environment, end = self._environment, self.log.log_end_offset
        late = laggards(
            self.isr.committed,
            self.followers,
            end,
            environment.now(),
            environment.max_lag,
            environment.max_lag_messages,
        )
        if not late:
            self.guard.review()
        elif self.guard.allows(len(self.isr.committed) - len(late)):
            logger.warning(
                "%s: members %s are too far behind (they end at %s, the leader at %d),"
                " asking to remove them from the ISR %s",
                self.topic_partition,
                late,
                [self.followers[broker_id].log_end_offset for broker_id in late],
                end,
                list(self.isr.committed),
            )
            self.propose(self.isr.shrinking(late), "; ".join(map(self._lag_of, late)))

    def _lag_of(self, broker_id: int) -> str:
        follower, environment = self.followers[broker_id], self._environment
        connected = self._waiting.followers.get(broker_id)
        last_fetch = max(
            follower.last_fetch_time, connected.session.last_fetch_time if connected else NEVER
        )
        return describe_lag(
            follower,
            last_fetch,
            self.log.log_end_offset,
            environment.now(),
            environment.max_lag,
            environment.max_lag_messages,
        )

    def propose(self, proposal: InSyncReplicas, cause: str) -> None:
        """Ask the controller for an ISR; nothing if something else is still on its way."""
        assert proposal.proposed is not None
        if proposal.proposed != proposal.committed:
            self._report_isr(EventKind.ISR_CHANGE_PROPOSED, cause, proposed=proposal.proposed)
        item = AlterPartitionItem(
            self.topic_partition.topic,
            self.topic_partition.partition,
            leader_epoch=self.epoch,
            partition_epoch=self.partition_epoch,
            new_isr=list(proposal.proposed),
            cause=cause,
            new_isr_epochs=[self._life_of(broker_id) for broker_id in proposal.proposed],
        )
        if self._environment.alter_partitions.submit(
            item, lambda answer: self._answered(proposal, answer, cause)
        ):
            self.isr = proposal

    def _life_of(self, broker_id: int) -> int:
        """The broker epoch of the life whose fetches count here; -1 if none fetches (KIP-903)."""
        connected = self._waiting.followers.get(broker_id)
        return NO_EPOCH if connected is None else connected.session.broker_epoch

    def _answered(self, proposal: InSyncReplicas, answer: AlteredPartition, cause: str) -> None:
        """The controller's word on a proposal, if it is still this leader's latest."""
        if self.isr is not proposal:
            return
        outcome = verdict(answer.error_code)
        name = self.topic_partition
        if outcome is Verdict.ROLL_BACK:
            code = ErrorCode(answer.error_code).name
            logger.info("%s: ISR change to %s refused: %s", name, proposal.proposed, code)
            self._report_isr(
                EventKind.ISR_CHANGE_REFUSED,
                f"the controller answered {code}",
                proposed=proposal.proposed,
                asked_because=cause,
            )
            self.isr = proposal.rolled_back()
            self.guard.review()
            self.advance_high_watermark()  # it may have waited for the one who was refused
        elif outcome is Verdict.AWAIT_LEADER_AND_ISR:
            code = ErrorCode(answer.error_code).name
            logger.info("%s: ISR change overtaken (%s), waiting for LeaderAndIsr", name, code)
            self._report_isr(
                EventKind.ISR_CHANGE_REFUSED,
                f"the controller answered {code}: this leader is behind",
                proposed=proposal.proposed,
                asked_because=cause,
            )
        elif answer.leader_epoch == self.epoch and answer.partition_epoch >= self.partition_epoch:
            logger.info(
                "%s: ISR is now %s, partition epoch %d",
                name,
                answer.in_sync_replicas,
                answer.partition_epoch,
            )
            before, self.isr = self.isr, InSyncReplicas(tuple(answer.in_sync_replicas))
            self.partition_epoch = answer.partition_epoch
            changed = self.isr.committed != before.committed
            kind = EventKind.ISR_CHANGED if changed else EventKind.LAST_REPLICA_DURABLE
            self._report_isr(kind, cause, isr_before=before.committed)
            self.watch_outsiders()
            self.guard.review()
            self.advance_high_watermark()

    def _report_isr(self, kind: EventKind, cause: str, **details: Value) -> None:
        self._environment.events.record(
            kind,
            cause,
            self.topic_partition,
            isr=self.isr.committed,
            leader_epoch=self.epoch,
            partition_epoch=self.partition_epoch,
            log_end_offset=self.log.log_end_offset,
            high_watermark=self.log.high_watermark,
            **details,
        )

    def watch_outsiders(self) -> None:
        """Have every fetch of a follower outside the ISR tried for admission, idle ones too."""
        for broker_id, follower in self._waiting.followers.items():
            if broker_id not in self.isr.committed:
                follower.watch_for_admission()

    def end(self) -> None:
        """The epoch is over: a proposal still on its way no longer counts."""
        self.isr = self.isr.rolled_back()
        self.guard.end()
