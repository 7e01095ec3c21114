"""The fence against old controllers, late requests, and requests for an earlier incarnation."""

from collections.abc import Callable
from typing import Protocol

from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.events import EventKind, EventLog

ANY_EPOCH = -1


class ControlRequest(Protocol):
    """The fields that every request of a controller has."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    number: int


def is_broker_epoch_stale(broker_epoch: int, own: int) -> bool:
    """Whether a request was meant for an earlier process of this broker (KIP-380)."""
    return broker_epoch != ANY_EPOCH and broker_epoch < own


def is_controller_epoch_stale(controller_epoch: int, newest: int) -> bool:
    """Whether another controller has been elected since the sender of a request."""
    return controller_epoch < newest


def is_late(number: int, newest: int) -> bool:
    """Whether the controller has sent another request since. 0 stands for no number.

    An abandoned connection may deliver what was written to it. Kafka numbers no requests, and takes
    old leaders and brokers from a late UpdateMetadata.
    """
    return 0 < number < newest


class ControllerFence:
    """Keeps the highest controller epoch accepted, and the number of the newest request.

    `broker_epoch` returns this broker's own.
    """

    def __init__(self, broker_epoch: Callable[[], int], events: EventLog | None = None) -> None:
        self._broker_epoch = broker_epoch
        self._events = events if events is not None else EventLog()
        self.controller_epoch = 0
        self._number = 0

    def check(self, request: ControlRequest) -> ErrorCode:
        """Return NONE and accept the sender as controller, or return why it is refused.

        A broker epoch above this broker's own is accepted: the controller may see a registration
        before the broker does.
        """
        name = type(request).__name__
        own = self._broker_epoch()
        if is_broker_epoch_stale(request.broker_epoch, own):
            self._report(f"{name} was meant for an earlier incarnation of this broker", request)
            return ErrorCode.STALE_BROKER_EPOCH
        if is_controller_epoch_stale(request.controller_epoch, self.controller_epoch):
            self._report(f"{name} came from a controller that was replaced", request)
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if request.controller_epoch != self.controller_epoch:
            self._number = 0
        if is_late(request.number, self._number):
            self._report(f"{name} came after one that the controller sent later", request)
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.controller_epoch = request.controller_epoch
        self._number = max(request.number, self._number)
        return ErrorCode.NONE

    def _report(self, cause: str, request: ControlRequest) -> None:
        self._events.record(
            EventKind.REQUEST_FENCED,
            cause,
            controller=request.controller_id,
            controller_epoch=request.controller_epoch,
            newest_controller_epoch=self.controller_epoch,
            meant_for_broker_epoch=request.broker_epoch,
            broker_epoch=self._broker_epoch(),
        )
