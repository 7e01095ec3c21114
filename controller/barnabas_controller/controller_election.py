"""Who is controller: the broker whose session owns `/controller`.

Winning is one multi: create `/controller` and raise the number in `/controller_epoch`, so that
there is never a controller without an epoch of its own.
"""

import logging
from typing import NamedTuple

from barnabas_controller import znodes
from barnabas_controller.errors import ControllerMoved, MalformedZnode
from barnabas_controller.fenced_store import ControllerEpoch
from barnabas_controller.retrying import until_answered
from barnabas_controller.store import Store
from barnabas_controller.zookeeper.session import (
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    Operation,
    SetData,
    Stat,
    Watch,
    ZooKeeperError,
)

logger = logging.getLogger(__name__)


class Incumbent(NamedTuple):
    """Whose `/controller` is, and which one it is: every election creates another znode."""

    broker_id: int
    session_id: int
    czxid: int


async def current_controller(store: Store, watch: Watch | None = None) -> Incumbent | None:
    """Who is controller; None without one. The watch is armed always.

    Ownership of the ephemeral znode decides, not the id in it. The id of a malformed one is -1.
    """
    if await store.exists(znodes.CONTROLLER, watch) is None:
        return None
    found = await store.get(znodes.CONTROLLER)
    if found is None:
        return None
    data, stat = found
    try:
        broker_id = znodes.decode_controller(data)
    except MalformedZnode as error:
        store.report(error)
        broker_id = -1
    if stat.ephemeral_owner == 0:
        why = "no session holds it: no controller wrote it, and nobody is elected while it is there"
        store.report(MalformedZnode(znodes.CONTROLLER, why))
    return Incumbent(broker_id, stat.ephemeral_owner, stat.czxid)


async def broker_of(store: Store, incumbent: Incumbent) -> znodes.Broker | None:
    """The controller's registration; None if it has none of the same session."""
    found = await store.get(znodes.broker_path(incumbent.broker_id))
    if found is None or found[1].ephemeral_owner != incumbent.session_id:
        return None
    try:
        return znodes.decode_broker(incumbent.broker_id, found[0], found[1].czxid)
    except MalformedZnode as error:
        store.report(error)
        return None


async def depose(store: Store, incumbent: Incumbent) -> bool:
    """Delete the `/controller` of a controller that is dead; False if it is gone already.

    The epoch is read before the znode is seen to be still the incumbent's, and nobody can be
    elected while it is there: so this is the epoch of its election, and the multi, which checks
    it, cannot hit a successor's znode.
    """
    epoch = await store.exists(znodes.CONTROLLER_EPOCH)
    stat = await store.exists(znodes.CONTROLLER)
    if epoch is None or stat is None or stat.czxid != incumbent.czxid:
        return False
    operations: list[Operation] = [
        Check(znodes.CONTROLLER_EPOCH, epoch.version),
        Delete(znodes.CONTROLLER, stat.version),
    ]
    results = await until_answered(lambda: store.session.multi(operations))
    return not any(isinstance(result, ZooKeeperError) for result in results)


async def elect(
    store: Store, broker_id: int, now_ms: int, highest_epoch: int = 0
) -> ControllerEpoch:
    """Become controller; raises ControllerMoved if another broker was faster.

    The new epoch follows the one in `/controller_epoch`, and `highest_epoch`, the highest this
    broker has obeyed: a znode that somebody set back would have every broker refuse the controller.
    Raises MalformedZnode when `/controller_epoch` is no number: no epoch can follow it.
    """
    epoch, version = await _read_epoch(store)
    epoch = max(epoch, highest_epoch)
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


async def watch_epoch(store: Store, watch: Watch) -> bool:
    """Have `watch` called when `/controller_epoch` changes; whether it can be understood now."""
    await store.exists(znodes.CONTROLLER_EPOCH, watch)
    try:
        await _read_epoch(store)
    except MalformedZnode:
        return False
    return True


async def _won_unheard(store: Store, epoch: int) -> ControllerEpoch:
    """Whether the election was won by an attempt whose answer was lost."""
    controller = await current_controller(store)
    if controller is not None and controller.session_id == store.session.session_id:
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
