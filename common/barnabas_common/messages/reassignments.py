"""AlterPartitionReassignments and ListPartitionReassignments (KIP-455): replicas move to other
brokers (service Admin). Only the controller handles them; other brokers return NOT_CONTROLLER.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class ReassignPartition:
    """The target of a partition: the brokers of its replicas, the preferred leader first.

    With `cancel` the partition returns to its original brokers.
    """

    topic: str
    partition: int
    replicas: list[int] = field(default_factory=list)
    cancel: bool = False


@dataclass(slots=True)
class AlterPartitionReassignmentsRequest:
    """Starts or cancels reassignments; the response is sent when they have started."""

    partitions: list[ReassignPartition] = field(default_factory=list)


@dataclass(slots=True)
class ReassignmentResult:
    topic: str
    partition: int
    error_code: int = 0
    error_message: str = ""


@dataclass(slots=True)
class AlterPartitionReassignmentsResponse:
    """The outcome for each partition; `error_code` is about the whole request."""

    error_code: int = 0
    error_message: str = ""
    partitions: list[ReassignmentResult] = field(default_factory=list)


@dataclass(slots=True)
class PartitionName:
    topic: str
    partition: int


@dataclass(slots=True)
class ListPartitionReassignmentsRequest:
    """Requests the reassignments of the named partitions or, with `all`, of all partitions."""

    all: bool = False
    partitions: list[PartitionName] = field(default_factory=list)


@dataclass(slots=True)
class OngoingReassignment:
    """A reassignment in progress; `replicas` includes those being added and being removed."""

    topic: str
    partition: int
    replicas: list[int] = field(default_factory=list)
    adding_replicas: list[int] = field(default_factory=list)
    removing_replicas: list[int] = field(default_factory=list)


@dataclass(slots=True)
class ListPartitionReassignmentsResponse:
    error_code: int = 0
    partitions: list[OngoingReassignment] = field(default_factory=list)
