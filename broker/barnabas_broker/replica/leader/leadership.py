"""The leader of a partition: its log, its followers, the ISR and the high watermark.

A `Leadership` exists for one leader epoch. `Partition` creates it on LeaderAndIsr and drops it with
the next one. It is the only owner of this state: `in_sync`, `isr_changes` and `high_watermark`
decide, as plain functions, and `Leadership` applies what they return, wakes waiting requests and
sends proposals. Nothing here awaits. `Durability` decides which part of the log counts.
"""

from barnabas_common.errors import (
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    UnknownLeaderEpochError,
)
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, Value
from barnabas_common.messages.control import (
    AlteredPartition,
    AlterPartitionItem,
    LeaderAndIsrPartition,
)
from barnabas_common.messages.sentinels import NO_EPOCH
from barnabas_common.topic_partition import TopicPartition

from barnabas_broker.log.append_origin import AppendOrigin
from barnabas_broker.log.appended import Appended
from barnabas_broker.log.producers.verification import VerificationGuard
from barnabas_broker.log.record_validation import Unpacking
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_broker.replica.leader.durability import Durability
from barnabas_broker.replica.leader.environment import LeaderEnvironment
from barnabas_broker.replica.leader.high_watermark import (
    Hold,
    Progress,
    holds_back,
    next_high_watermark,
)
from barnabas_broker.replica.leader.hosting import absences, describe_absence, no_longer_hosting
from barnabas_broker.replica.leader.in_sync import (
    NEVER,
    InSyncReplicas,
    RemoteReplica,
    describe_lag,
    effective_min_in_sync,
    out_of_sync_replicas,
)
from barnabas_broker.replica.leader.isr_changes import Proposal, after_answer, expansion, shrinking
from barnabas_broker.replica.leader.last_replica import LastReplicaStanding
from barnabas_broker.replica.purgatory import DelayedOperations

# The grace time as a part of the lag time: less than the half that lies between two checks.
ABSENCE_GRACE_RATIO = 0.4

ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1


