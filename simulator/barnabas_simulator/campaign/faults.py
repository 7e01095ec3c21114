"""The faults of a run as plain data: when, what, whom, how long.

Each is complete in itself, its end included, so that any of them may be left out of a list.
"""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class FaultKind(StrEnum):
    """Sorted by what is hit. `seconds` is how long it lasts, or until a dead broker is started."""

    # a process or its machine
    KILL = "kill"
    KILL_ALL = "kill-all"
    STOP = "stop"
    PAUSE = "pause"
    LOSE_POWER = "lose-power"
    WIPE = "wipe"

    SKEW = "skew"  # its wall clock jumps, and back at the end
    KILL_CLIENT = "kill-client"  # a producer, in the middle of whatever it sends

    # the network; `other` is the second broker where there is one
    CUT = "cut"  # one way
    PART = "part"  # both ways
    ISOLATE = "isolate"  # from all other brokers; ZooKeeper and clients stay in reach
    RING = "ring"  # each broker reaches its neighbours only: majorities that overlap
    UNPLUG = "unplug"  # from everything
    CUT_CLIENTS = "cut-clients"
    RESET = "reset"
    REJECT = "reject"  # a firewall resets and refuses what other brokers open to it: as if dead
    LOSE_ANSWER = "lose-answer"  # the next frame to a client: a request applied, its answer lost
    FLAKY = "flaky"  # some frames break their connection
    SLOW = "slow"

    # the disk
    FAIL_WRITE = "fail-write"
    FAIL_FLUSH = "fail-flush"
    DISK_FULL = "disk-full"
    SPOIL_CHECKPOINT = "spoil-checkpoint"  # somebody writes into one while its broker is down
    LOSE_FOLDER = "lose-folder"  # somebody removes that of a partition while its broker is down

    # ZooKeeper
    EXPIRE = "expire"
    PART_ZOOKEEPER = "part-zookeeper"
    LOSE_ZOOKEEPER_REQUEST = "lose-zookeeper-request"
    LOSE_ZOOKEEPER_ANSWER = "lose-zookeeper-answer"
    ZOOKEEPER_DOWN = "zookeeper-down"
    SPOIL_SETTINGS = "spoil-settings"  # of all brokers, by somebody's editor


@dataclass(frozen=True)
class Fault:
    """`at`: virtual seconds after the chaos began. `target`: a broker's id, "leader" (of the
    first partition), "follower" or "controller", looked up when it strikes; or a producer."""

    at: float
    kind: FaultKind
    target: str = ""
    other: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        words = [self.kind, self.target, self.other, f"for {self.seconds:g} s" * bool(self.seconds)]
        return " ".join(word for word in words if word)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> "Fault":
        return cls(**{**plain, "kind": FaultKind(plain["kind"])})
