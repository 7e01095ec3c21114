"""The decisions that an election can end with."""

from dataclasses import dataclass

from barnabas_controller.store.leader_and_isr import NO_LEADER, LeaderAndIsr


@dataclass(frozen=True)
class Elected:
    """The state to write, the brokers to notify, and the reason.

    The write expects the state's `partition_epoch` in ZooKeeper. `from_outdated` says that the
    replaced state is older than what the replicas hold: what it says about them is over. `proved`
    are members of the ISR whose logs have just been shown to be complete.
    """

    state: LeaderAndIsr
    recipients: tuple[int, ...]
    reason: str
    from_outdated: bool = False
    proved: tuple[int, ...] = ()


@dataclass(frozen=True)
class Refused:
    """No candidate may lead; nothing changes.

    `awaits` are replicas that may turn out to be better candidates within a limited time.
    `otherwise` is the replica that leads after that time, NO_LEADER if none is known. `queries` are
    replicas whose logs must be known first. `cause` is what triggered the election; it is empty
    where `why` says enough.
    """

    why: str
    awaits: tuple[int, ...] = ()
    cause: str = ""
    otherwise: int = NO_LEADER
    queries: tuple[int, ...] = ()

    @property
    def reason(self) -> str:
        """For humans: `cause`, if there is one, and `why`."""
        return f"{self.cause}; {self.why}" if self.cause else self.why


@dataclass(frozen=True)
class Unchanged:
    """Nothing needs to be written: the state is as wanted, or no change is possible."""

    reason: str


Decision = Elected | Refused | Unchanged
