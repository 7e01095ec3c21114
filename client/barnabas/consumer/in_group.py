"""What a consumer has for its group: subscription, commits, pauses, and words about its health.

`Consumer` adds the reading. Records that its iteration has polled but not returned stay out of
every commit, and are set aside while partitions change hands.
"""

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from barnabas_common.errors import (
    ClientError,
    ClosedError,
    InvalidArgumentError,
    InvalidGroupIdError,
)
from barnabas_common.messages.groups import KAFKA_STORAGE
from barnabas_common.runtime import Runtime
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster.client import Client
from barnabas.cluster.options import check_callable, checked_partition, checked_partitions
from barnabas.consumer.buffer import FetchBuffer
from barnabas.consumer.commits import OnCommit
from barnabas.consumer.config import ConsumerConfig
from barnabas.consumer.health import health
from barnabas.consumer.listener import RebalanceListener, check_listener
from barnabas.consumer.membership import Membership
from barnabas.consumer.record import ConsumerRecord
from barnabas.consumer.subscription_state import SubscriptionState, TopicPartitionState
from barnabas.group.config import GroupConfig
from barnabas.group.offsets import (
    CommitFailedError,
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    checked,
)
from barnabas.group.subscription import checked_subscription

# Kafka's default for `close`.
_CLOSE_SECONDS = 30.0


