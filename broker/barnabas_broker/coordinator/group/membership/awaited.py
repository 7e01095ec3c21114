"""Which members a rebalance waits for, and for how long. No decision depends on it."""

from typing import NamedTuple

from barnabas_common.messages.groups import AwaitedMember

from barnabas_broker.coordinator.group.group import Group
from barnabas_broker.coordinator.group.member import Member
from barnabas_broker.coordinator.group.membership.rebalance import Rebalances
from barnabas_broker.coordinator.group.states import GroupState

NOT_WAITING_MS = -1


class Awaited(NamedTuple):
    """`left_ms` is -1 if the group waits for no member.

    Without members it waits for more of them: it is in its initial delay.
    """

    members: list[AwaitedMember]
    left_ms: int


def awaited(group: Group, rebalances: Rebalances, now: float) -> Awaited:
    """In the order in which the members joined; those that were only given an id come last."""
    until = rebalances.deadline(group)
    if until is None:
        return Awaited([], NOT_WAITING_MS)
    if group.state is not GroupState.PREPARING_REBALANCE:
        late = [m for m in group.members.values() if m.member_id in group.pending_sync_members]
        return Awaited([_member(member, now) for member in late], _ms(until - now))
    members = []
    if not rebalances.is_initial(group):
        members = [_member(member, now) for member in group.not_yet_rejoined]
        members += [_expected(group, rebalances, m, now) for m in sorted(group.pending_members)]
    return Awaited(members, _ms(until - now))


def _member(member: Member, now: float) -> AwaitedMember:
    return AwaitedMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        _ms(member.expires_at - now),
    )


def _expected(group: Group, rebalances: Rebalances, member_id: str, now: float) -> AwaitedMember:
    client = rebalances.sessions.expected(group, member_id)
    left_ms = _ms(client.until - now)
    return AwaitedMember(member_id, "", client.client_id, client.client_host, left_ms)


def _ms(seconds: float) -> int:
    return max(round(seconds * 1000), 0)
