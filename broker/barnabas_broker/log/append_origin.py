"""Who appends to a log (Kafka's `AppendOrigin`)."""

from enum import Enum, auto


class AppendOrigin(Enum):
    """Each is trusted with more than the one before it."""

    CLIENT = auto()  # everything is checked
    COORDINATOR = auto()  # may write markers, and batches without a sequence
    REPLICATION = auto()  # the leader has checked it
