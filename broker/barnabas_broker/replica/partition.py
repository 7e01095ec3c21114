"""One partition on this broker: leader, follower or offline, and the way from one to another.

`ReplicaManager` drives it with what the controller says; the paths of produce and fetch ask it for
the `Leadership` they need; the fetcher appends to its log while it follows. Every change of role is
one turn of the event loop: nobody sees half of it.
"""

import logging

from barnabas.error_code import ErrorCode
from barnabas.errors import KafkaError, KafkaStorageError, NotLeaderOrFollowerError
from barnabas.events import EventKind
from barnabas.messages.control import LeaderAndIsrPartition
from barnabas.messages.replicas import RemoteReplica as RemoteReplicaDescription
from barnabas.messages.replicas import ReplicaDescription
from barnabas.topic_partition import TopicPartition

from barnabas_broker.log.log import Log
from barnabas_broker.replica.in_sync import NEVER
from barnabas_broker.replica.leader_epoch import NO_EPOCH, check_leader_epoch
from barnabas_broker.replica.leadership import LeaderEnvironment, Leadership
from barnabas_broker.replica.purgatory import Waiting
from barnabas_broker.replica.truncation import TruncationPolicy

logger = logging.getLogger(__name__)

NO_LEADER = -1


class Partition:
    """Starts with neither log nor role: leader epoch -1, partition epoch 0.

    `log` is None until the first role, and again once its directory has failed (`offline`).
    """

    def __init__(self, topic_partition: TopicPartition, environment: LeaderEnvironment) -> None:
        self.topic_partition = topic_partition
        self.waiting = Waiting()
        self.log: Log | None = None
        self.offline = False
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.replicas: tuple[int, ...] = ()
        self.leadership: Leadership | None = None
        self._last_refused = (NO_EPOCH, NO_EPOCH)
        self._partition_epoch = 0
        self._environment = environment

    @property
    def partition_epoch(self) -> int:
        """The version of the state znode this replica acts on."""
        if self.leadership is not None:
            return self.leadership.partition_epoch
        return self._partition_epoch

    @property
    def topic_id(self) -> str | None:
        return self.log.topic_id if self.log is not None else None

    # ---- roles

    def become_leader(self, appointment: LeaderAndIsrPartition, log: Log) -> None:
        """Lead from now on, under a leader epoch that is new to this replica."""
        previous, self.log = self.leadership, log
        if previous is not None:
            previous.end()
        self._appointed(appointment)
        self.leadership = Leadership(log, appointment, self.waiting, self._environment, previous)
        logger.info(
            "%s: leading epoch %d from offset %d, ISR %s, high watermark %d",
            self.topic_partition,
            self.leader_epoch,
            self.leadership.epoch_start_offset,
            list(self.leadership.isr.committed),
            log.high_watermark,
        )
        self._environment.events.record(
            EventKind.BECAME_LEADER,
            appointment.cause,
            self.topic_partition,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            epoch_start_offset=self.leadership.epoch_start_offset,
            high_watermark=log.high_watermark,
            isr=self.leadership.isr.committed,
            replicas=self.replicas,
        )
        for follower in self.waiting.followers.values():
            follower.leadership_changed()
        self.leadership.isr_changes.watch_outsiders()
        self.leadership.guard.review()
        self.leadership.advance_high_watermark()

    def become_follower(self, appointment: LeaderAndIsrPartition, log: Log) -> None:
        """Follow from now on; whoever waits here for a leader is told that there is none."""
        self.log = log
        self._resign()
        self._appointed(appointment)
        logger.info(
            "%s: following broker %d in epoch %d, log end %d, high watermark %d",
            self.topic_partition,
            self.leader_id,
            self.leader_epoch,
            log.log_end_offset,
            log.high_watermark,
        )
        self._environment.events.record(
            EventKind.BECAME_FOLLOWER,
            appointment.cause,
            self.topic_partition,
            leader=self.leader_id,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            log_end_offset=log.log_end_offset,
            high_watermark=log.high_watermark,
        )
        self.waiting.leadership_ended(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def go_offline(self, cause: str) -> None:
        """The directory of the log failed: answer KAFKA_STORAGE_ERROR until restarted."""
        self._environment.events.record(EventKind.REPLICA_OFFLINE, cause, self.topic_partition)
        self.offline = True
        self._resign()
        self.log = None
        self.waiting.leadership_ended(ErrorCode.KAFKA_STORAGE_ERROR)

    def stop(self) -> None:
        """No longer hosted here."""
        self._resign()
        self.waiting.leadership_ended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        for follower in list(self.waiting.followers.values()):
            follower.detach()

    def _resign(self) -> None:
        if self.leadership is not None:
            self._partition_epoch = self.leadership.partition_epoch
            self.leadership.end()
            self.leadership = None

    def _appointed(self, appointment: LeaderAndIsrPartition) -> None:
        self.leader_id = appointment.leader
        self.leader_epoch = appointment.leader_epoch
        self._partition_epoch = appointment.partition_epoch
        self.replicas = tuple(appointment.replicas)

    # ---- for produce, fetch and offsets

    def lead(self, requested_epoch: int = -1) -> Leadership:
        """The leadership, for a request that believes in `requested_epoch`.

        Raises:
            KafkaStorageError: the log's directory failed.
            FencedLeaderEpochError, UnknownLeaderEpochError: another epoch is current here. Comes
                before the next, so that a reader learns which of the two is behind.
            NotLeaderOrFollowerError: this broker does not lead.
        """
        if self.offline:
            raise KafkaStorageError(f"{self.topic_partition}: its log directory has failed")
        if requested_epoch != self.leader_epoch:
            self._check_leader_epoch(requested_epoch)
        if self.leadership is None:
            raise NotLeaderOrFollowerError(f"{self.topic_partition} is led by {self.leader_id}")
        return self.leadership

    def _check_leader_epoch(self, requested: int) -> None:
        """Refuse another epoch; the first of its kind is an event, for its sender asks again."""
        try:
            check_leader_epoch(requested, self.leader_epoch)
        except KafkaError as error:
            if self._last_refused != (requested, self.leader_epoch):
                self._last_refused = (requested, self.leader_epoch)
                self._environment.events.record(
                    EventKind.REQUEST_FENCED,
                    str(error),
                    self.topic_partition,
                    error=error.code.name,
                    requested_epoch=requested,
                    leader_epoch=self.leader_epoch,
                )
            raise

    # ---- for the fetcher

    def prepare_to_follow(self, policy: TruncationPolicy) -> None:
        """Cut what a new follower drops without asking anybody."""
        log = self.follower_log()
        offset = policy.start_of_fetching(
            log.latest_epoch(), log.log_end_offset, log.high_watermark
        )
        if offset < log.log_end_offset:
            self.truncate(
                offset,
                "high-watermark",
                "replica.truncation is high-watermark, and this is the follower's own"
                if policy.by_high_watermark
                else "the log has no leader epochs to be compared by",
            )

    def follower_log(self) -> Log:
        """The log, for the fetcher; raises KafkaStorageError if it is gone."""
        if self.log is None:
            raise KafkaStorageError(f"{self.topic_partition}: its log directory has failed")
        return self.log

    def truncate(self, offset: int, rule: str, cause: str) -> None:
        """Cut the log to `offset` because the leader's does not have the rest."""
        log = self.follower_log()
        if offset < log.log_end_offset:
            self._environment.events.record(
                EventKind.LOG_TRUNCATED,
                cause,
                self.topic_partition,
                rule=rule,
                from_offset=log.log_end_offset,
                to_offset=offset,
                high_watermark=log.high_watermark,
                leader=self.leader_id,
                leader_epoch=self.leader_epoch,
            )
        if offset < log.high_watermark:
            logger.warning(
                "%s: truncating from %d to %d, below the high watermark %d",
                self.topic_partition,
                log.log_end_offset,
                offset,
                log.high_watermark,
            )
        elif offset < log.log_end_offset:
            logger.info(
                "%s: truncating from %d to %d", self.topic_partition, log.log_end_offset, offset
            )
        log.truncate_to(offset)

    def truncate_fully(self, start: int, cause: str) -> None:
        """Drop the whole log and begin again at `start`."""
        log = self.follower_log()
        self._environment.events.record(
            EventKind.LOG_TRUNCATED,
            cause,
            self.topic_partition,
            rule="start-over",
            from_offset=log.log_end_offset,
            to_offset=start,
            high_watermark=log.high_watermark,
            leader=self.leader_id,
            leader_epoch=self.leader_epoch,
        )
        log.truncate_fully_and_start_at(start)

    # ---- for people

    def describe(self) -> ReplicaDescription:
        """The state of this replica as DescribeReplicas shows it."""
        topic, partition = self.topic_partition
        described = ReplicaDescription(
            topic,
            partition,
            is_leader=self.leadership is not None,
            leader_id=self.leader_id,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            offline=self.offline,
        )
        if self.log is not None:
            described.log_start_offset = self.log.log_start_offset
            described.high_watermark = self.log.high_watermark
            described.last_stable_offset = self.log.high_watermark
            described.log_end_offset = self.log.log_end_offset
            described.size_bytes = self.log.size_bytes
        if self.leadership is not None:
            hold = self.leadership.what_holds_high_watermark()
            described.in_sync_replicas = list(self.leadership.isr.committed)
            described.min_in_sync_replicas = self.leadership.min_in_sync
            described.held_back_by = list(hold.by)
            described.held_back_because = hold.because
            described.followers = self._describe_followers(self.leadership)
        return described

    def _describe_followers(self, leadership: Leadership) -> list[RemoteReplicaDescription]:
        now = self._environment.now()
        described = []
        for replica in leadership.followers.values():
            item = RemoteReplicaDescription(replica.broker_id, replica.log_end_offset)
            if replica.log_end_offset == leadership.log.log_end_offset:
                item.caught_up_ms_ago = 0
            elif replica.last_caught_up_time != NEVER:
                item.caught_up_ms_ago = int((now - replica.last_caught_up_time) * 1000)
            described.append(item)
        return described
