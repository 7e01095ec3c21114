"""The sessions of members: one that sends nothing for its session timeout is expired.

A heartbeat only moves `Member.expires_at`. The timer looks at it when it fires and is set again if
the session has been extended: one timer for each session timeout instead of one for each heartbeat.
"""

from collections.abc import Callable
from typing import NamedTuple

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.member import Member, Timer
from barnabas_broker.coordinator.group.membership.context import GroupContext
from barnabas_broker.coordinator.group.states import GroupState

Expire = Callable[[Group, Member], None]


class Expected(NamedTuple):
    """A client that was given a member id, and may join with it until `until`."""

    client_id: str
    client_host: str
    until: float
    timer: Timer


class Sessions:
    """Calls `expire(group, member)` once a member's session is over."""

    def __init__(self, context: GroupContext, expire: Expire) -> None:
        self._context = context
        self._expire = expire
        self._expected: dict[tuple[str, str], Expected] = {}

    def extend(self, group: Group, member: Member, timeout_ms: int | None = None) -> None:
        """The member has sent a request: its session lasts for its session timeout from now on."""
        seconds = (member.session_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        member.expires_at = self._context.now() + seconds
        if member.timer is None or member.expires_at < member.timer_at:
            self._set_timer(group, member)

    def _set_timer(self, group: Group, member: Member) -> None:
        if member.timer is not None:
            member.timer.cancel()
        member.timer_at = member.expires_at
        seconds = max(member.expires_at - self._context.now(), 0)
        member.timer = self._context.call_later(seconds, lambda: self._look(group, member))

    def _look(self, group: Group, member: Member) -> None:
        member.timer = None
        if group.state is GroupState.DEAD or group.members.get(member.member_id) is not member:
            return
        if self._context.now() < member.expires_at:
            self._set_timer(group, member)
        elif member.waits and not member.is_new:
            # It waits for this coordinator; its session goes on when it is answered.
            self.extend(group, member)
        else:
            self._expire(group, member)

    def end(self, member: Member) -> None:
        """The member is gone."""
        if member.timer is not None:
            member.timer.cancel()
            member.timer = None

    # ---- ids that were given out, and have not joined yet

    def expect(
        self,
        group: Group,
        member_id: str,
        client: tuple[str, str],
        timeout_ms: int,
        give_up: Callable[[], None],
    ) -> None:
        """Wait for a new member to join with the id it was given; else call `give_up`.

        `client`: its client id and its host.
        """
        group.pending_members.add(member_id)
        key = (group.group_id, member_id)

        def look() -> None:
            self._expected.pop(key, None)
            if group.state is not GroupState.DEAD and member_id in group.pending_members:
                give_up()

        seconds = timeout_ms / 1000
        timer = self._context.call_later(seconds, look)
        self._expected[key] = Expected(*client, self._context.now() + seconds, timer)

    def expected(self, group: Group, member_id: str) -> Expected:
        """The client that was given this id; KeyError if it has joined or been given up."""
        return self._expected[group.group_id, member_id]

    def came(self, group: Group, member_id: str) -> None:
        """The member has joined, or will not."""
        expected = self._expected.pop((group.group_id, member_id), None)
        if expected is not None:
            expected.timer.cancel()

    def forget(self, group: Group) -> None:
        """The group is no longer coordinated here."""
        for member in group.members.values():
            self.end(member)
        for member_id in group.pending_members:
            self.came(group, member_id)
