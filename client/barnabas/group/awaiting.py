"""Which members a rebalance waits for, in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from barnabas_common.messages.groups import AwaitedMember, DescribedGroup


@dataclass(frozen=True)
class Awaiting:
    """What a group waits for; `state` is the group's.

    `seconds`: for how much longer at most; None: it waits for no member. Without `members` it is in
    its initial delay, and waits for more of them.
    """

    state: str
    members: Sequence[AwaitedMember] = ()
    seconds: float | None = None

    def later(self, seconds: float) -> "Awaiting":
        """The same some seconds later, if no heartbeat has come since."""
        if self.seconds is None:
            return self
        members = [
            replace(m, session_left_ms=max(m.session_left_ms - round(seconds * 1000), 0))
            for m in self.members
        ]
        return Awaiting(self.state, members, max(self.seconds - seconds, 0.0))


def awaiting_of(group: DescribedGroup) -> Awaiting:
    seconds = None if group.wait_left_ms < 0 else group.wait_left_ms / 1000
    return Awaiting(group.group_state, tuple(group.awaited), seconds)


def name_of(member: AwaitedMember) -> str:
    """The member as people find it: its id, its client, its host, its instance."""
    client = [f"client {member.client_id or '-'}", f"host {member.client_host or '-'}"]
    if member.group_instance_id:
        client.append(f"instance {member.group_instance_id}")
    return f"{member.member_id} ({', '.join(client)})"


def in_words(awaiting: Awaiting) -> Iterator[str]:
    """Sentences without a subject; none if the group waits for no member."""
    if awaiting.seconds is None:
        return
    at_most = f"at most {awaiting.seconds:.0f} s more"
    joins = awaiting.state == "PreparingRebalance"
    if joins and not awaiting.members:
        yield f"waits {at_most} for other members to join (group.initial.rebalance.delay.ms)"
    for member in awaiting.members:
        what = "to join" if joins else "to ask for its assignment"
        left = f"it is removed in {member.session_left_ms / 1000:.0f} s unless it sends a heartbeat"
        yield f"waits {at_most} for {name_of(member)} {what}; {left}"
