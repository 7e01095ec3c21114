"""Commits of one consumer: what the application asks for, and those made for it.

They are sent one after the other, so that an older one never overtakes a newer one.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from barnabas_common.errors import (
    BarnabasError,
    ClientError,
    ClosedError,
    RebalanceInProgressError,
)
from barnabas_common.runtime import TaskScope
from barnabas_common.topic_partition import TopicPartition

from barnabas.group.config import GroupConfig
from barnabas.group.coordinator import GroupCoordinator
from barnabas.group.member import GroupMember
from barnabas.group.offsets import (
    CommitFailedError,
    OffsetAndMetadata,
    Offsets,
    OnFailure,
    commit,
    commit_failure,
    commit_once,
    fetch_committed,
    give_up_unknown,
)
from barnabas.group.states import COMMIT, Generation, MemberState, Reaction, reaction

logger = logging.getLogger(__name__)

OnCommit = Callable[[Offsets, BarnabasError | None], None]

_NOT_NOW = (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)


class _Wanted(NamedTuple):
    """A commit in the queue, and the generation that it was made in.

    `timeout` in seconds; None: a single attempt. `on_failure` may end the attempts.
    """

    offsets: Offsets
    generation: Generation
    timeout: float | None
    outcome: asyncio.Future[BarnabasError | None]
    on_failure: OnFailure

    def failed(self, failure: BarnabasError) -> None:
        """An attempt failed. No other is made for a caller that was cancelled: later commits, and
        `close`, wait for this one."""
        if self.outcome.cancelled():
            raise failure
        self.on_failure(failure)


class Commits:
    """`last_failure`: why the last commit in the background failed, if it did.

    `stored`: what the coordinator has accepted from this consumer, for partitions that it holds.
    `leaving`: no poll will follow, so commits are sent during a rebalance too; the coordinator
    takes them until all members have joined.
    """

    def __init__(
        self, config: GroupConfig, coordinator: GroupCoordinator, member: GroupMember
    ) -> None:
        self._config = config
        self._coordinator = coordinator
        self._member = member
        self._queue: deque[_Wanted] = deque()
        self._working = self._closed = False
        self._tasks = TaskScope("commits")
        self.last_failure: BarnabasError | None = None
        self.leaving = False
        self.stored: dict[TopicPartition, OffsetAndMetadata] = {}

    async def close(self) -> None:
        """Give up what is not sent yet; `commit({}, seconds)` waits for it before."""
        self._closed = True
        await self._tasks.close()
        for wanted in self._queue:
            if not wanted.outcome.done():
                wanted.outcome.set_result(ClosedError("the consumer was closed"))

    async def commit(self, offsets: Offsets, timeout: float) -> None:
        """Returns when the coordinator has stored them; retries for `timeout` seconds.

        It gives up on a topic that stays unknown, because later commits, and `close`, wait behind
        it.
        """
        only_existing = give_up_unknown(self._coordinator.cluster.clock)
        failure = await self._enqueue(offsets, timeout, only_existing)
        if failure is not None:
            raise failure

    def commit_async(self, offsets: Offsets, on_commit: OnCommit | None) -> None:
        """Sends them in the background, once; a newer commit makes up for one that failed."""

        def report(outcome: asyncio.Future[BarnabasError | None]) -> None:
            if outcome.cancelled():
                return
            failure = self.last_failure = outcome.result()
            if on_commit is not None:
                on_commit(offsets, failure)
            elif failure is not None:
                logger.warning("group %s: a commit failed: %s", self._config.group_id, failure)

        self._enqueue(offsets, None).add_done_callback(report)

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed; None for a partition without."""
        return await fetch_committed(
            self._coordinator, partitions, timeout, self._config.offsets_storage
        )

    def _enqueue(
        self,
        offsets: Offsets,
        timeout: float | None,
        on_failure: OnFailure = lambda failure: None,
    ) -> asyncio.Future[BarnabasError | None]:
        outcome = asyncio.get_running_loop().create_future()
        if self._closed:
            outcome.set_result(ClosedError("the consumer was closed"))
            return outcome
        wanted = _Wanted(offsets, self._member.generation, timeout, outcome, on_failure)
        self._queue.append(wanted)
        if not self._working:
            self._working = True
            self._tasks.spawn(self._work(), "commit")
        return outcome

    async def _work(self) -> None:
        try:
            while self._queue:
                wanted = self._queue[0]
                failure: BarnabasError | None = None
                try:
                    if wanted.offsets and not wanted.outcome.cancelled():
                        await self._send(wanted)
                except BarnabasError as error:
                    failure = error
                except Exception as error:  # a mistake here: the commits behind it go on
                    logger.exception("group %s: a commit failed", self._config.group_id)
                    failure = ClientError(f"the commit could not be sent: {error!r}")
                self._queue.popleft()
                if not wanted.outcome.done():
                    wanted.outcome.set_result(failure)
        finally:
            self._working = False

    async def _send(self, wanted: _Wanted) -> None:
        """One commit, with attempts for `timeout` seconds, or a single one.

        It is sent under the generation it was made in, or not at all: in a later one its partitions
        may be another member's.
        """
        offsets, sent, timeout = wanted.offsets, wanted.generation, wanted.timeout
        member, config = self._member, self._config
        if member.state in _NOT_NOW and not self.leaving:
            raise RebalanceInProgressError("poll() until the group has rebalanced, then commit")
        if member.subscribed and member.generation.number < 0:
            raise CommitFailedError(f"this consumer is no member of the group now: {member.why}")
        if member.generation != sent:
            raise CommitFailedError("the group has rebalanced since this commit was made")
        arguments = (
            self._coordinator, sent, config.group_instance_id, offsets, config.offsets_storage
        )  # fmt: skip
        if timeout is None:
            response = await commit_once(*arguments, config.request_timeout)
        else:
            response = await commit(*arguments, timeout, wanted.failed)
        failure = commit_failure(response)
        if failure is None:
            self.stored.update(offsets)
            return
        code, error = failure
        step = reaction(COMMIT, code)
        if step in (Reaction.FORGET_MEMBER, Reaction.FORGET_GENERATION):
            if member.subscribed and member.generation == sent:
                member.forget(step, str(error))
            raise CommitFailedError(
                f"the group goes on without this consumer, or is used by members: {error}"
            ) from error
        if step is Reaction.REJOIN:
            member.rebalance_began()
        if step is Reaction.FIND_COORDINATOR:
            self._coordinator.forget(error)
        raise error


def moved(
    positions: Mapping[TopicPartition, OffsetAndMetadata],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """The positions that are not committed yet."""
    return {tp: position for tp, position in positions.items() if committed.get(tp) != position}
