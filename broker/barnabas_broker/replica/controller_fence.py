"""Who may command this broker: the newest controller, speaking to this life of the broker."""

import logging
from collections.abc import Callable
from typing import Protocol

from barnabas.error_code import ErrorCode
from barnabas.events import EventKind, EventLog

logger = logging.getLogger(__name__)

ANY_EPOCH = -1


class ControlRequest(Protocol):
    """What every command of a controller carries."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int


def is_for_an_earlier_life(broker_epoch: int, own: int) -> bool:
    """Whether an order was meant for the process before this one (KIP-380)."""
    return broker_epoch != ANY_EPOCH and broker_epoch < own


def is_of_an_older_controller(controller_epoch: int, newest: int) -> bool:
    """Whether another controller has been elected since the one that sent an order."""
    return controller_epoch < newest


class ControllerFence:
    """Remembers the highest controller epoch seen; `broker_epoch` is this broker's own."""

    def __init__(self, broker_epoch: Callable[[], int], events: EventLog | None = None) -> None:
        self._broker_epoch = broker_epoch
        self._events = events if events is not None else EventLog()
        self.controller_epoch = 0

    def check(self, request: ControlRequest) -> ErrorCode:
        """NONE, and the sender is the controller from now on; or why it is refused.

        A broker epoch above the own is fine: the controller may hear of a registration first.
        """
        name = type(request).__name__
        own = self._broker_epoch()
        if is_for_an_earlier_life(request.broker_epoch, own):
            logger.warning(
                "ignoring %s for broker epoch %d, it is %d now", name, request.broker_epoch, own
            )
            self._report(f"{name} was meant for an earlier life of this broker", request)
            return ErrorCode.STALE_BROKER_EPOCH
        if is_of_an_older_controller(request.controller_epoch, self.controller_epoch):
            logger.warning(
                "ignoring %s of controller %d with epoch %d, %d was seen",
                name,
                request.controller_id,
                request.controller_epoch,
                self.controller_epoch,
            )
            self._report(f"{name} came from a controller that was replaced", request)
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.controller_epoch = request.controller_epoch
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
