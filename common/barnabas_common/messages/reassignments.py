"""AlterPartitionReassignments and ListPartitionReassignments (KIP-455): replicas move to other
brokers (service Admin). Only the controller answers; other brokers return
NOT_CONTROLLER.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class ReassignPartition:
    """The target of a partition: the brokers of its replicas, the preferred leader first; with
    `cancel`, the brokers it was on."""

    topic: str
    partition: int
    replicas: list[int] = field(default_factory=list)
    cancel: bool = False


@dataclass(slots=True)
class AlterPartitionReassignmentsRequest:
    """Answered when the reassignments have started, not when they are done."""

    partitions: list[ReassignPartition] = field(default_factory=list)


@dataclass(slots=True)
class ReassignmentResult:
    topic: str
    partition: int
    error_code: int = 0
    error_message: str = ""


@dataclass(slots=True)
class AlterPartitionReassignmentsResponse:
    """`error_code` is about the whole request."""

    error_code: int = 0
    error_message: str = ""
    partitions: list[ReassignmentResult] = field(default_factory=list)


@dataclass(slots=True)
class PartitionName:
    topic: str
    partition: int


@dataclass(slots=True)
class ListPartitionReassignmentsRequest:
    """The partitions named, or all that are being reassigned."""

    all: bool = False
    partitions: list[PartitionName] = field(default_factory=list)


@dataclass(slots=True)
class OngoingReassignment:
    """`replicas` are all present ones, including those being added and those being removed."""

    topic: str
    partition: int
    replicas: list[int] = field(default_factory=list)
    adding_replicas: list[int] = field(default_factory=list)
    removing_replicas: list[int] = field(default_factory=list)


@dataclass(slots=True)
class ListPartitionReassignmentsResponse:
    error_code: int = 0
    partitions: list[OngoingReassignment] = field(default_factory=list)
