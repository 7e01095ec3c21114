"""Malformed znodes in a real cluster: no broker fails, and repairing the znode is enough.

The tables of all znodes are in `tests/simulation/test_bad_znodes.py` and
`test_bad_partition_states.py`; this file has some of the cases on real processes.
"""

import asyncio

import pytest
from barnabas import Admin, Producer
from barnabas_common.errors import InvalidConfigError
from barnabas_controller.store import znodes
from barnabas_controller.store.store import Store
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import controller_id, create_topic, leaders, wait_until_in_sync
from tests.support.config_world import announce
from tests.support.zookeeper_client import zookeeper

pytestmark = pytest.mark.integration


async def works(cluster: LocalCluster, topic: str) -> None:
    """Assert that records can be written to every partition."""
    async with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for partition in range(3):
            await producer.send_and_wait(topic, b"still here", partition=partition)


async def test_spoilt_znodes_stop_nothing_else_and_can_be_mended(cluster: LocalCluster) -> None:
    await create_topic(cluster.bootstrap, "spoilt", 3)
    await create_topic(cluster.bootstrap, "healthy", 3)
    await wait_until_in_sync(cluster.bootstrap, "spoilt")
    async with zookeeper(cluster) as session:
        store = Store(session)
        state = "/brokers/topics/spoilt/partitions/0/state"
        good, _ = await session.get(state)
        await session.set(state, b'{"leader":9,"leader_epoch":0,"isr":[9],"controller_epoch":1}')
        await store.ensure("/brokers/topics/written-by-hand", b'{"partitions":{"0":[]}}')
        await session.create("/brokers/ids/seven", b"nonsense", ephemeral=True)
        await session.create("/brokers/ids/7", b'{"endpoints":[]}', ephemeral=True)
        await store.ensure(znodes.PREFERRED_REPLICA_ELECTION, b"nonsense")
        await store.ensure(znodes.REASSIGN_PARTITIONS, b"nonsense")
        await session.create(f"{znodes.ISR_CHANGES}/isr_change_", b"", sequential=True)
        await session.create(f"{znodes.LOG_DIR_EVENTS}/log_dir_event_", b"{", sequential=True)
        await store.put(znodes.topic_config_path("spoilt"), b"nonsense")
        await announce(store, "topics/spoilt")
        await works(cluster, "healthy")
        await works(cluster, "spoilt")

        before = (await leaders(cluster.bootstrap, "spoilt"))[0]
        victim = await controller_id(cluster.bootstrap)  # a new one must read all this at failover
        await asyncio.to_thread(cluster.kill, victim)
        async with asyncio.timeout(30):
            while victim in (await leaders(cluster.bootstrap, "healthy")).values():
                await asyncio.sleep(0.05)
        await works(cluster, "healthy")
        # A broker that starts does not know the topic's settings, and serves not even a valid
        # state.
        await asyncio.to_thread(cluster.restart, victim)
        await wait_until_in_sync(cluster.bootstrap, "healthy")
        assert (await session.get(state))[0].startswith(b'{"leader":9'), "nobody was elected by it"
        async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            with pytest.raises(InvalidConfigError, match="/config/topics/spoilt"):
                await admin.describe_configs("spoilt")

        await session.set(state, good)
        await store.put(znodes.topic_config_path("spoilt"), znodes.encode_config({}))
        await wait_until_in_sync(cluster.bootstrap, "spoilt")
        await works(cluster, "spoilt")
        assert before in (1, 2, 3)


async def test_without_a_readable_epoch_the_cluster_serves_on_and_elects_when_mended(
    cluster: LocalCluster,
) -> None:
    await create_topic(cluster.bootstrap, "served", 3)
    await wait_until_in_sync(cluster.bootstrap, "served")
    victim = await controller_id(cluster.bootstrap)
    survivors = set((await leaders(cluster.bootstrap, "served")).values()) - {victim}
    async with zookeeper(cluster) as session:
        epoch, _ = await session.get(znodes.CONTROLLER_EPOCH)
        await session.set(znodes.CONTROLLER_EPOCH, b"nonsense")
        await asyncio.to_thread(cluster.kill, victim)
        async with asyncio.timeout(30):
            while await session.exists(znodes.CONTROLLER) is not None:
                await asyncio.sleep(0.05)
        for _ in range(20):  # for longer than an election takes
            assert await session.exists(znodes.CONTROLLER) is None
            await asyncio.sleep(0.1)
        assert survivors <= set((await leaders(cluster.bootstrap, "served")).values())
        await session.set(znodes.CONTROLLER_EPOCH, epoch)
        async with asyncio.timeout(30):
            while victim in (await leaders(cluster.bootstrap, "served")).values():
                await asyncio.sleep(0.05)
        await asyncio.to_thread(cluster.restart, victim)
        await wait_until_in_sync(cluster.bootstrap, "served")
        await works(cluster, "served")