class Leadership:
    """The leader's state for one epoch. `previous` is set if this broker led just before.

    `isr` has the ISR that the controller last confirmed, and the change that is proposed now.
    `partition_epoch` is the version of the state znode that this leader acts on. `is_behind` says
    that the last answer to a proposal has shown that the version is another by now.
    """

    def __init__(
        self,
        log: UnifiedLog,
        partition_state: LeaderAndIsrPartition,
        delayed_operations: DelayedOperations,
        environment: LeaderEnvironment,
        previous: "Leadership | None",
    ) -> None:
        self.log = log
        self.topic_partition = TopicPartition(partition_state.topic, partition_state.partition)
        self.epoch = partition_state.leader_epoch
        self.partition_epoch = partition_state.partition_epoch
        self.isr = InSyncReplicas(tuple(partition_state.in_sync_replicas))
        self.is_behind = False
        self.replicas = tuple(partition_state.replicas)
        self.epoch_start_offset = log.log_end_offset
        self._began = environment.now()
        self._absent_since: dict[int, float] = {}
        self._delayed_operations = delayed_operations
        self._environment = environment
        self._durability = self._new_durability()
        self.followers = self._followers(previous)
        # Before its first record: followers then learn that the records of older epochs, which may
        # be their own last ones, end here (KIP-101).
        log.assign_epoch(self.epoch, self.epoch_start_offset)

    def _new_durability(self) -> Durability:
        environment, log = self._environment, self.log
        if environment.flush_soon is None:
            return Durability(log)
        count = len(self.replicas)
        return LastReplicaStanding(log, count, environment, environment.flush_soon, self._flushed)

    def _followers(self, previous: "Leadership | None") -> dict[int, RemoteReplica]:
        # A leader that missed an epoch may have missed another leader to whose log the followers
        # truncated theirs: the offsets it knows prove nothing.
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

    def start(self) -> None:
        """Take the first steps of the epoch, once the partition has this leadership."""
        self.watch_out_of_sync_followers()
        self._review_durability()
        self.advance_high_watermark()

    def end(self) -> None:
        """The epoch is over: the answer to a proposal in flight no longer counts."""
        self.isr = self.isr.rolled_back()
        self._durability.end()

    @property
    def min_in_sync(self) -> int:
        """The smallest ISR with which `acks=all` is accepted; never more than all replicas."""
        return effective_min_in_sync(self.log.config.min_insync_replicas, len(self.replicas))

    # ---- produce

    def append(
        self,
        records: bytes,
        acks: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
        unpacking: Unpacking | None = None,
    ) -> Appended:
        """Append a producer's batches and wake the requests that wait for them. `guard` shows that
        the coordinator knows of the transaction that a batch begins. `unpacking`: see `Unpacking`.

        Raises:
            NotEnoughReplicasError: acks=all and too few members in the ISR; nothing was written.
            KafkaError: the log refused the batches, or its disk failed.
        """
        if acks == ACKS_ALL and len(self.isr.committed) < self.min_in_sync:
            raise NotEnoughReplicasError(
                f"{self.topic_partition}: {len(self.isr.committed)} replicas in sync"
                f" {list(self.isr.committed)}, {self.min_in_sync} are needed"
            )
        log, end_before = self.log, self.log.log_end_offset
        try:
            return log.append_as_leader(records, self.epoch, now_ms, origin, guard, unpacking)
        finally:  # the records are in the log also if the flush after the append has failed
            if log.log_end_offset != end_before and not log.is_failed:
                self._appended(end_before)

    def _appended(self, end_before: int) -> None:
        """Records came after `end_before`: not those of a retry, which were there before."""
        self._note_caught_up(end_before)
        self._durability.appended()
        self.advance_high_watermark()
        self._delayed_operations.data_arrived()

    def _note_caught_up(self, log_end_offset: int) -> None:
        """Followers that had everything until this append were caught up at their last fetch.

        In an incremental session a fetch does not name an idle partition (KIP-227), so the fetches
        that would have shown it are taken into account here.
        """
        for broker_id, follower in self._delayed_operations.followers.items():
            remote = self.followers.get(broker_id)
            if remote is not None and remote.log_end_offset == log_end_offset:
                last = max(remote.last_fetch_time, follower.session.last_fetch_time)
                remote.record_fetch(log_end_offset, log_end_offset, last)

    def outcome_of_append(self, acks: int, required_offset: int) -> ErrorCode | None:
        """The answer to a produce that ends at `required_offset`; None if it must wait."""
        if acks == ACKS_ALL:
            reached = self.log.high_watermark >= required_offset
            return self._outcome_of_committed() if reached else None
        if acks == ACKS_LEADER and required_offset > self._durability.end_offset:
            return None
        return ErrorCode.NONE

    def _outcome_of_committed(self) -> ErrorCode:
        if len(self.isr.maximal) >= self.min_in_sync:
            return ErrorCode.NONE
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    # ---- fetch

    def follower(self, broker_id: int, requested_epoch: int) -> RemoteReplica:
        """The replica that a fetch comes from; raises if it is not assigned here."""
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

    def record_fetch(self, follower: RemoteReplica, offset: int, log_end_offset: int) -> None:
        """Note that a follower fetched from `offset` when the log ended at `log_end_offset`."""
        offset_before = follower.log_end_offset
        follower.record_fetch(offset, log_end_offset, self._environment.now())
        self.maybe_expand_isr(follower)
        if offset != offset_before:
            self.advance_high_watermark()

    # ---- the high watermark

    def advance_high_watermark(self) -> None:
        """Move the high watermark as far as it may, and wake the requests that wait for it."""
        moved_to = next_high_watermark(self._progress())
        if moved_to > self.log.high_watermark:
            self.log.maybe_increment_high_watermark(moved_to)
            self._delayed_operations.high_watermark_moved(moved_to, self._outcome_of_committed())

    def what_holds_high_watermark(self) -> Hold:
        """Why the high watermark is below the log end, if it is."""
        return self._durability.what_holds(self._progress())

    def _progress(self) -> Progress:
        return Progress(
            self.log.high_watermark,
            self._durability.end_offset,
            self._awaited(),
            in_sync_count=len(self.isr.committed),
            min_in_sync=self.min_in_sync if self._environment.gate else 0,
        )

    def _awaited(self) -> dict[int, int]:
        """The log end offsets of the followers that the high watermark waits for."""
        end = self.log.log_end_offset
        return {
            broker_id: follower.log_end_offset
            for broker_id, follower in self.followers.items()
            if self._holds_back(follower, end)
        }

    def _holds_back(self, follower: RemoteReplica, end: int) -> bool:
        environment = self._environment
        return holds_back(
            in_maximal_isr=follower.broker_id in self.isr.maximal,
            caught_up=follower.is_caught_up(end, environment.now(), environment.max_lag),
            alive=environment.is_alive(follower.broker_id),
        )

    def settings_changed(self) -> None:
        """`min.insync.replicas` may have changed, and with it what may be committed."""
        self._review_durability()
        self.advance_high_watermark()

    # ---- the ISR

    def maybe_expand_isr(self, follower: RemoteReplica) -> None:
        """Propose to add a follower to the ISR if it may join and is alive."""
        proposal = expansion(self.isr, follower, self.log.high_watermark, self.epoch_start_offset)
        if proposal is not None and self._environment.is_alive(follower.broker_id):
            self._propose(proposal)

    def maybe_shrink_isr(self) -> None:
        """Propose to remove the members that have lagged too long.

        While an addition is in flight, they leave only if the controller does not answer: the
        leader then writes the smaller ISR, which voids the addition.
        """
        if self.isr.in_flight and not self.isr.adds:
            return
        environment = self._environment
        late = out_of_sync_replicas(
            self.isr.committed,
            self.followers,
            self.log.log_end_offset,
            environment.now(),
            environment.max_lag,
            environment.max_lag_messages,
        )
        reasons = {member: self._lag_of(member) for member in late}
        reasons |= {member: describe_absence(member) for member in self._no_longer_hosting()}
        if not reasons:
            if not self.isr.in_flight:
                self._review_durability()
            return
        may_shrink = self._durability.prepare_to_shrink_to(len(self.isr.committed) - len(reasons))
        proposal = shrinking(self.isr, reasons, may_shrink)
        if proposal is None:
            return
        if self.isr.in_flight:
            self._environment.alter_partition_manager.write_instead(self._item(proposal))
        else:
            self._propose(proposal)

    def _no_longer_hosting(self) -> list[int]:
        """The members whose brokers fetch from this leader in this epoch, but not this partition.

        Checked at half the lag time, so a member leaves within the lag time.
        """
        environment, spoke = self._environment, []
        for member in self.isr.committed:
            if member in self.followers:
                spoken = environment.last_fetch_without(member, self.topic_partition)
                if spoken >= max(self._began, self.followers[member].last_fetch_time):
                    spoke.append(member)
        now = environment.now()
        self._absent_since = absences(self._absent_since, spoke, now)
        named = {member: self.followers[member].last_fetch_time for member in spoke}
        grace = environment.max_lag * ABSENCE_GRACE_RATIO
        return no_longer_hosting(self._absent_since, named, now, grace)

    def _lag_of(self, broker_id: int) -> str:
        follower, environment = self.followers[broker_id], self._environment
        fetching = self._delayed_operations.followers.get(broker_id)
        last_fetch = max(
            follower.last_fetch_time, fetching.session.last_fetch_time if fetching else NEVER
        )
        return describe_lag(
            follower,
            last_fetch,
            self.log.log_end_offset,
            environment.now(),
            environment.max_lag,
            environment.max_lag_messages,
        )

    def watch_out_of_sync_followers(self) -> None:
        """See at every fetch of a follower outside the ISR, even an idle one, if it may join."""
        for broker_id, follower in self._delayed_operations.followers.items():
            if broker_id not in self.isr.committed:
                follower.watch_for_isr_expansion()

    def _propose(self, proposal: Proposal) -> bool:
        """Ask the controller for an ISR; False if another change is still in flight."""
        proposed = proposal.isr.proposed
        if not self._environment.alter_partition_manager.submit(
            self._item(proposal), lambda answer, source: self._answered(proposal, answer, source)
        ):
            return False
        if proposed != self.isr.committed:
            self._report(EventKind.ISR_CHANGE_PROPOSED, proposal.cause, proposed=proposed)
        self.isr = proposal.isr
        return True

    def _item(self, proposal: Proposal) -> AlterPartitionItem:
        proposed = proposal.isr.proposed
        assert proposed is not None
        return AlterPartitionItem(
            self.topic_partition.topic,
            self.topic_partition.partition,
            leader_epoch=self.epoch,
            partition_epoch=self.partition_epoch,
            new_isr=list(proposed),
            cause=proposal.cause,
            new_isr_epochs=[self._broker_epoch_of(broker_id) for broker_id in proposed],
            topic_id=self.log.topic_id or "",
        )

    def _broker_epoch_of(self, broker_id: int) -> int:
        """The broker epoch of the incarnation whose fetches count; -1 if none fetches (KIP-903)."""
        fetching = self._delayed_operations.followers.get(broker_id)
        return NO_EPOCH if fetching is None else fetching.session.broker_epoch

    def _answered(self, proposal: Proposal, answer: AlteredPartition, source: str) -> None:
        """Apply the answer to a proposal, if it is still this leader's latest.

        `source` is who gave it, for humans; empty for the controller.
        """
        if self.isr is not proposal.isr:
            return
        before = self.isr.committed
        self.isr, self.partition_epoch = after_answer(
            self.isr, self.epoch, self.partition_epoch, answer
        )
        is_behind = self.is_behind = self.isr is proposal.isr
        if answer.error_code:
            meaning = ": this leader is behind" if is_behind else ""
            code = ErrorCode(answer.error_code).name
            self._report(
                EventKind.ISR_CHANGE_REFUSED,
                f"{source or 'the controller'} answered {code}{meaning}",
                proposed=proposal.isr.proposed,
                asked_because=proposal.cause,
            )
        elif not is_behind:
            changed = self.isr.committed != before
            kind = EventKind.ISR_CHANGED if changed else EventKind.LAST_REPLICA_DURABLE
            cause = f"{proposal.cause}; {source}" if source else proposal.cause
            self._report(kind, cause, isr_before=before)
            self.watch_out_of_sync_followers()
        if not is_behind:
            self._review_durability()
            self.advance_high_watermark()

    def _report(self, kind: EventKind, cause: str, **details: Value) -> None:
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

    # ---- durability

    def _review_durability(self) -> None:
        """The ISR or its minimum may have changed, and with it what counts as durable enough."""
        why_confirm = self._durability.review(self.isr)
        self._delayed_operations.flushed(self._durability.end_offset)
        if why_confirm:
            unchanged = InSyncReplicas(self.isr.committed, self.isr.committed)
            if self._propose(Proposal(unchanged, why_confirm)):
                self._durability.confirming()

    def _flushed(self) -> None:
        """Everything up to `durability.end_offset` is flushed."""
        self._delayed_operations.flushed(self._durability.end_offset)
        self.maybe_shrink_isr()
        self.advance_high_watermark()
