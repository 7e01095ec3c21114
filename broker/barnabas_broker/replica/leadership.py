"""What a broker holds while it leads a partition: its log, its followers, the high watermark.

A `Leadership` exists for one leader epoch. `Partition` creates it on LeaderAndIsr and drops it with
the next one; answers of the controller that arrive after that change nothing. Nothing here awaits:
each step is one turn of the event loop, in the order Kafka takes it. Changes of the ISR are in
`isr_changes`, and what is asked of the last replica standing in `last_replica_guard`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from barnabas.error_code import ErrorCode
from barnabas.errors import (
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    UnknownLeaderEpochError,
)
from barnabas.events import EventLog
from barnabas.messages.control import LeaderAndIsrPartition
from barnabas.topic_partition import TopicPartition

from barnabas_broker.log.log import Appended, Log
from barnabas_broker.replica.alter_partition import AlterPartitions
from barnabas_broker.replica.high_watermark import Hold, holds_back, next_high_watermark, what_holds
from barnabas_broker.replica.in_sync import InSyncReplicas, RemoteReplica, effective_min_in_sync
from barnabas_broker.replica.isr_changes import IsrChanges
from barnabas_broker.replica.last_replica import FlushSoon
from barnabas_broker.replica.last_replica_guard import LastReplicaGuard
from barnabas_broker.replica.leader_epoch import NO_EPOCH
from barnabas_broker.replica.purgatory import Waiting
from barnabas_broker.replica.replication_quota import ReplicationQuota


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
        self.replicas = tuple(appointment.replicas)
        self.epoch_start_offset = log.log_end_offset
        self._waiting = waiting
        self._environment = environment
        self.isr_changes = IsrChanges(self, appointment, environment, waiting)
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
    def isr(self) -> InSyncReplicas:
        """The committed one, and what is asked now."""
        return self.isr_changes.isr

    @property
    def partition_epoch(self) -> int:
        """The version of the state znode this leader acts on."""
        return self.isr_changes.partition_epoch

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

    def is_member(self, follower: RemoteReplica) -> bool:
        """Whether the follower is in the committed ISR."""
        return follower.broker_id in self.isr.committed

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
        self.isr_changes.maybe_expand_isr(follower)
        if offset != offset_before:
            self.advance_high_watermark()

    # ---- the high watermark

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

    def settings_changed(self) -> None:
        """`min.insync.replicas` may be another: what it held, or let pass, is looked at anew."""
        self.guard.review()
        self.advance_high_watermark()

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

    # ---- the quota

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

    def end(self) -> None:
        """The epoch is over: a proposal still on its way no longer counts."""
        self.isr_changes.end()
        self.guard.end()
