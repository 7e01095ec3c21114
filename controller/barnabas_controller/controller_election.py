"""Who is controller: the broker whose session owns `/controller`.

Winning is one multi: create `/controller` and raise the number in `/controller_epoch`, so that
there is never a controller without an epoch of its own.
"""

import logging

from barnabas_controller import znodes
from barnabas_controller.errors import ControllerMoved, MalformedZnode
from barnabas_controller.fenced_store import ControllerEpoch
from barnabas_controller.retrying import until_answered
from barnabas_controller.store import Store
from barnabas_controller.zookeeper.session import (
    BadVersion,
    Create,
    NodeExists,
    Operation,
    SetData,
    Stat,
    Watch,
    ZooKeeperError,
)

logger = logging.getLogger(__name__)


async def current_controller(store: Store, watch: Watch | None = None) -> tuple[int, bool] | None:
    """Its broker id, and whether it is this session; None without one. The watch is armed always.

    Ownership of the ephemeral znode decides, not the id in it. The id of a malformed one is -1.
    """
    if await store.exists(znodes.CONTROLLER, watch) is None:
        return None
    found = await store.get(znodes.CONTROLLER)
    if found is None:
        return None
    data, stat = found
    mine = stat.ephemeral_owner == store.session.session_id
    try:
        return znodes.decode_controller(data), mine
    except MalformedZnode as error:
        logger.error("the controller cannot be known: %s", error)
        return -1, mine


async def elect(store: Store, broker_id: int, now_ms: int) -> ControllerEpoch:
    """Become controller; raises ControllerMoved if another broker was faster.

    Raises MalformedZnode when `/controller_epoch` is no number: no epoch can follow it.
    """
    epoch, version = await _read_epoch(store)
    operations: list[Operation] = [
        Create(znodes.CONTROLLER, znodes.encode_controller(broker_id, now_ms), ephemeral=True),
        SetData(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(epoch + 1), version),
    ]
    created, raised = await until_answered(lambda: store.session.multi(operations))
    if isinstance(raised, Stat):
        return ControllerEpoch(epoch + 1, raised.version)
    if isinstance(created, NodeExists) or isinstance(raised, BadVersion):
        return await _won_unheard(store, epoch + 1)
    for result in (created, raised):
        if isinstance(result, ZooKeeperError):
            raise result
    raise ZooKeeperError(f"{znodes.CONTROLLER}: the election had no result")


async def _won_unheard(store: Store, epoch: int) -> ControllerEpoch:
    """Whether the election was won by an attempt whose answer was lost."""
    controller = await current_controller(store)
    if controller is not None and controller[1]:
        number, version = await _read_epoch(store)
        if number == epoch:
            return ControllerEpoch(number, version)
    raise ControllerMoved(f"another broker won epoch {epoch}: {controller}")


async def _read_epoch(store: Store) -> tuple[int, int]:
    """The number in `/controller_epoch` and the znode's version; created with 0 where missing."""
    while True:
        found = await store.get(znodes.CONTROLLER_EPOCH)
        if found is not None:
            return znodes.decode_controller_epoch(found[0]), found[1].version
        await store.ensure(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(0))
