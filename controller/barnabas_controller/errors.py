"""What can go wrong in control, beyond Kafka's error codes and ZooKeeper's own answers."""

from barnabas.errors import BarnabasError


class ControllerMoved(BarnabasError):
    """Another broker has been elected controller: nothing of this write was applied."""


class MalformedZnode(BarnabasError, ValueError):
    """A znode holds something that cannot be understood; the message names the path and why."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"{path}: {why}")


class DuplicateBrokerId(BarnabasError):
    """`/brokers/ids/<id>` belongs to another living session."""


class EndpointTaken(BarnabasError):
    """Another registered broker advertises the same host and port."""
