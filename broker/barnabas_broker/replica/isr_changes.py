"""How the ISR of one leader epoch changes: the leader asks, the controller decides (KIP-497).

The leader finds who joins and who leaves (`in_sync`), proposes that ISR, and goes by the larger of
the two until the answer is there. `AlterPartitions` brings the proposals to the controller.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.error_code import ErrorCode
from barnabas.events import EventKind, Value
from barnabas.messages.control import AlteredPartition, AlterPartitionItem, LeaderAndIsrPartition

from barnabas_broker.replica.alter_partition import Verdict, verdict
from barnabas_broker.replica.in_sync import (
    NEVER,
    InSyncReplicas,
    RemoteReplica,
    describe_lag,
    laggards,
    may_join,
)
from barnabas_broker.replica.leader_epoch import NO_EPOCH
from barnabas_broker.replica.purgatory import Waiting

if TYPE_CHECKING:
    from barnabas_broker.replica.leadership import LeaderEnvironment, Leadership

logger = logging.getLogger(__name__)


class IsrChanges:
    """`isr` and `partition_epoch` are what the controller last confirmed, and what is asked now."""

    def __init__(
        self,
        leadership: Leadership,
        appointment: LeaderAndIsrPartition,
        environment: LeaderEnvironment,
        waiting: Waiting,
    ) -> None:
        self.isr = InSyncReplicas(tuple(appointment.in_sync_replicas))
        self.partition_epoch = appointment.partition_epoch
        self._leadership = leadership
        self._environment = environment
        self._waiting = waiting

    # ---- who joins, who leaves

    def maybe_expand_isr(self, follower: RemoteReplica) -> None:
        """Ask for a follower's admission if it has what a member needs and is alive."""
        broker_id, leader = follower.broker_id, self._leadership
        if (
            not self.isr.in_flight
            and broker_id not in self.isr.committed
            and may_join(
                follower.log_end_offset, leader.log.high_watermark, leader.epoch_start_offset
            )
            and self._environment.is_alive(broker_id)
        ):
            self.propose(
                self.isr.expanding(broker_id),
                f"broker {broker_id} has caught up to offset {follower.log_end_offset}"
                f" (high watermark {leader.log.high_watermark},"
                f" the leader's epoch began at {leader.epoch_start_offset})",
            )

    def maybe_shrink_isr(self) -> None:
        """Ask for the removal of the members that have lagged too long."""
        if self.isr.in_flight:
            return
        leader, environment = self._leadership, self._environment
        end = leader.log.log_end_offset
        late = laggards(
            self.isr.committed,
            leader.followers,
            end,
            environment.now(),
            environment.max_lag,
            environment.max_lag_messages,
        )
        if not late:
            leader.guard.review()
        elif leader.guard.allows(len(self.isr.committed) - len(late)):
            self.propose(self.isr.shrinking(late), "; ".join(map(self._lag_of, late)))

    def _lag_of(self, broker_id: int) -> str:
        follower, environment = self._leadership.followers[broker_id], self._environment
        connected = self._waiting.followers.get(broker_id)
        last_fetch = max(
            follower.last_fetch_time, connected.session.last_fetch_time if connected else NEVER
        )
        return describe_lag(
            follower,
            last_fetch,
            self._leadership.log.log_end_offset,
            environment.now(),
            environment.max_lag,
            environment.max_lag_messages,
        )

    def watch_outsiders(self) -> None:
        """Have every fetch of a follower outside the ISR tried for admission, idle ones too."""
        for broker_id, follower in self._waiting.followers.items():
            if broker_id not in self.isr.committed:
                follower.watch_for_admission()

    # ---- asking, and the answer

    def propose(self, proposal: InSyncReplicas, cause: str) -> None:
        """Ask the controller for an ISR; nothing if something else is still on its way."""
        assert proposal.proposed is not None
        leader = self._leadership
        item = AlterPartitionItem(
            leader.topic_partition.topic,
            leader.topic_partition.partition,
            leader_epoch=leader.epoch,
            partition_epoch=self.partition_epoch,
            new_isr=list(proposal.proposed),
            cause=cause,
            new_isr_epochs=[self._life_of(broker_id) for broker_id in proposal.proposed],
        )
        if not self._environment.alter_partitions.submit(
            item, lambda answer: self._answered(proposal, answer, cause)
        ):
            return
        if proposal.proposed != proposal.committed:
            name, wanted = leader.topic_partition, list(proposal.proposed)
            logger.info("%s: asking the controller for the ISR %s: %s", name, wanted, cause)
            self._report(EventKind.ISR_CHANGE_PROPOSED, cause, proposed=proposal.proposed)
        self.isr = proposal

    def _life_of(self, broker_id: int) -> int:
        """The broker epoch of the life whose fetches count here; -1 if none fetches (KIP-903)."""
        connected = self._waiting.followers.get(broker_id)
        return NO_EPOCH if connected is None else connected.session.broker_epoch

    def _answered(self, proposal: InSyncReplicas, answer: AlteredPartition, cause: str) -> None:
        """The controller's word on a proposal, if it is still this leader's latest."""
        if self.isr is not proposal:
            return
        leader = self._leadership
        outcome = verdict(answer.error_code)
        if outcome is Verdict.ROLL_BACK:
            self._refused(proposal, answer.error_code, cause, "")
            self.isr = proposal.rolled_back()
            leader.guard.review()
            leader.advance_high_watermark()  # it may have waited for the one who was refused
        elif outcome is Verdict.AWAIT_LEADER_AND_ISR:
            self._refused(proposal, answer.error_code, cause, ": this leader is behind")
        elif answer.leader_epoch == leader.epoch and answer.partition_epoch >= self.partition_epoch:
            self._committed(answer, cause)

    def _refused(self, proposal: InSyncReplicas, error_code: int, cause: str, meaning: str) -> None:
        answered = f"the controller answered {ErrorCode(error_code).name}{meaning}"
        name = self._leadership.topic_partition
        logger.info("%s: no ISR change to %s: %s", name, proposal.proposed, answered)
        self._report(
            EventKind.ISR_CHANGE_REFUSED,
            answered,
            proposed=proposal.proposed,
            asked_because=cause,
        )

    def _committed(self, answer: AlteredPartition, cause: str) -> None:
        leader = self._leadership
        logger.info(
            "%s: ISR is now %s, partition epoch %d",
            leader.topic_partition,
            answer.in_sync_replicas,
            answer.partition_epoch,
        )
        before, self.isr = self.isr, InSyncReplicas(tuple(answer.in_sync_replicas))
        self.partition_epoch = answer.partition_epoch
        changed = self.isr.committed != before.committed
        kind = EventKind.ISR_CHANGED if changed else EventKind.LAST_REPLICA_DURABLE
        self._report(kind, cause, isr_before=before.committed)
        self.watch_outsiders()
        leader.guard.review()
        leader.advance_high_watermark()

    def end(self) -> None:
        """The epoch is over: a proposal still on its way no longer counts."""
        self.isr = self.isr.rolled_back()

    def _report(self, kind: EventKind, cause: str, **details: Value) -> None:
        leader = self._leadership
        self._environment.events.record(
            kind,
            cause,
            leader.topic_partition,
            isr=self.isr.committed,
            leader_epoch=leader.epoch,
            partition_epoch=self.partition_epoch,
            log_end_offset=leader.log.log_end_offset,
            high_watermark=leader.log.high_watermark,
            **details,
        )
