"""What an election decides."""

from dataclasses import dataclass

from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr


@dataclass(frozen=True)
class Elected:
    """The state to write on top of its `partition_epoch`, the brokers to notify, and the reason."""

    state: LeaderAndIsr
    recipients: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Refused:
    """No candidate may lead; nothing changes.

    `awaits` are replicas that may turn out to be better candidates within a limited time.
    `otherwise` is the replica that leads after that time. `cause` is what triggered the election,
    if that adds to `why` it failed.
    """

    why: str
    awaits: tuple[int, ...] = ()
    cause: str = ""
    otherwise: int = NO_LEADER

    @property
    def reason(self) -> str:
        return f"{self.cause}; {self.why}" if self.cause else self.why


@dataclass(frozen=True)
class Unchanged:
    """The state is already as wanted."""

    reason: str


Decision = Elected | Refused | Unchanged
