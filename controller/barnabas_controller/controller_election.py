"""Elections of the controller: the broker whose session owns `/controller`.

One multi creates `/controller` and raises the number in `/controller_epoch`, so that every
controller has its own epoch.
"""

from typing import NamedTuple

from barnabas_controller.errors import ControllerMoved, MalformedZnode
from barnabas_controller.store import znodes
from barnabas_controller.store.fenced_store import ControllerEpoch
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.requests import until_answered
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


class ControllerZnode(NamedTuple):
    """The owner of `/controller`, and the znode's czxid, which differs for every election."""

    broker_id: int
    session_id: int
    czxid: int


async def current_controller(store: Store, watch: Watch | None = None) -> ControllerZnode | None:
    """The present controller, or None. The watch is always armed.

    The session that owns the ephemeral znode identifies the controller; the broker id in the data
    does not. The id is -1 if the data are malformed.
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
        why = "it is not ephemeral: no controller wrote it, and none is elected while it exists"
        store.report(MalformedZnode(znodes.CONTROLLER, why))
    return ControllerZnode(broker_id, stat.ephemeral_owner, stat.czxid)


async def broker_of(store: Store, controller_znode: ControllerZnode) -> znodes.Broker | None:
    """The controller's registration; None if it is malformed or belongs to another session."""
    found = await store.get(znodes.broker_path(controller_znode.broker_id))
    if found is None or found[1].ephemeral_owner != controller_znode.session_id:
        return None
    try:
        return znodes.decode_broker(controller_znode.broker_id, found[0], found[1].czxid)
    except MalformedZnode as error:
        store.report(error)
        return None


async def depose(store: Store, controller_znode: ControllerZnode) -> bool:
    """Delete the `/controller` of this controller and no other; False if that was not possible.

    The epoch is read before the znode is compared. No broker can be elected while the znode exists,
    so the epoch that was read is that of this controller. The multi checks it, and so cannot delete
    the znode of a later controller, also if a ZooKeeper server that is behind was read. A missing
    epoch is created instead: that fails too after another election.
    """
    epoch = await store.exists(znodes.CONTROLLER_EPOCH)
    stat = await store.exists(znodes.CONTROLLER)
    if stat is None or stat.czxid != controller_znode.czxid:
        return False
    operations: list[Operation] = [
        Create(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(0))
        if epoch is None
        else Check(znodes.CONTROLLER_EPOCH, epoch.version),
        Delete(znodes.CONTROLLER, stat.version),
    ]
    results = await until_answered(lambda: store.session.multi(operations))
    return not any(isinstance(result, ZooKeeperError) for result in results)


async def elect(
    store: Store, broker_id: int, now_ms: int, highest_epoch: int = 0
) -> ControllerEpoch:
    """Become controller; raises ControllerMoved if another broker was faster.

    The new epoch exceeds the one in `/controller_epoch`, the version of that znode, and
    `highest_epoch`, the highest that this broker has accepted. The number may have been lowered by
    hand. Then all brokers that know a higher one would refuse the controller's requests, and states
    that were written under one would be invalid. Each election writes the znode once, so there have
    not been more than its version says. Raises MalformedZnode if `/controller_epoch` is not a
    number.
    """
    number, version = await _read_epoch(store)
    epoch = max(number, version, highest_epoch)
    operations: list[Operation] = [
        Create(znodes.CONTROLLER, znodes.encode_controller(broker_id, now_ms), ephemeral=True),
        SetData(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(epoch + 1), version),
    ]
    created, raised = await until_answered(lambda: store.session.multi(operations))
    if isinstance(raised, Stat):
        return ControllerEpoch(epoch + 1, raised.version)
    if isinstance(created, NodeExists) or isinstance(raised, BadVersion):
        return await _won_without_answer(store, epoch + 1)
    for result in (created, raised):
        if isinstance(result, ZooKeeperError):
            raise result
    raise ZooKeeperError(f"{znodes.CONTROLLER}: the election had no result")


async def watch_epoch(store: Store, watch: Watch) -> bool:
    """Arm a watch on `/controller_epoch`; return whether it is a valid number now."""
    await store.exists(znodes.CONTROLLER_EPOCH, watch)
    try:
        await _read_epoch(store)
    except MalformedZnode:
        return False
    return True


async def _won_without_answer(store: Store, epoch: int) -> ControllerEpoch:
    """The epoch, if an attempt whose answer was lost has won; otherwise raises ControllerMoved."""
    controller = await current_controller(store)
    if controller is not None and controller.session_id == store.session.session_id:
        number, version = await _read_epoch(store)
        if number == epoch:
            return ControllerEpoch(number, version)
    raise ControllerMoved(f"another broker won epoch {epoch}: {controller}")


async def _read_epoch(store: Store) -> tuple[int, int]:
    """The number in `/controller_epoch` and the znode's version; a missing znode is created."""
    while True:
        found = await store.get(znodes.CONTROLLER_EPOCH)
        if found is not None:
            return znodes.decode_controller_epoch(found[0]), found[1].version
        await store.ensure(znodes.CONTROLLER_EPOCH, znodes.encode_controller_epoch(0))
