"""The faults of a run as plain data: time, kind, target and duration.

Each fault includes its own end, so that any of them may be left out of a list.
"""

import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from barnabas_simulator.campaign.plain_data import from_plain

Undo = Callable[[], None]
"""Ends a fault."""


def nothing() -> None:
    """End a fault that has no duration."""


class FaultKind(StrEnum):
    """Kinds of faults, by target. `seconds` is a fault's duration, or the time until restart."""

    # a process or its machine
    KILL = "kill"
    KILL_ALL = "kill-all"
    STOP = "stop"
    PAUSE = "pause"
    LOSE_POWER = "lose-power"
    POWER_CYCLE = "power-cycle"  # it is back at once, while its old session is still open
    WIPE = "wipe"

    SKEW = "skew"  # its wall clock jumps, and back at the end
    KILL_CLIENT = "kill-client"  # a producer, while it sends

    # a member of a consumer group
    KILL_MEMBER = "kill-member"  # it does not leave
    PAUSE_MEMBER = "pause-member"
    STALL_MEMBER = "stall-member"  # it does not poll, but its heartbeats go on
    LEAVE_GROUP = "leave-group"

    # a transactional producer or a copier
    KILL_TRANSACTIONAL = "kill-transactional"
    PAUSE_TRANSACTIONAL = "pause-transactional"
    ZOMBIE = "zombie"  # paused, another takes over its transactional id, then it goes on

    # the network; `other` is the second broker where there is one
    CUT = "cut"  # one way
    PART = "part"  # both ways
    ISOLATE = "isolate"  # from all other brokers; ZooKeeper and clients stay reachable
    RING = "ring"  # each broker reaches only its neighbours: majorities that overlap
    UNPLUG = "unplug"  # from everything
    CUT_CLIENTS = "cut-clients"
    RESET = "reset"
    REJECT = "reject"  # a firewall resets and refuses other brokers' connections: as if dead
    LOSE_ANSWER = "lose-answer"  # the next frame to a client: request applied, answer lost
    FLAKY = "flaky"  # some frames break their connection
    SLOW = "slow"
    DELAY = "delay"  # one way between two brokers, by more than SLOW
    LATE_FRAMES = "late-frames"  # of connections that the sender has given up; then new ones
    CUT_CONTROLLER = "cut-controller"  # a leader from it; `other`: "to", "from" or "both" ways

    # the disk
    FAIL_WRITE = "fail-write"
    FAIL_FLUSH = "fail-flush"
    DISK_FULL = "disk-full"
    SPOIL_CHECKPOINT = "spoil-checkpoint"  # a checkpoint is overwritten while its broker is down
    LOSE_FOLDER = "lose-folder"  # a partition's folder is removed while its broker is down
    FAIL_DIRECTORY = "fail-directory"  # one of several data directories
    NO_DESCRIPTORS = "no-descriptors"  # nothing can be opened
    EVICT = "evict"  # a flush fails, and the page cache forgets what it did not write
    ROT = "rot"  # a bit of a stored batch changes
    ROT_INDEX = "rot-index"  # a bit of an offset index changes
    ROT_CHECKPOINT = "rot-checkpoint"  # a bit of a checkpoint changes, while its broker is down
    CUT_POWER = "cut-power"  # of all machines at once

    # ZooKeeper
    EXPIRE = "expire"
    PART_ZOOKEEPER = "part-zookeeper"
    LOSE_ZOOKEEPER_REQUEST = "lose-zookeeper-request"
    LOSE_ZOOKEEPER_ANSWER = "lose-zookeeper-answer"
    ZOOKEEPER_DOWN = "zookeeper-down"
    LAG_ZOOKEEPER = "lag-zookeeper"  # a broker's server, `other` seconds behind the ensemble
    DAMAGE_ZNODE = "damage-znode"  # malformed data; `target`: which `Znode`, `other`: whose
    DELETE_ZNODE = "delete-znode"  # of a session that lives
    SET_BACK_EPOCH = "set-back-epoch"  # an older one is written, then a controller elected
    RESTORE_ZOOKEEPER = "restore-zookeeper"  # a copy of `other` seconds ago; then all restart
    SPOIL_SETTINGS = "spoil-settings"  # malformed settings for all brokers


OF_MEMBERS = (
    FaultKind.KILL_MEMBER,
    FaultKind.PAUSE_MEMBER,
    FaultKind.STALL_MEMBER,
    FaultKind.LEAVE_GROUP,
)
OF_TRANSACTIONS = (
    FaultKind.KILL_TRANSACTIONAL,
    FaultKind.PAUSE_TRANSACTIONAL,
    FaultKind.ZOMBIE,
)
OF_CONNECTIONS = (FaultKind.LATE_FRAMES, FaultKind.CUT_CONTROLLER)
OF_SESSIONS = (
    FaultKind.EXPIRE,
    FaultKind.LOSE_ZOOKEEPER_REQUEST,
    FaultKind.LOSE_ZOOKEEPER_ANSWER,
)
OF_ZOOKEEPER = (
    FaultKind.ZOOKEEPER_DOWN,
    FaultKind.SPOIL_SETTINGS,
    FaultKind.LAG_ZOOKEEPER,
    FaultKind.DAMAGE_ZNODE,
    FaultKind.DELETE_ZNODE,
    FaultKind.SET_BACK_EPOCH,
)


class Znode(StrEnum):
    """What faults of znodes damage."""

    REGISTRATION = "registration"  # of a broker
    STATE = "state"  # of a partition
    TOPIC = "topic"
    TOPIC_CONFIG = "topic-config"
    CONTROLLER = "controller"
    CONTROLLER_EPOCH = "controller-epoch"


OF_DISKS = (
    FaultKind.FAIL_DIRECTORY,
    FaultKind.NO_DESCRIPTORS,
    FaultKind.EVICT,
    FaultKind.ROT,
    FaultKind.ROT_INDEX,
    FaultKind.ROT_CHECKPOINT,
    FaultKind.CUT_POWER,
)
"""Drawn by `plans/disks.py`, from a random stream of their own."""
DESTROYING = (
    FaultKind.LOSE_POWER,
    FaultKind.WIPE,
    FaultKind.LOSE_FOLDER,
    FaultKind.EVICT,
    FaultKind.CUT_POWER,
)
"""After these a disk may lack what was written. Steps have `POWER_CYCLE` besides."""


@dataclass(frozen=True)
class Fault:
    """`at`: virtual seconds after the start of the chaos. `target`: a broker id, a producer, a
    member, a transactional client, or "leader" (of the first partition), "follower", "controller",
    "coordinator" (of the first groups) or "transactions" (their first coordinator), resolved at
    that time."""

    at: float
    kind: FaultKind
    target: str = ""
    other: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        words = [self.kind, self.target, self.other, f"for {self.seconds:g} s" * bool(self.seconds)]
        return " ".join(word for word in words if word)

    def chance(self) -> random.Random:
        """Return a random stream of its own; faults of the same words have the same."""
        return random.Random(str(self))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, plain: Any) -> "Fault":
        """Read a fault; raises ValueError."""
        return from_plain(cls, plain)
