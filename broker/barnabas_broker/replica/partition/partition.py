"""One partition on this broker: its role (leader, follower or offline) and the changes of role.

`Roles` changes the role as the controller requests. Produce and fetch requests take the
`Leadership` from here. The fetcher appends to the log while the partition follows. A change of role
has no await in it, so no other task sees half of it.
"""

from barnabas_common.errors import (
    CorruptMessageError,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind
from barnabas_common.messages.control import LeaderAndIsrPartition
from barnabas_common.messages.replicas import RemoteReplica as RemoteReplicaDescription
from barnabas_common.messages.replicas import ReplicaDescription
from barnabas_common.messages.sentinels import NO_EPOCH, NO_LEADER
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.leader.environment import LeaderEnvironment
from barnabas_broker.replica.leader.in_sync import NEVER
from barnabas_broker.replica.leader.leadership import Leadership
from barnabas_broker.replica.leader_epoch import check_leader_epoch
from barnabas_broker.replica.purgatory import DelayedOperations


class DamagedReplicaError(CorruptMessageError):
    """This replica's own log is damaged at `offset`, which a truncation has found."""

    def __init__(self, offset: int, fault: str) -> None:
        super().__init__(fault)
        self.offset = offset


class Partition:
    """Starts without a log and without a role: leader epoch -1, partition epoch 0.

    `log` is None until the first role, and again once its directory has failed (`offline`).
    """

    def __init__(self, topic_partition: TopicPartition, environment: LeaderEnvironment) -> None:
        self.topic_partition = topic_partition
        self.delayed_operations = DelayedOperations()
        self.log: UnifiedLog | None = None
        self.offline = False
        self.leader_id = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.isr_of_role: tuple[int, ...] = ()
        self.leadership: Leadership | None = None
        self._last_refused = (NO_EPOCH, NO_EPOCH)
        self._partition_epoch = 0
        self.waits_for_role = False
        self._environment = environment

    @property
    def partition_epoch(self) -> int:
        """The version of the state znode that this replica acts on."""
        if self.leadership is not None:
            return self.leadership.partition_epoch
        return self._partition_epoch

    @property
    def topic_id(self) -> str | None:
        """The id of the topic whose log is here; None without a log, or if the log has none."""
        return self.log.topic_id if self.log is not None else None

    # ---- roles

    def become_leader(self, partition_state: LeaderAndIsrPartition, log: UnifiedLog) -> None:
        """Become leader, under a leader epoch that is new to this replica."""
        previous, self.log = self.leadership, log
        if previous is not None:
            previous.end()
        self._update_assignment(partition_state)
        self.leadership = Leadership(
            log, partition_state, self.delayed_operations, self._environment, previous
        )
        self._environment.events.record(
            EventKind.BECAME_LEADER,
            partition_state.cause,
            self.topic_partition,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            epoch_start_offset=self.leadership.epoch_start_offset,
            high_watermark=log.high_watermark,
            isr=self.leadership.isr.committed,
            replicas=self.replicas,
        )
        for follower in self.delayed_operations.followers.values():
            follower.leadership_changed()
        self.leadership.start()

    def become_follower(self, partition_state: LeaderAndIsrPartition, log: UnifiedLog) -> None:
        """Become follower; requests that wait for the leader are refused."""
        self.log = log
        self._resign()
        self._update_assignment(partition_state)
        self._environment.events.record(
            EventKind.BECAME_FOLLOWER,
            partition_state.cause,
            self.topic_partition,
            leader=self.leader_id,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            log_end_offset=log.log_end_offset,
            high_watermark=log.high_watermark,
        )
        self.delayed_operations.leadership_ended(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def go_offline(self, cause: str) -> None:
        """The log directory has failed: answer KAFKA_STORAGE_ERROR until the next start."""
        self._environment.events.record(EventKind.REPLICA_OFFLINE, cause, self.topic_partition)
        self.offline = True
        self._resign()
        self.log = None
        self.delayed_operations.leadership_ended(ErrorCode.KAFKA_STORAGE_ERROR)

    def resign(self, answer: ErrorCode) -> None:
        """Stop leading before there is another leader; waiting requests get `answer`."""
        self._resign()
        self.delayed_operations.leadership_ended(answer)

    def give_up_role(self) -> None:
        """Neither lead nor follow: the controller can send the role again under the same epoch."""
        self._resign()
        self.waits_for_role = True

    def stop_following(self) -> None:
        """Stay as it is until the controller sends a role; a follower takes the same one again."""
        self.waits_for_role = self.leader_id != self._environment.broker_id

    def stop(self) -> None:
        """This broker no longer hosts the partition."""
        self._resign()
        self.delayed_operations.leadership_ended(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        for follower in list(self.delayed_operations.followers.values()):
            follower.detach()

    def _resign(self) -> None:
        if self.leadership is not None:
            self._partition_epoch = self.leadership.partition_epoch
            self.leadership.end()
            self.leadership = None

    def _update_assignment(self, partition_state: LeaderAndIsrPartition) -> None:
        self.waits_for_role = False
        self.leader_id = partition_state.leader
        self.leader_epoch = partition_state.leader_epoch
        self._partition_epoch = partition_state.partition_epoch
        self.replicas = tuple(partition_state.replicas)
        self.isr_of_role = tuple(partition_state.in_sync_replicas)

    # ---- for produce, fetch and offsets

    def lead(self, requested_epoch: int = NO_EPOCH) -> Leadership:
        """Return the leadership to a request that carries the leader epoch `requested_epoch`.

        Raises:
            KafkaStorageError: the log directory has failed.
            FencedLeaderEpochError, UnknownLeaderEpochError: another epoch is current here. Checked
                before the leadership, so that a reader learns which of the two is behind.
            NotLeaderOrFollowerError: this broker is not the leader.
        """
        if self.offline:
            raise KafkaStorageError(f"{self.topic_partition}: its log directory has failed")
        if requested_epoch not in (NO_EPOCH, self.leader_epoch):
            self._check_leader_epoch(requested_epoch)
        if self.leadership is None:
            raise NotLeaderOrFollowerError(f"{self.topic_partition} is led by {self.leader_id}")
        return self.leadership

    def _check_leader_epoch(self, requested: int) -> None:
        """Refuse another epoch; only the first refusal is an event, because the sender retries."""
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

    def follower_log(self) -> UnifiedLog:
        """The log, for the fetcher; raises KafkaStorageError if its directory has failed."""
        if self.log is None:
            raise KafkaStorageError(f"{self.topic_partition}: its log directory has failed")
        return self.log

    def truncate(self, offset: int, rule: str, cause: str) -> None:
        """Truncate the log to `offset` because the leader's does not have the rest.

        Raises DamagedReplicaError if the log is damaged there, and nothing was removed; or if what
        is left is damaged.
        """
        log = self.follower_log()
        end, high_watermark = log.log_end_offset, log.high_watermark
        try:
            log.truncate_to(offset)
        except CorruptMessageError as error:
            raise DamagedReplicaError(offset, error.message) from error
        if offset < end:
            self._report_truncation(end, high_watermark, offset, rule, cause)
        if offset < high_watermark:
            self._environment.events.record(
                EventKind.COMMITTED_RECORDS_TRUNCATED,
                f"leader {self.leader_id} does not have the records from {offset} to"
                f" {high_watermark}, which were committed here: an unclean election, or a"
                " leader that lost them",
                self.topic_partition,
                from_offset=high_watermark,
                to_offset=offset,
                leader=self.leader_id,
                leader_epoch=self.leader_epoch,
            )
        if log.damage is not None:
            raise DamagedReplicaError(*log.damage)

    def truncate_damaged(self, offset: int, cause: str) -> None:
        """Truncate the log at `offset` because it is damaged there and the leader has the rest.

        At the end of the last batch below it: the damaged one may begin earlier than it claims, and
        what is not a gap of compaction must not become one.

        Raises CorruptMessageError if the batches there are malformed, and nothing was removed.
        """
        log = self.follower_log()
        end, high_watermark = log.log_end_offset, log.high_watermark
        offset = log.data_end_below(offset)
        log.truncate_to(offset)
        if offset < end:
            self._report_truncation(end, high_watermark, offset, "damage", cause)

    def truncate_fully(self, start: int, cause: str) -> None:
        """Delete the whole log and start it again, empty, at `start`."""
        log = self.follower_log()
        end, high_watermark = log.log_end_offset, log.high_watermark
        self._report_truncation(end, high_watermark, start, "start-over", cause)
        log.truncate_fully_and_start_at(start)

    def _report_truncation(
        self, end: int, high_watermark: int, offset: int, rule: str, cause: str
    ) -> None:
        self._environment.events.record(
            EventKind.LOG_TRUNCATED,
            cause,
            self.topic_partition,
            rule=rule,
            from_offset=end,
            to_offset=offset,
            high_watermark=high_watermark,
            leader=self.leader_id,
            leader_epoch=self.leader_epoch,
        )

    # ---- for DescribeReplicas

    def describe(self) -> ReplicaDescription:
        """Describe this replica; the leader also describes its followers."""
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
            described.last_stable_offset = self.log.last_stable_offset
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
