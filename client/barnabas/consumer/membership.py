"""The consumer's part in a rebalance: what happens between two polls.

`attend` is called at the start of every poll. Partitions are given up and taken only there, after
a commit of what was read, so no other member reads records that are being worked on here.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack

from barnabas_common.errors import (
    BarnabasError,
    ClientError,
    ClosedError,
    UnknownTopicOrPartitionError,
)
from barnabas_common.messages.metadata import MetadataRequest
from barnabas_common.runtime import TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas.cluster import Cluster
from barnabas.consumer.commits import Commits, moved
from barnabas.consumer.listener import LISTENING, Callback, RebalanceListener, invoke
from barnabas.group.config import GroupConfig
from barnabas.group.coordinator import GroupCoordinator
from barnabas.group.heartbeats import Heartbeats
from barnabas.group.member import GroupMember
from barnabas.group.offsets import OffsetAndMetadata
from barnabas.group.states import MemberState
from barnabas.group.subscription import subscribed_topics
from barnabas.group.waiting import RebalanceWait

logger = logging.getLogger(__name__)

# A member that leaves waits this long for the answer, even if its commits took all the time.
_LEAVING_SECONDS = 0.1

Positions = Callable[[], dict[TopicPartition, OffsetAndMetadata]]
AssignPartitions = Callable[[Iterable[TopicPartition]], None]


class Membership:
    """`owned`, `assign` and `positions` are the consumer's; `interrupt` ends a wait for records.

    `subscription`: the topics, or a pattern of their names; None: the consumer assigns by itself.
    """

    def __init__(
        self,
        config: GroupConfig,
        cluster: Cluster,
        owned: Callable[[], Sequence[TopicPartition]],
        assign: AssignPartitions,
        positions: Positions,
        interrupt: Callable[[], None],
    ) -> None:
        self.config = config
        self.coordinator = GroupCoordinator(cluster, config.group_id, config.client_id)
        self.member = GroupMember(config, self.coordinator, owned)
        self.heartbeats = Heartbeats(self.member)
        self.wait = RebalanceWait(self.member)
        self.commits = Commits(config, self.coordinator, self.member)
        self.subscription: tuple[str, ...] | re.Pattern[str] | None = None
        self.listener = RebalanceListener()
        self._cluster = cluster
        self._owned = owned
        self._assign = assign
        self._positions = positions
        self._interrupt = interrupt
        # A step's failure is raised by the poll that waits for it.
        self._tasks = TaskScope("membership", on_failure=lambda name, error: None)
        self._step: asyncio.Task[None] | None = None
        self._closed = False
        self._commit_due = False

    def start(self) -> None:
        self.member.on_change.append(self._on_change)
        self._cluster.on_update(self._on_metadata)
        self.member.start()
        self.heartbeats.start()
        self.wait.start()
        interval = self.config.auto_commit_interval or self.config.max_poll_interval / 3
        self._tasks.repeat(self._on_interval, interval, "interval")
        self._on_metadata()

    async def close(self, timeout: float, commit: bool) -> None:
        """Commit, give up the partitions, leave; `timeout` seconds for all of it."""
        self._closed = self.commits.leaving = True
        clock = self._cluster.clock
        deadline = clock.monotonic() + timeout
        async with AsyncExitStack() as closing:  # each part, also if the caller is cancelled
            for part in (self.commits, self.member, self.heartbeats, self.wait, self._tasks):
                closing.push_async_callback(part.close)
            await self._end_step(timeout)
            await self._finish_commits(deadline - clock.monotonic(), commit)
            left = max(deadline - clock.monotonic(), _LEAVING_SECONDS)
            await self._end("the consumer was closed", left)

    async def unsubscribe(self, timeout: float) -> None:
        """Out of the group; the consumer reads nothing after it."""
        if self.subscription is None:
            await self._finish_commits(timeout)
            return
        self.commits.leaving = True
        async with AsyncExitStack() as leaving:  # each part, also if the caller is cancelled
            leaving.callback(self._end_subscription)
            leaving.push_async_callback(self._end, "the consumer unsubscribed", timeout)
            await self._end_step(timeout)
            await self._finish_commits(timeout)

    def _end_subscription(self) -> None:
        self.commits.leaving = False
        self.subscription = None
        self.member.subscribed = False
        self.member.topics = ()

    def before_assign(self) -> None:
        """The application assigns other partitions by itself: no rebalance commits the old ones."""
        self._commit_what_moved()

    async def find_topics(
        self, subscription: tuple[str, ...] | re.Pattern[str], timeout: float
    ) -> None:
        """Learn of the topics before the first join. One that does not exist may come later."""
        if isinstance(subscription, re.Pattern):
            await self._cluster.refresh(MetadataRequest(all_topics=True))
            return
        for topic in subscription:
            try:
                await self._cluster.topic(topic, timeout)
            except UnknownTopicOrPartitionError as error:
                logger.warning("group %s: %s", self.config.group_id, error)

    def subscribe(
        self, subscription: tuple[str, ...] | re.Pattern[str], listener: RebalanceListener | None
    ) -> None:
        """The next poll joins with this subscription."""
        self.subscription = subscription
        self.member.subscribed = True
        self.listener = listener or RebalanceListener()
        self._cluster.watch_every_topic(isinstance(subscription, re.Pattern))
        if not isinstance(subscription, re.Pattern):
            self._cluster.watch(subscription)
        self._cluster.request_refresh()
        self._on_metadata()
        self.member.join("the subscription changed")

    def poll_begins(self) -> None:
        """While a poll waits the application is not late."""
        in_step = self._step is not None and asyncio.current_task() is self._step
        if in_step or LISTENING.get() is self.listener:
            raise ClientError("a rebalance listener must not poll")
        self.heartbeats.polls += 1

    def poll_ends(self) -> None:
        self.heartbeats.polls -= 1
        self.heartbeats.last_poll = self._cluster.clock.monotonic()

    async def attend(self, timeout: float | None) -> bool:
        """Do what is due between two polls; False if `timeout` seconds were not enough."""
        while self.due:
            if self._closed:
                raise ClosedError("the consumer is closed")
            step = self._step or self._tasks.spawn(self._take_step(), "rebalance")
            self._step = step
            try:
                async with asyncio.timeout(timeout):
                    await asyncio.shield(step)
            except TimeoutError:
                if not step.done():
                    return False
                if not step.cancelled():
                    step.result()  # its own failure; else it ended just when time was over
            except asyncio.CancelledError:
                current = asyncio.current_task()
                if not step.cancelled() or (current is not None and current.cancelling()):
                    raise
                # `close` or `unsubscribe` has ended the step, and not the caller.
            finally:
                if self._step is step and step.done():
                    self._step = None
        return True

    async def _end_step(self, timeout: float) -> None:
        """End a step that goes on in the background, and a listener with it.

        Waits for that, so that the listener is not called twice at a time.
        """
        step, self._step = self._step, None
        if step is None or step is asyncio.current_task():
            return
        ended = asyncio.Event()
        step.add_done_callback(lambda _: ended.set())
        step.cancel()
        try:
            async with asyncio.timeout(timeout):
                await ended.wait()
        except TimeoutError:
            logger.warning("the rebalance listener did not end in %.1f s", timeout)

    @property
    def due(self) -> bool:
        """Whether `attend` has something to do."""
        joins = self.subscription is not None and self.member.state is MemberState.UNJOINED
        return (
            self._step is not None
            or self._commit_due
            or joins
            or self.member.state.needs_application
        )

    async def _take_step(self) -> None:
        member = self.member
        if self._commit_due:
            self._commit_due = False
            self._commit_what_moved()
        if member.state is MemberState.FAILED:
            await self._give_up(self._owned(), lost=True)
            failure = member.take_failure()
            if failure is not None:
                raise failure
        if member.state is MemberState.UNJOINED and self.subscription is not None:
            member.join(member.why or "the application subscribed")
        if member.state is MemberState.REVOKING:
            await self._prepare()
        elif member.state is MemberState.ASSIGNING:
            await self._take()

    # Giving up and taking

    async def _prepare(self) -> None:
        """Before a join: with an eager protocol everything is given up (KIP-429 says more)."""
        owned = self._owned()
        lost = self.member.generation.number < 0
        if lost or not self.config.cooperative:
            given_up: Sequence[TopicPartition] = owned
        else:
            given_up = [tp for tp in owned if tp.topic not in self.member.topics]
        if not lost:
            await self._finish_commits(self.config.max_poll_interval)
            lost = self.member.generation.number < 0  # the commit may have found out
            given_up = owned if lost else given_up
        try:
            await self._give_up(given_up, lost)
        finally:
            # Others may read the partitions that stayed, if the generation was lost meanwhile: the
            # next step gives them up.
            lost_the_rest = not lost and self.member.generation.number < 0 and self._owned()
            if self.member.state is MemberState.REVOKING and not lost_the_rest:
                self.member.gave_up()

    async def _take(self) -> None:
        """After a rebalance: partitions not assigned again are given up, new ones are added."""
        new, owned = self.member.assignment, self._owned()
        unwanted = sorted({tp.topic for tp in new} - set(self.member.topics))
        if unwanted:
            self.member.took(f"assigned topics that are not subscribed to: {', '.join(unwanted)}")
            return
        revoked = [tp for tp in owned if tp not in new]
        added = [tp for tp in new if tp not in owned]
        failure: BaseException | None = None
        if revoked:
            await self._finish_commits(self.config.api_timeout)
            failure = await self._call(self.listener.on_partitions_revoked, revoked)
        if self.member.state is not MemberState.ASSIGNING:  # the generation was lost meanwhile
            _raise(failure)
            return
        self._assign(new)
        for tp in added:
            self.commits.stored.pop(tp, None)
        rejoin = f"gave up {', '.join(map(str, revoked))}" if revoked else ""
        self.member.took(rejoin)
        failure = await self._call(self.listener.on_partitions_assigned, added) or failure
        _raise(failure)

    async def _give_up(self, partitions: Sequence[TopicPartition], lost: bool) -> None:
        if not partitions:
            return
        callback = self.listener.on_partitions_lost if lost else self.listener.on_partitions_revoked
        failure = await self._call(callback, partitions)
        self._assign([tp for tp in self._owned() if tp not in partitions])
        _raise(failure)

    async def _call(
        self, callback: Callback, partitions: Sequence[TopicPartition]
    ) -> BaseException | None:
        """What the listener raised; the rebalance goes on all the same."""
        try:
            await invoke(callback, partitions)
        except Exception as error:
            logger.exception("the rebalance listener failed")
            return error
        return None

    async def _end(self, reason: str, timeout: float) -> None:
        """Give up everything and leave."""
        if self.subscription is None:
            return
        try:
            await self._give_up(self._owned(), lost=self.member.generation.number < 0)
        finally:
            await self.member.leave(reason, timeout)

    # Commits made for the application

    async def _finish_commits(self, timeout: float, auto: bool = True) -> None:
        """Wait for the commits in the background: under the next generation they would be refused.

        If commits are automatic and with `auto`, what was read is committed after them, except of
        partitions that are gone: the next topic of that name must not be read from there on. A
        failure is logged; what comes after this goes on.
        """
        auto = auto and self.config.auto_commit_interval is not None
        offsets = moved(self._positions(), self.commits.stored) if auto else {}
        exists = self._cluster.metadata.partition
        offsets = {tp: position for tp, position in offsets.items() if exists(tp) is not None}
        try:
            async with asyncio.timeout(timeout):
                await self.commits.commit(offsets, timeout)
        except BarnabasError as error:
            logger.warning("group %s: auto-commit failed: %s", self.config.group_id, error)
        except TimeoutError:
            logger.warning("group %s: commits were not answered in time", self.config.group_id)

    def _commit_what_moved(self) -> None:
        if self.config.auto_commit_interval is None:
            return
        positions = self._positions()
        if self.subscription is None:
            # Without members, offsets that are not committed again expire (KIP-211).
            offsets = positions
        elif self.member.state is MemberState.STABLE:
            offsets = moved(positions, self.commits.stored)
        else:
            return
        if offsets:
            self.commits.commit_async(offsets, None)

    # What calls for the application

    def _on_change(self) -> None:
        if self.due:
            self._interrupt()

    async def _on_interval(self) -> None:
        self._commit_due = True
        self._interrupt()

    def _on_metadata(self) -> None:
        """A pattern may match other topics now."""
        if self.subscription is None:
            return
        topics = subscribed_topics(self.subscription, self._cluster.metadata)
        before, self.member.topics = self.member.topics, topics
        if before != topics and self.member.state is not MemberState.UNJOINED:
            self.member.join("the topics of the subscription changed")


def _raise(failure: BaseException | None) -> None:
    if failure is not None:
        raise ClientError(f"the rebalance listener failed: {failure!r}") from failure
