"""The operations of a run: what clients asked for, and what they were told.

An operation that changes something is two entries with the same client, incarnation and number:
`INVOKE` before anything is sent, and later `OK` (it happened), `FAIL` (it certainly did not) or
`INFO` (unknown). A client that is killed leaves its `INVOKE` alone, which means unknown too. What
only reads is one entry, written when the answer is there.

Partitions are named as their folders are, `orders-3`. A value is unique in its partition.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

Records = dict[str, list[tuple[int, str]]]
"""By partition: offsets and values, in the order in which they were returned."""

UNKNOWN = -1


class Stage(StrEnum):
    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """`time` is monotonic, in ns, and the same for all clients of a run.

    `incarnation` counts the processes that a client has been, from 1.
    """

    function: ClassVar[str]
    answers_later: ClassVar[bool] = False

    time: int
    client: str
    incarnation: int = 1
    number: int = 0
    stage: Stage = Stage.OK
    error: str = ""

    @property
    def process(self) -> str:
        return f"{self.client}/{self.incarnation}"

    @property
    def name(self) -> str:
        """How findings name it: client, incarnation and number."""
        return f"{self.client}/{self.incarnation}#{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Send(Operation):
    """One record. `offset` is known once it is acknowledged, and stays unknown with acks=0."""

    function = "send"
    answers_later = True

    partition: str
    value: str
    offset: int = UNKNOWN
    transaction: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll(Operation):
    """`read_committed`: the isolation level. `transaction`: the one that the poll is a part of."""

    function = "poll"

    records: Records
    group: str = ""
    read_committed: bool = False
    transaction: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assign(Operation):
    """From now on a consumer has these partitions, each at a new position: also after a seek."""

    function = "assign"

    partitions: list[str]
    group: str = ""
    generation: int = UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoke(Operation):
    """Partitions that a member of a group has no more; `lost` without its consent."""

    function = "revoke"

    partitions: list[str]
    group: str = ""
    generation: int = UNKNOWN
    lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Operation):
    """Offsets of a group, stored at once, or with a transaction when that commits."""

    function = "commit"
    answers_later = True

    group: str
    offsets: dict[str, int]
    generation: int = UNKNOWN
    transaction: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed(Operation):
    """What a group has committed, as its coordinator says. Invoked, because commits may overlap."""

    function = "committed"
    answers_later = True

    group: str
    offsets: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class End(Operation):
    """The end of a transaction: `OK` if it came to the outcome that was asked for.

    `epoch`: of the producer. The name of a transaction is unique in a history.
    """

    function = "end"
    answers_later = True

    transaction: str
    commit: bool
    epoch: int = UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalRead(Operation):
    """A part of the reading at the end, from the beginning of each partition.

    `bounds`: partitions now read completely, from their first offset to their high watermark.
    """

    function = "final-read"

    records: Records = field(default_factory=dict)
    read_committed: bool = False
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(Operation):
    """A fault that is injected (`INVOKE`) and healed; nothing is judged by it, it is reported."""

    function = "fault"
    answers_later = True

    fault: str
    target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState(Operation):
    """Leader and ISR of a partition, as an observer was told; reported, not judged."""

    function = "state"

    partition: str
    leader: int
    leader_epoch: int = UNKNOWN
    in_sync_replicas: list[int] = field(default_factory=list)


KINDS: dict[str, type[Operation]] = {
    kind.function: kind
    for kind in (
        Send,
        Poll,
        Assign,
        Revoke,
        Commit,
        Committed,
        End,
        FinalRead,
        Fault,
        PartitionState,
    )
}