class InGroup(Client):
    """`_membership` is there once the consumer was started with a `group_id`."""

    def __init__(
        self,
        config: ConsumerConfig,
        bootstrap_servers: str | Sequence[str],
        runtime: Runtime | None,
        topics: Sequence[str],
    ) -> None:
        super().__init__(config.cluster(bootstrap_servers), runtime)
        self._config = config
        self._group_config = config.group()
        self._positions = SubscriptionState(
            config.auto_offset_reset, in_group=self._group_config is not None
        )
        self._buffer = FetchBuffer()
        self._timeout = config.default_api_timeout_ms / 1000
        # Polled by the iteration, not yet returned by it.
        self.pending: deque[ConsumerRecord] = deque()
        self._held: deque[ConsumerRecord] = deque()
        self._membership: Membership | None = None
        self._subscription = checked_subscription(topics) if topics else None
        self._listener: RebalanceListener | None = None

    # What to read

    def subscribe(
        self,
        topics: str | Iterable[str] | re.Pattern[str],
        listener: RebalanceListener | None = None,
    ) -> None:
        """Share these topics, or those whose whole names match a pattern, with the group.

        Replaces an earlier subscription; the next poll joins with it.
        """
        self._check_usable()
        self._check_in_group("subscribe")
        if self._positions.states and self._subscription is None:
            raise ClientError("this consumer has assigned its partitions: it cannot subscribe")
        check_listener(listener)
        self._subscription = checked_subscription(topics)
        self._listener = listener
        if self._membership is not None:
            self._membership.subscribe(self._subscription, listener)

    async def unsubscribe(self) -> None:
        """Commit if that is automatic, give up all partitions, and leave the group.

        Ends an assignment by `assign` too.
        """
        self._check_usable()
        self._check_home()
        self._subscription = None
        try:
            if self._membership is not None:
                await self._membership.unsubscribe(self._timeout)
        finally:  # also if the caller is cancelled
            self._positions.assign(())
            self._drop_pending(None)

    def subscription(self) -> list[str]:
        """The topics subscribed to; with a pattern those that match it now."""
        if self._membership is not None:
            return list(self._membership.member.topics)
        return list(self._subscription) if isinstance(self._subscription, tuple) else []

    # How far the group has read

    async def commit(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None
    ) -> None:
        """Store how far this consumer has read, or these offsets of the next records to read.

        Without offsets everything that was returned counts as read. Raises `CommitFailedError` if
        other members read the partitions now, and `RebalanceInProgressError` if the group
        rebalances: then poll first.
        """
        membership = await self._started_membership("commit")
        given = self._read_positions() if offsets is None else checked(offsets)
        await membership.commits.commit(given, self._timeout)

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        on_commit: OnCommit | None = None,
    ) -> None:
        """Commit in the background, with one attempt; `on_commit(offsets, error)` when it ends."""
        self._check_in_group("commit")
        self._check_usable()
        if self._membership is None:
            raise ClientError("start the consumer before a commit")
        if on_commit is not None:
            check_callable("on_commit", on_commit)
        given = self._read_positions() if offsets is None else checked(offsets)
        self._membership.commits.commit_async(given, on_commit)

    async def committed(
        self, partitions: Iterable[TopicPartition | tuple[str, int]] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed, for the assigned partitions or for these."""
        membership = await self._started_membership("committed")
        wanted = self._positions.states if partitions is None else partitions
        named = checked_partitions(wanted)
        return await membership.commits.committed(named, self._timeout) if named else {}

    @property
    def reads_committed(self) -> bool:
        """Whether records of open and aborted transactions are left out."""
        return self._config.isolation_level == "read_committed"

    @property
    def group_config(self) -> GroupConfig:
        """How this consumer takes part in its group. Raises `InvalidGroupIdError` without one."""
        self._check_in_group("this")
        assert self._group_config is not None
        return self._group_config

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Who this consumer is in its group, for `producer.send_offsets_to_transaction`.

        Raises `CommitFailedError` if it is no member: others may read its partitions.
        """
        self._check_in_group("group_metadata")
        if self._config.offsets_storage != KAFKA_STORAGE:
            raise ClientError(
                "this consumer keeps its offsets in ZooKeeper, which takes part in no transaction"
            )
        membership = self._membership
        if membership is None:
            raise ClientError("start the consumer before group_metadata")
        generation = membership.member.generation
        config = membership.config
        if self._subscription is not None and generation.number < 0:
            raise CommitFailedError(
                f"this consumer is no member of the group now: poll first; {membership.member.why}"
            )
        return ConsumerGroupMetadata(
            config.group_id,
            generation.number,
            generation.member_id if generation.number >= 0 else "",
            config.group_instance_id if generation.number >= 0 else "",
        )

    # Pauses

    def pause(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Return no records of these partitions until `resume`; without any: of all."""
        self._check_usable()
        for state in self._chosen(partitions):
            if not state.paused:
                if state.known:
                    self._fetch_ahead_again(state)
                state.paused = True
                self._drop_pending(state.topic_partition)

    def resume(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """End a pause."""
        self._check_usable()
        for state in self._chosen(partitions):
            state.paused = False
        if self._loop is not None:
            self._wake()

    def paused(self) -> list[TopicPartition]:
        """The partitions paused now."""
        return [tp for tp, state in self._positions.states.items() if state.paused]

    # Words

    def health(self) -> list[str]:
        """Why this consumer makes no progress, or that it does: sentences for a person."""
        if self._loop is None:
            return ["the consumer is closed" if self._closed else "the consumer is not started"]
        return health(self._cluster, self._positions, self._membership)

    # For `Consumer`

    async def _open_membership(self) -> None:
        if self._group_config is None:
            return
        self._membership = Membership(
            self._group_config,
            self._cluster,
            owned=lambda: list(self._positions.states),
            assign=self._assign_in_group,
            positions=self._read_positions,
            interrupt=self._interrupt,
        )
        if self._subscription is not None:
            await self._membership.find_topics(self._subscription, self._timeout)
            self._membership.subscribe(self._subscription, self._listener)
        self._membership.start()

    async def _close_membership(self, commit: bool) -> None:
        if self._membership is not None:
            await self._membership.close(_CLOSE_SECONDS, commit)

    def _assign_in_group(self, partitions: Iterable[TopicPartition]) -> None:
        assigned = list(partitions)
        self._positions.assign(assigned)
        self._drop_pending(None)
        self._cluster.watch(tp.topic for tp in assigned)
        self._wake()

    def _interrupt(self) -> None:
        """Make the application's next step a poll, also in the middle of an iteration.

        Taken from the end: a blocking iteration takes from the front in its own thread.
        """
        while self.pending:
            try:
                self._held.appendleft(self.pending.pop())
            except IndexError:
                break
        self._buffer.wake()

    def _restore_held(self) -> None:
        if self._held:
            self._held.extend(self.pending)
            self.pending, self._held = self._held, deque()
            self._drop_pending(None)

    def _fetch_ahead_again(self, state: TopicPartitionState) -> None:
        """Drop what was fetched and not returned."""
        record = self._next_pending(state)
        if record is None:
            state.rewind()
        else:
            state.go_on_from(record.offset, record.leader_epoch)

    def _application_position(self, state: TopicPartitionState) -> int:
        """The offset of the next record that the application gets."""
        record = self._next_pending(state)
        return state.position if record is None else record.offset

    def _next_pending(self, state: TopicPartitionState) -> ConsumerRecord | None:
        for record in (*self._held, *self.pending):
            if record.topic_partition == state.topic_partition:
                return record
        return None

    def _read_positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """How far the application has read, of every partition with a position."""
        next_records = {r.topic_partition: r for r in reversed((*self._held, *self.pending))}
        found = {}
        for tp, state in self._positions.states.items():
            record = next_records.get(tp)
            if record is not None:
                found[tp] = OffsetAndMetadata(record.offset, "", record.leader_epoch)
            elif state.known:
                found[tp] = OffsetAndMetadata(state.position, "", state.position_epoch)
        return found

    def _drop_pending(self, partition: TopicPartition | None) -> None:
        """Drop pending records of the given partition, and of partitions no longer assigned."""
        keep = self._positions.states
        self.pending, self._held = (
            deque(
                record
                for record in records
                if record.topic_partition != partition and record.topic_partition in keep
            )
            for records in (self.pending, self._held)
        )

    def _chosen(
        self, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> list[TopicPartitionState]:
        chosen = [self._assigned(partition) for partition in partitions]
        return chosen or list(self._positions.states.values())

    def _assigned(self, partition: TopicPartition | tuple[str, int]) -> TopicPartitionState:
        tp = checked_partition(partition)
        state = self._positions.states.get(tp)
        if state is None:
            raise InvalidArgumentError(f"{tp} is not assigned to this consumer")
        return state

    def _check_usable(self) -> None:
        """Raise `ClosedError` after `close`; while it waits for a listener, that may go on."""
        if self._closed and not self._closing:
            raise ClosedError("this Consumer is closed")

    def _check_in_group(self, what: str) -> None:
        if self._group_config is None:
            raise InvalidGroupIdError(f"{what} needs a group_id")

    async def _started_membership(self, what: str) -> Membership:
        self._check_home()
        self._check_in_group(what)
        await self._ensure_started()
        assert self._membership is not None
        return self._membership

    def _wake(self) -> None:
        raise NotImplementedError
