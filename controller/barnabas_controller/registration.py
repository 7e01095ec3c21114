"""A broker registers itself: `/brokers/ids/<id>`, ephemeral; its czxid is the broker epoch.

Called by every broker when it starts and with every new session. Creation is a multi of two steps,
create and set, because only setting returns the znode's czxid.
"""

import asyncio
import logging

from barnabas.runtime import Randomness, new_uuid

from barnabas_controller import znodes
from barnabas_controller.errors import DuplicateBrokerId, EndpointTaken
from barnabas_controller.retrying import until_answered
from barnabas_controller.store import Store
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

    A znode left by `previous_session_id`, this broker's own earlier session, is replaced. One of
    another session is waited for as long as `wait_seconds`: it may be a predecessor's, about to
    expire. Raises DuplicateBrokerId if it stays, EndpointTaken if another registered broker
    advertises one of this broker's addresses.
    """
    await _check_endpoints(store, broker)
    try:
        async with asyncio.timeout(wait_seconds if wait_seconds > 0 else None):
            while True:
                epoch = await _try_register(store, broker, now_ms, previous_session_id)
                if epoch is not None:
                    logger.info("broker %d registered, epoch %d", broker.broker_id, epoch)
                    return epoch
                if wait_seconds <= 0:
                    raise _duplicate(broker)
                await _until_gone(store, znodes.broker_path(broker.broker_id))
    except TimeoutError:
        raise _duplicate(broker) from None


async def register_anew(store: Store, broker: znodes.Broker, now_ms: int) -> int:
    """Give up this session's registration for another one; returns the new broker epoch.

    One multi, so that nobody sees the broker absent. For one that lives and learns that the
    controller suspects it: only a new epoch says that this is news. Raises DuplicateBrokerId if the
    znode is another session's.
    """
    path = znodes.broker_path(broker.broker_id)
    found = await store.get(path)
    operations: list[Operation] = [
        Create(path, ephemeral=True),
        SetData(path, znodes.encode_broker(broker, now_ms), 0),
    ]
    if found is not None:
        if found[1].ephemeral_owner != store.session.session_id:
            raise _duplicate(broker)
        operations.insert(0, Delete(path, found[1].version))
    *_, written = await until_answered(lambda: store.session.multi(operations))
    if isinstance(written, Stat):
        logger.info("broker %d registered anew, epoch %d", broker.broker_id, written.czxid)
        return written.czxid
    # Applied by an attempt whose answer was lost, or the znode was changed by somebody else.
    return await register_anew(store, broker, now_ms)


def _duplicate(broker: znodes.Broker) -> DuplicateBrokerId:
    return DuplicateBrokerId(
        f"a broker with id {broker.broker_id} is already registered in ZooKeeper "
        f"({znodes.broker_path(broker.broker_id)}) by another living session"
    )


async def _try_register(
    store: Store, broker: znodes.Broker, now_ms: int, previous_session_id: int
) -> int | None:
    """The epoch, or None when the znode belongs to somebody else."""
    path = znodes.broker_path(broker.broker_id)
    operations: list[Operation] = [
        Create(path, ephemeral=True),
        SetData(path, znodes.encode_broker(broker, now_ms), 0),
    ]
    while True:
        created, written = await until_answered(lambda: store.session.multi(operations))
        if isinstance(written, Stat):
            return written.czxid
        if not isinstance(created, NodeExists):
            raise created if isinstance(created, ZooKeeperError) else ZooKeeperError(path)
        found = await store.get(path)
        if found is None:
            continue  # gone while we looked
        owner = found[1].ephemeral_owner
        if owner == store.session.session_id:
            return found[1].czxid  # ours: the first answer was lost
        if owner != previous_session_id or owner == 0:
            return None
        logger.info("removing %s, left by this broker's earlier session %#x", path, owner)
        await store.remove(path)


async def _until_gone(store: Store, path: str) -> None:
    """Return when the znode changes or vanishes."""
    changed = asyncio.Event()

    def watch(_: WatchEvent) -> None:
        changed.set()

    if await store.exists(path, watch) is not None:
        logger.info("waiting for %s to expire", path)
        await changed.wait()


async def _check_endpoints(store: Store, broker: znodes.Broker) -> None:
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
    """The cluster's id; the first broker of a cluster draws it.

    Raises MalformedZnode if `/cluster/id` is there but unreadable.
    """
    while True:
        found = await store.get(znodes.CLUSTER_ID)
        if found is not None:
            return znodes.decode_cluster_id(found[0])
        await store.ensure(znodes.CLUSTER_ID, znodes.encode_cluster_id(new_uuid(randomness)))
