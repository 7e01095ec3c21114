"""ElectLeaders (KIP-183, KIP-460): elections on request (service Admin).

Only the controller holds them; other brokers return NOT_CONTROLLER.
"""

from dataclasses import dataclass, field

from barnabas_common.messages.reassignments import PartitionName

PREFERRED = "preferred"
UNCLEAN = "unclean"


@dataclass(slots=True)
class ElectLeadersRequest:
    """Requests elections of the named partitions or, with `all`, of all that need one.

    `election_type` is PREFERRED or UNCLEAN. The response is sent when the brokers have received the
    new leaders, or after `timeout_ms`.
    """

    election_type: str
    all: bool = False
    partitions: list[PartitionName] = field(default_factory=list)
    timeout_ms: int = 30_000


@dataclass(slots=True)
class ElectionResult:
    topic: str
    partition: int
    error_code: int = 0
    error_message: str = ""


@dataclass(slots=True)
class ElectLeadersResponse:
    """The outcome for each partition; `error_code` is about the whole request."""

    error_code: int = 0
    error_message: str = ""
    partitions: list[ElectionResult] = field(default_factory=list)
