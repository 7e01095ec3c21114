"""Tells the coordinator that the member is there, while the application works (KIP-62).

A member that polls too rarely leaves the group by itself: its process is alive, and nothing else
would tell the others that its partitions are not read.
"""

import asyncio
import logging

from barnabas_common.errors import BarnabasError, error_for
from barnabas_common.messages.groups import HeartbeatRequest, HeartbeatResponse
from barnabas_common.runtime import TaskScope

from barnabas.group.member import GroupMember
from barnabas.group.states import HEARTBEAT, Reaction, reaction

logger = logging.getLogger(__name__)


class Heartbeats:
    """`last_success`: when the coordinator answered last. `last_poll`: when a poll ended last;
    `polls`: how many wait now."""

    def __init__(self, member: GroupMember) -> None:
        self._member = member
        self._config = member.config
        self._coordinator = member.coordinator
        self._clock = member.coordinator.cluster.clock
        self._tasks = TaskScope("heartbeats", on_failure=self._on_failure)
        self._changed = asyncio.Event()
        self._next = 0.0
        self._failures = 0
        self._was_beating = False
        self.polls = 0
        self.last_poll = self._clock.monotonic()
        self.last_success = self.last_poll

    def start(self) -> None:
        self._member.on_change.append(self._on_change)
        self._tasks.spawn(self._run(), "heartbeat")

    async def close(self) -> None:
        await self._tasks.close()

    @property
    def seconds_late(self) -> float:
        """For how long the application has not polled, beyond what it may; negative in time."""
        if self.polls:
            return -self._config.max_poll_interval
        return self._clock.monotonic() - self.last_poll - self._config.max_poll_interval

    def _on_failure(self, task: str, error: BaseException) -> None:
        self._member.broke(task, error)
        self._tasks.spawn(self._run(), "heartbeat")

    def _on_change(self) -> None:
        beating = self._member.state.beats
        if beating and not self._was_beating:  # the answer to the join was a sign of life
            self.last_success = self._clock.monotonic()
            self._next = self.last_success + self._config.heartbeat_interval
        self._was_beating = beating
        self._changed.set()

    async def _run(self) -> None:
        while True:
            self._changed.clear()
            member = self._member
            if not member.state.beats or member.generation.number < 0:
                await self._changed.wait()
            elif self.seconds_late >= 0:
                late = self.seconds_late + self._config.max_poll_interval
                await member.leave(f"no poll for {late:.0f} s", self._config.heartbeat_interval)
            elif (pause := self._next - self._clock.monotonic()) > 0:
                await self._sleep(min(pause, max(-self.seconds_late, 0.001)))
            else:
                await self._beat()

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _beat(self) -> None:
        member, config = self._member, self._config
        sent = member.generation
        self._next = self._clock.monotonic() + config.heartbeat_interval
        request = HeartbeatRequest(
            config.group_id, sent.number, sent.member_id, config.group_instance_id, config.client_id
        )
        try:
            response: HeartbeatResponse = await self._coordinator.call(
                request, min(config.request_timeout, config.session_timeout)
            )
        except BarnabasError as error:
            self._again_soon(error)
            return
        if member.generation == sent and member.state.beats:
            self._react(response.error_code)

    def _again_soon(self, error: BarnabasError) -> None:
        self._failures += 1
        pause = self._coordinator.cluster.backoff.seconds(self._failures)
        self._next = self._clock.monotonic() + pause
        logger.info("group %s: a heartbeat failed: %s", self._config.group_id, error)

    def _react(self, code: int) -> None:
        step = reaction(HEARTBEAT, code)
        error = error_for(code, f"heartbeat in group {self._config.group_id!r}")
        if step in (Reaction.GO_ON, Reaction.REJOIN):
            self.last_success = self._clock.monotonic()
            self._failures = 0
            if step is Reaction.REJOIN:
                self._member.rebalance_began()
        elif step is Reaction.FIND_COORDINATOR:
            self._coordinator.forget(error)
            self._again_soon(error)
        elif step is Reaction.TRY_AGAIN:
            self._again_soon(error)
        elif step is Reaction.FAIL:
            self._member.fail(error)
        else:
            self._member.forget(step, str(error))
