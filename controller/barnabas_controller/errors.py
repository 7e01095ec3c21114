"""Errors of the controller, in addition to Kafka's error codes and ZooKeeper's own errors."""

from barnabas_common.errors import BarnabasError


class ControllerMoved(BarnabasError):
    """Another broker has been elected controller; nothing of the write was applied."""


class ControllerEpochBehind(BarnabasError):
    """`/controller_epoch` was set back: a higher epoch than this controller's is in use."""

    def __init__(self, why: str, epoch: int) -> None:
        self.epoch = epoch
        super().__init__(why)


class MalformedZnode(BarnabasError, ValueError):
    """A znode has malformed data; the message names its path and what is wrong."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"{path}: {why}")


class DuplicateBrokerId(BarnabasError):
    """`/brokers/ids/<id>` belongs to another open session."""


class EndpointTaken(BarnabasError):
    """Another registered broker advertises the same host and port."""
