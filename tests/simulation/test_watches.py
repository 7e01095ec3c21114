"""Each watch of the controller and of the brokers is armed no later than its data is read.

The read that follows its firing arms it again, so that no change can fall in between. The sessions
are those of the memory ZooKeeper; the audit only records their requests.
"""

import asyncio
from typing import Any, NamedTuple

import pytest
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.controller import Controller, ControllerSetup
from barnabas_controller.reassignment.reassignment_znode import encode_reassignments
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.znodes import Broker, Endpoint, ReplicaAssignment, TopicZnode
from barnabas_controller.zookeeper.session import Watch
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.config_world import announce, store_of
from tests.support.control_world import ControlWorld, run_world

FLIGHTS = TopicPartition("flights", 0)


class Read(NamedTuple):
    path: str
    operation: str
    armed: bool


class Audited:
    """A session that records what was read through it, and with which watches."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.reads: list[Read] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def get(self, path: str, watch: Watch | None = None) -> Any:
        return await self._read("get", path, watch)

    async def exists(self, path: str, watch: Watch | None = None) -> Any:
        return await self._read("exists", path, watch)

    async def children(self, path: str, watch: Watch | None = None) -> Any:
        return await self._read("children", path, watch)

    async def _read(self, operation: str, path: str, watch: Watch | None) -> Any:
        self.reads.append(Read(path, operation, watch is not None))
        return await getattr(self._session, operation)(path, watch)

    def of(self, path: str, since: int = 0) -> list[Read]:
        return [read for read in self.reads[since:] if read.path == path]

    def first(self, path: str) -> int:
        return next(index for index, read in enumerate(self.reads) if read.path == path)

    def first_below(self, path: str) -> int:
        """Return the position of the first read below a path; the end if there is none."""
        below = (i for i, read in enumerate(self.reads) if read.path.startswith(f"{path}/"))
        return next(below, len(self.reads))


GOOD = znodes.encode_state(LeaderAndIsr(1, 0, (1, 2), 0))


async def audited_controller(world: ControlWorld, state: bytes = GOOD) -> Audited:
    """Let a controller take over a cluster that has one of everything."""
    broker = Broker(1, (Endpoint("PLAINTEXT", "host1", 1),))
    await world.store.session.create(
        znodes.broker_path(1), znodes.encode_broker(broker, 0), ephemeral=True
    )
    node = TopicZnode("id", {0: ReplicaAssignment((1, 2))})
    await world.store.ensure(znodes.topic_path("flights"), znodes.encode_topic(node))
    await world.store.ensure(znodes.state_path(FLIGHTS), state)
    await world.store.ensure(znodes.topic_path("doomed"), znodes.encode_topic(node))
    await world.store.ensure(znodes.delete_topic_path("doomed"))
    session = Audited(await world.zookeeper.client("auditor").connect(6000, 1000))
    setup = ControllerSetup(world.runtime("auditor"), session, 7, world.config)
    controller = Controller(setup)
    await controller.start()
    await world.until(lambda: controller.is_active)
    await world.settle()
    return session


# Every watch of the controller (every broker watches `/controller`), and a change that makes it
# fire.
BELOW = {
    znodes.BROKER_IDS: (f"{znodes.BROKER_IDS}/9", b"nonsense"),
    znodes.TOPICS: (znodes.topic_path("new"), b"nonsense"),
    znodes.DELETE_TOPICS: (znodes.delete_topic_path("unheard-of"), b""),
    znodes.LOG_DIR_EVENTS: (f"{znodes.LOG_DIR_EVENTS}/log_dir_event_1", b"nonsense"),
    znodes.ISR_CHANGES: (f"{znodes.ISR_CHANGES}/isr_change_1", b"nonsense"),
}
CREATED = {
    znodes.REASSIGN_PARTITIONS: encode_reassignments({TopicPartition("unknown", 0): (1,)}),
    znodes.PREFERRED_REPLICA_ELECTION: b'{"version":1,"partitions":[]}',
}
DATA = [znodes.broker_path(1), znodes.topic_path("flights")]


@pytest.mark.parametrize("path", [*BELOW, *CREATED, *DATA, znodes.CONTROLLER])
def test_each_is_armed_no_later_than_its_state_is_first_read(path: str) -> None:
    async def test(world: ControlWorld) -> None:
        audit = await audited_controller(world)
        assert audit.of(path)[0].armed, audit.of(path)
        assert audit.first(path) < audit.first_below(path)
        state_read = audit.first(znodes.state_path(FLIGHTS))
        # requests, on which the states do not depend
        if path not in (*CREATED, znodes.DELETE_TOPICS):
            assert audit.first(path) < state_read

    run_world(test)


@pytest.mark.parametrize("path", [*BELOW, *CREATED, *DATA, znodes.CONTROLLER])
def test_each_is_armed_again_by_the_first_reading_after_it_fired(path: str) -> None:
    async def test(world: ControlWorld) -> None:
        audit = await audited_controller(world)
        for _ in range(3):
            since = len(audit.reads)
            await make_fire(world, path)
            await world.settle()
            again = audit.of(path, since)
            assert again and again[0].armed, again

    run_world(test)


async def make_fire(world: ControlWorld, path: str) -> None:
    if path in BELOW:
        child, data = BELOW[path]
        if not await world.store.ensure(child, data):
            await world.store.remove(child)
    elif path in CREATED:
        await world.store.ensure(path, CREATED[path])
    else:
        found = await world.store.get(path)
        assert found is not None
        await world.store.put(path, found[0])


def test_a_spoilt_state_is_watched_until_it_is_mended() -> None:
    async def test(world: ControlWorld) -> None:
        path = znodes.state_path(FLIGHTS)
        audit = await audited_controller(world, b"nonsense")
        assert [read.armed for read in audit.of(path)] == [False, True]
        for data in (b"still nonsense", b"{}"):
            since = len(audit.reads)
            await world.store.put(path, data)
            await world.settle()
            assert [read.armed for read in audit.of(path, since)] == [False, True]

    run_world(test)


def test_a_broker_arms_its_watch_on_settings_before_it_reads_any() -> None:
    """It reads `/config/changes` first, then the settings; and again after each notification."""

    async def main() -> None:
        cluster = SimulatedCluster(1, brokers=1)
        client_of = cluster.zookeeper.client
        audits: list[Audited] = []

        def audited(name: str) -> Any:
            client = client_of(name)
            connect = client.connect

            async def connect_audited(*args: Any, **options: Any) -> Any:
                audits.append(Audited(await connect(*args, **options)))
                return audits[-1]

            if name.startswith("broker"):
                client.connect = connect_audited  # type: ignore[method-assign]
            return client

        cluster.zookeeper.client = audited  # type: ignore[method-assign]
        await cluster.start()
        (audit,) = audits
        path = znodes.CONFIG_CHANGES
        assert audit.of(path)[0] == Read(path, "children", True)
        for entity in ("/config/brokers/<default>", "/config/brokers/1"):
            assert audit.first(path) < audit.first(entity)
        store = await store_of(cluster)
        for _ in range(2):
            since = len(audit.reads)
            await announce(store, "brokers/<default>")
            await asyncio.sleep(1)
            assert audit.of(path, since)[0].armed
            assert audit.of("/config/brokers/<default>", since)

    run(main(), seed=1, max_time=600)
