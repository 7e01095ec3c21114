"""A ZooKeeper session for a test, and what brokers have registered there."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from barnabas_controller.zookeeper.kazoo_session import connect_kazoo
from barnabas_controller.zookeeper.session import Session
from barnabas_tools.local.cluster import LocalCluster


@asynccontextmanager
async def zookeeper(cluster: LocalCluster) -> AsyncIterator[Session]:
    """Open a separate session on the cluster's ZooKeeper for the block."""
    session = await connect_kazoo(cluster.zookeeper_connect)(10_000, 10_000)
    try:
        yield session
    finally:
        await session.close()


async def broker_epoch(session: Session, broker_id: int) -> int | None:
    """Return the czxid of a broker's registration; None while it is not registered."""
    stat = await session.exists(f"/brokers/ids/{broker_id}")
    return stat.czxid if stat is not None else None


async def partition_state(session: Session, topic: str, partition: int) -> dict[str, object]:
    """Return the content of a partition's state znode."""
    data, _ = await session.get(f"/brokers/topics/{topic}/partitions/{partition}/state")
    state: dict[str, object] = json.loads(data)
    return state
