"""One member of a group, as its coordinator knows it."""

from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Protocol

from barnabas_common.messages.groups import JoinGroupResponse, SyncGroupResponse

Protocols = tuple[tuple[str, bytes], ...]
"""Names and metadata, the member's preference first."""

AnswerJoin = Callable[[JoinGroupResponse], None]
AnswerSync = Callable[[SyncGroupResponse], None]


class Timer(Protocol):
    """What `call_later` returns."""

    def cancel(self) -> None: ...


@dataclass(slots=True)
class Member:
    """`group_instance_id` is empty for a dynamic member.

    `answer_join` and `answer_sync` are set while the member waits for that answer. `is_new`: it has
    not yet learned its member id from a JoinGroup that completed. `expires_at` is when its session
    ends, in seconds of the coordinator's clock; `timer` looks at it at `timer_at`.
    """

    member_id: str
    group_instance_id: str
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    answer_join: AnswerJoin | None = None
    answer_sync: AnswerSync | None = None
    expires_at: float = 0.0
    timer: Timer | None = None
    timer_at: float = 0.0

    @property
    def is_static(self) -> bool:
        return self.group_instance_id != ""

    @property
    def waits(self) -> bool:
        """Whether it waits for its coordinator, so that it cannot be expected to heartbeat."""
        return self.answer_join is not None or self.answer_sync is not None

    def vote(self, candidates: Container[str]) -> str:
        """The first protocol of its own list that is a candidate."""
        return next(name for name, _ in self.protocols if name in candidates)

    def metadata(self, protocol: str | None) -> bytes:
        """What it told the leader under this protocol; empty if it did not name it."""
        return next((data for name, data in self.protocols if name == protocol), b"")

    def joined(self, response: JoinGroupResponse) -> None:
        """Answer its JoinGroup, if one waits."""
        answer, self.answer_join = self.answer_join, None
        if answer is not None:
            answer(response)

    def synced(self, response: SyncGroupResponse) -> bool:
        """Answer its SyncGroup; False if none waits."""
        answer, self.answer_sync = self.answer_sync, None
        if answer is not None:
            answer(response)
        return answer is not None
