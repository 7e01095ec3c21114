"""Registers a broker: `/brokers/ids/<id>`, ephemeral; its czxid is the broker epoch.

Every broker registers when it starts, and again in every new session. One multi creates the znode
and sets its data, because ZooKeeper returns the czxid only when data are set.
"""

import asyncio
import logging
from contextlib import suppress

from barnabas_common.runtime import Randomness, new_uuid

from barnabas_controller.errors import DuplicateBrokerId, EndpointTaken
from barnabas_controller.store import znodes
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.requests import until_answered
from barnabas_controller.zookeeper.session import (
    Create,
    Delete,
    NodeExists,
    Operation,
    SetData,
    Stat,
    WatchEvent,
    ZooKeeperError,
)

logger = logging.getLogger(__name__)


async def register_broker(
    store: Store,
    broker: znodes.Broker,
    now_ms: int,
    previous_session_id: int = 0,
    wait_seconds: float = 0.0,
) -> int:
    """Register and return the broker epoch.

    A znode of `previous_session_id`, this broker's earlier session (0 if there is none), is
    replaced. If the znode belongs to another session, waits up to `wait_seconds`, because that may
    be the previous process's session, which will expire. Raises DuplicateBrokerId if the znode
    stays, and EndpointTaken if another registered broker advertises one of this broker's addresses.
    """
    await _check_endpoints(store, broker)
    waiting_ends = asyncio.get_running_loop().time() + wait_seconds
    while True:
        epoch = await _try_register(store, broker, now_ms, previous_session_id)
        if epoch is not None:
            logger.info("broker %d registered, epoch %d", broker.broker_id, epoch)
            return epoch
        if asyncio.get_running_loop().time() >= waiting_ends:
            raise _duplicate(broker)
        # Only this wait has a limit: a process that was paused must not stop waiting for an answer
        # that is about to come, and after the wait it looks once more.
        with suppress(TimeoutError):
            async with asyncio.timeout_at(waiting_ends):
                await _until_deleted(store, znodes.broker_path(broker.broker_id))


async def reregister(store: Store, broker: znodes.Broker, now_ms: int) -> int:
    """Replace this session's registration by another one; return the new broker epoch.

    A running broker calls this when it learns that the controller suspects it, because only a new
    broker epoch ends the suspicion. One multi deletes and creates the znode, so that the broker
    never appears unregistered. Raises DuplicateBrokerId if the znode belongs to another session.
    """
    path = znodes.broker_path(broker.broker_id)
    found = await store.get(path)
    operations = _creation(broker, now_ms)
    if found is not None:
        if found[1].ephemeral_owner != store.session.session_id:
            raise _duplicate(broker)
        operations.insert(0, Delete(path, found[1].version))
    *_, written = await until_answered(lambda: store.session.multi(operations))
    if isinstance(written, Stat):
        logger.info("broker %d registered again, epoch %d", broker.broker_id, written.czxid)
        return written.czxid
    # An attempt whose answer was lost was applied, or another process changed the znode.
    return await reregister(store, broker, now_ms)


def _creation(broker: znodes.Broker, now_ms: int) -> list[Operation]:
    path = znodes.broker_path(broker.broker_id)
    data = znodes.encode_broker(broker, now_ms)
    return [Create(path, ephemeral=True), SetData(path, data, 0)]


def _duplicate(broker: znodes.Broker) -> DuplicateBrokerId:
    return DuplicateBrokerId(
        f"a broker with id {broker.broker_id} is already registered in ZooKeeper "
        f"({znodes.broker_path(broker.broker_id)}) by another open session"
    )


async def _try_register(
    store: Store, broker: znodes.Broker, now_ms: int, previous_session_id: int
) -> int | None:
    """The epoch, or None if the znode belongs to another session."""
    path = znodes.broker_path(broker.broker_id)
    operations = _creation(broker, now_ms)
    while True:
        created, written = await until_answered(lambda: store.session.multi(operations))
        if isinstance(written, Stat):
            return written.czxid
        if not isinstance(created, NodeExists):
            raise created if isinstance(created, ZooKeeperError) else ZooKeeperError(path)
        found = await store.get(path)
        if found is None:
            continue  # deleted in the meantime
        owner = found[1].ephemeral_owner
        if owner == store.session.session_id:
            return found[1].czxid  # this session's: the first answer was lost
        if owner != previous_session_id or owner == 0:
            return None
        logger.info("removing %s, left by this broker's earlier session %#x", path, owner)
        await store.remove(path)


async def _until_deleted(store: Store, path: str) -> None:
    """Return when the znode has been changed or deleted, or does not exist."""
    changed = asyncio.Event()

    def watch(_: WatchEvent) -> None:
        changed.set()

    if await store.exists(path, watch) is not None:
        logger.info("waiting for %s to expire", path)
        await changed.wait()


async def _check_endpoints(store: Store, broker: znodes.Broker) -> None:
    """Raise EndpointTaken if another registered broker advertises one of the addresses."""
    others = await store.brokers()
    for other in others.values():
        if other.broker_id == broker.broker_id:
            continue
        taken = {endpoint.address for endpoint in other.endpoints}
        for endpoint in broker.endpoints:
            if endpoint.address in taken:
                raise EndpointTaken(
                    f"broker {other.broker_id} is registered with {endpoint.address} already, "
                    f"which broker {broker.broker_id} is to advertise"
                )


async def ensure_cluster_id(store: Store, randomness: Randomness) -> str:
    """The cluster's id, which the first broker of a cluster generates.

    Raises MalformedZnode if `/cluster/id` is malformed.
    """
    while True:
        found = await store.get(znodes.CLUSTER_ID)
        if found is not None:
            return znodes.decode_cluster_id(found[0])
        await store.ensure(znodes.CLUSTER_ID, znodes.encode_cluster_id(new_uuid(randomness)))
