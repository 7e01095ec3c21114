"""While a member waits in a rebalance: asks the coordinator whom it waits for.

Once, when the wait has lasted a heartbeat interval, and then when `known` is called: a coordinator
with many members in a rebalance must not be kept busy by their questions.
"""

import asyncio

from barnabas_common.errors import BarnabasError
from barnabas_common.messages.groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas_common.runtime import TaskScope

from barnabas.group.awaiting import Awaiting, awaiting_of
from barnabas.group.member import GroupMember
from barnabas.group.states import MemberState

_WAITS = (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)


class RebalanceWait:
    """Follows one member."""

    def __init__(self, member: GroupMember) -> None:
        self._member = member
        self._clock = member.coordinator.cluster.clock
        self._tasks = TaskScope("awaited members")
        self._asking: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._answer = Awaiting("")
        self._of_wait = -1.0
        self._answered_at = 0.0

    def start(self) -> None:
        self._member.on_change.append(self._on_change)

    async def close(self) -> None:
        self._cancel()
        if self._on_change in self._member.on_change:
            self._member.on_change.remove(self._on_change)
        await self._tasks.close()

    def known(self) -> Awaiting:
        """What the coordinator has said last about this wait, as of now; and ask it again."""
        self._ask()
        if self._of_wait != self._member.since:
            return Awaiting("")
        return self._answer.later(self._clock.monotonic() - self._answered_at)

    def _on_change(self) -> None:
        self._cancel()
        if self._member.state in _WAITS:
            interval = self._member.config.heartbeat_interval
            self._timer = asyncio.get_running_loop().call_later(interval, self._ask)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ask(self) -> None:
        if self._member.state in _WAITS and (self._asking is None or self._asking.done()):
            self._asking = self._tasks.spawn(self._describe(), "describe")

    async def _describe(self) -> None:
        member, since = self._member, self._member.since
        group_id, client_id = member.config.group_id, member.config.client_id
        request = DescribeGroupsRequest([group_id], client_id, without_members=True)
        try:
            response: DescribeGroupsResponse = await member.coordinator.call(
                request, member.config.request_timeout
            )
        except BarnabasError:  # the join finds out too, and says so
            return
        (group,) = response.groups
        if not group.error_code:
            self._answer, self._of_wait = awaiting_of(group), since
            self._answered_at = self._clock.monotonic()
