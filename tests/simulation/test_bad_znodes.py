"""Malformed znodes of topics, brokers and the controller: an event says what is wrong and where.

The cluster stays in a safe state, everything else continues, and the cluster recovers once the
znode is repaired. Partition states are in `test_bad_partition_states.py`, and `/config`, which
brokers read, is in `test_dynamic_configs.py`.
"""

import asyncio
from dataclasses import replace

import pytest
from barnabas import Admin
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_controller.store.znodes import Endpoint, ReplicaAssignment, TopicZnode
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run

from tests.support.bad_znodes import (
    FLIGHTS,
    NONSENSE,
    OTHER,
    other_goes_on,
    raw,
    raw_of,
    reported,
    reports,
    start_cluster,
    still_the_first,
)
from tests.support.config_world import store_of
from tests.support.control_world import QUIET, ControlWorld, run_world

TOPIC = znodes.topic_path("flights")

# ---- topics


BAD_TOPICS = [
    b'{"partitions":{}}{',
    b'{"partitions":[]}',
    b'{"partitions":{"zero":[1]}}',
    b'{"partitions":{"0":[]}}',
    b'{"partitions":{"0":[1,1]}}',
    b'{"partitions":{"0":[-1]}}',
    b'{"partitions":{"0":["1"]}}',
    b'{"partitions":{"0":[99999999999]}}',
    b'{"partitions":{"99999999999":[1]}}',
    b'{"partitions":{"0":[1,2]},"topic_id":"two\\nlines"}',
    b'{"partitions":{"0":[1,2]},"topic_id":"\\ud800"}',
    b'{"partitions":{"0":[1,2]},"adding_replicas":{"0":[7]}}',
]


@pytest.mark.parametrize("data", NONSENSE + BAD_TOPICS)
def test_a_topic_that_cannot_be_understood_is_left_out_until_it_is_mended(data: bytes) -> None:
    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        path = znodes.topic_path("spoilt")
        await world.store.ensure(path, data)
        await reported(world, path)
        await world.create_topic("after", {0: [2]})
        still_the_first(world)
        node = TopicZnode("id", {0: ReplicaAssignment((3, 2))})
        await world.store.put(path, znodes.encode_topic(node))
        await world.until_state(TopicPartition("spoilt", 0), lambda s: s.leader == 3)

    run_world(test)


@pytest.mark.parametrize("data", NONSENSE + BAD_TOPICS)
def test_a_known_topic_stays_as_it_was_while_its_znode_is_nonsense(data: bytes) -> None:
    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        good = await raw(world, TOPIC)
        await world.store.put(TOPIC, data)
        await reported(world, TOPIC)
        await world.kill_and_expire(1)
        await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        await world.store.put(TOPIC, good.replace(b'"0":[1,2,3]', b'"0":[1,2,3],"1":[2,3]'))
        await world.until_state(TopicPartition("flights", 1), lambda s: s.leader == 2)
        still_the_first(world)

    run_world(test)


@pytest.mark.parametrize("data", NONSENSE + BAD_TOPICS)
def test_a_topic_that_a_new_controller_could_not_read_goes_on_once_it_is_mended(
    data: bytes,
) -> None:
    """Its partitions have leaders and ISRs already: they are not new."""

    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        good = await raw(world, TOPIC)
        await world.store.put(TOPIC, data)
        await world.kill_and_expire(9, 1)
        await world.until_state(OTHER, lambda s: s.leader == 2)
        controller = world.controller()
        assert controller is not None
        await reported(world, TOPIC, controller.broker_id)
        await world.store.put(TOPIC, good)
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert (state.isr, state.leader_epoch) == ((2, 3), 2)
        await world.start_broker(1)
        await world.until(lambda: world.brokers[1].role(FLIGHTS) is not None)
        assert world.controller() is controller

    run_world(test)


@pytest.mark.parametrize("path", [TOPIC, znodes.state_path(FLIGHTS)])
def test_who_lost_records_while_a_znode_was_nonsense_leaves_the_isr_once_it_is_mended(
    path: str,
) -> None:
    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        good = await raw(world, path)
        await world.store.put(path, b"nonsense")
        await world.kill_and_expire(9)
        await world.until(lambda: world.controller() is not None)
        controller = world.controller()
        assert controller is not None
        await reported(world, path, controller.broker_id)
        victim = next(b for b in (2, 3) if b != controller.broker_id)
        world.zookeeper.expire(world.kill(victim, keep_unflushed=False).session)
        await world.until_state(OTHER, lambda s: victim not in s.isr)
        await world.start_broker(victim)
        await world.until(lambda: victim in controller.live_brokers())
        await world.store.put(path, good)
        await world.until_state(FLIGHTS, lambda s: victim not in s.isr)

    run_world(test)


@pytest.mark.parametrize("name", ["a b", "..x..y..?", "x" * 250, "ümlaut"])
def test_a_topic_of_an_impossible_name_is_left_out(name: str) -> None:
    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        await world.store.ensure(znodes.topic_path(name), await raw(world, TOPIC))
        await reported(world, znodes.topic_path(name))
        await other_goes_on(world)

    run_world(test)


# ---- brokers


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *(("7", data) for data in NONSENSE),
        ("7", b'{"endpoints":["PLAINTEXT://"],"version":5}'),
        ("7", b'{"endpoints":["PLAINTEXT://h:99999999"],"version":5}'),
        ("7", b'{"endpoints":["PLAINTEXT://\\ud800:1"],"version":5}'),
        ("7", b'{"endpoints":["ELSEWHERE://h7:9092"],"version":5}'),
        ("7", b'{"endpoints":[],"version":5}'),
        ("seven", b""),
        ("07", b""),
        ("-7", b""),
        ("99999999999999", b""),
        ("\u0667", b""),
    ],
)
def test_a_broker_that_cannot_be_understood_or_talked_to_is_left_out(
    name: str, data: bytes
) -> None:
    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        path = f"{znodes.BROKER_IDS}/{name}"
        rogue = await world.zookeeper.client("rogue").connect(6000, 1000)
        await rogue.create(path, data, ephemeral=True)
        await reported(world, path)
        await other_goes_on(world)
        assert not {7, 99999999999999} & world.brokers[9].live_brokers()
        if name == "7":  # the registration is repaired
            good = await raw(world, znodes.broker_path(2))
            await rogue.set(path, good.replace(b"host2", b"host7"))
            await world.until(lambda: 7 in world.brokers[9].live_brokers())

    run_world(test)


def test_a_rogue_id_at_an_address_where_no_one_listens_gets_nothing_to_lead() -> None:
    """It has no replicas, and nothing waits for it."""

    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        rogue = await world.zookeeper.client("rogue").connect(6000, 1000)
        broker = znodes.Broker(7, (Endpoint("PLAINTEXT", "nowhere", 1),))
        await rogue.create(znodes.broker_path(7), znodes.encode_broker(broker, 0), ephemeral=True)
        await world.until(lambda: 7 in world.brokers[9].live_brokers())
        await other_goes_on(world)
        await world.create_topic("after", {0: [2, 3]})

    run_world(test)


@pytest.mark.parametrize("data", NONSENSE)
def test_a_live_broker_whose_registration_is_overwritten_stays_as_it_was(data: bytes) -> None:
    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        path = znodes.broker_path(1)
        await world.store.put(path, data)
        await reported(world, path)
        await world.settle()
        state = await world.state(FLIGHTS)
        assert state is not None and (state.leader, state.isr) == (1, (1, 2, 3))
        assert 1 in world.brokers[9].live_brokers()
        still_the_first(world)

    run_world(test)


def test_a_broker_that_moves_is_told_of_to_all() -> None:
    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        path = znodes.broker_path(1)
        good = await raw(world, path)
        await world.store.put(path, good.replace(b"host1", b"moved"))

        def told() -> bool:
            said = [r for r in world.brokers[2].told if hasattr(r, "live_brokers")]
            return "moved" in [e.host for e in said[-1].live_brokers if e.broker_id == 1]

        await world.until(told)
        state = await world.state(FLIGHTS)
        assert state is not None and state.leader == 1

    run_world(test)


# ---- /controller and /controller_epoch


@pytest.mark.parametrize("data", [*NONSENSE, b'{"version":2,"brokerid":77}'])
def test_a_rogue_controller_keeps_others_from_ruling_until_it_is_gone(data: bytes) -> None:
    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        # Only an attacker does this: there is no pause in which an election could happen.
        await world.store.session.delete(znodes.CONTROLLER)
        await world.store.session.create(znodes.CONTROLLER, data)
        await reported(world, znodes.CONTROLLER)
        await world.kill_and_expire(1)
        await world.settle(10)
        state = await world.state(FLIGHTS)
        assert state is not None and state.leader == 1
        await world.store.remove(znodes.CONTROLLER)
        await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        await world.until_state(OTHER, lambda s: s.leader == 2)

    run_world(test)


@pytest.mark.parametrize("data", NONSENSE)
def test_a_controller_whose_znode_is_overwritten_rules_on(data: bytes) -> None:
    """The session that owns the znode decides, not its data."""

    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        await world.store.put(znodes.CONTROLLER, data)
        await reported(world, znodes.CONTROLLER)
        await other_goes_on(world)

    run_world(test)


@pytest.mark.parametrize("data", [b"", b"one", b"-1", b"1.5", b"99999999999", b"2147483647", b"{}"])
def test_without_a_readable_epoch_no_one_is_elected_until_it_is_mended(data: bytes) -> None:
    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        await world.store.put(znodes.CONTROLLER_EPOCH, data)
        await world.kill_and_expire(1, 9)
        await reported(world, znodes.CONTROLLER_EPOCH, 2)
        await reported(world, znodes.CONTROLLER_EPOCH, 3)
        told = len(reports(world, znodes.CONTROLLER_EPOCH, 2))
        await world.settle(60)
        assert len(reports(world, znodes.CONTROLLER_EPOCH, 2)) == told, "nobody tries in a loop"
        assert world.controller() is None
        await world.store.put(znodes.CONTROLLER_EPOCH, b"1")
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert state.controller_epoch > 1

    run_world(test)


@pytest.mark.parametrize("data", [b"", b"nonsense"])
def test_a_controller_whose_epoch_is_spoilt_writes_nothing_more_until_it_is_mended(
    data: bytes,
) -> None:
    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        await world.store.put(znodes.CONTROLLER_EPOCH, data)
        await world.kill_and_expire(1)
        await world.until(lambda: world.controller() is None)
        await world.settle(10)
        state = await world.state(FLIGHTS)
        assert state is not None and state.leader == 1
        await world.store.put(znodes.CONTROLLER_EPOCH, b"5")
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert state.controller_epoch == 6

    run_world(test)


# ---- settings that the controller reads


@pytest.mark.parametrize("data", [d for d in NONSENSE if d])
def test_a_topic_whose_settings_cannot_be_understood_has_no_unclean_election(data: bytes) -> None:
    async def test(world: ControlWorld) -> None:
        await start_cluster(world)
        await world.store.put(znodes.topic_config_path("flights"), data)
        for partition in (FLIGHTS, OTHER):  # broker 1 alone is in sync
            alone = znodes.encode_state(LeaderAndIsr(1, 0, (1,), 1))
            await world.store.put(znodes.state_path(partition), alone)
            note = f'{{"partitions":[{{"topic":"{partition.topic}","partition":0}}]}}'.encode()
            await world.store.ensure(f"{znodes.ISR_CHANGES}/isr_change_{partition}", note)
        await world.settle()
        await world.kill_and_expire(1)
        await world.until_state(OTHER, lambda s: s.leader == 2)
        await world.settle()
        state = await world.state(FLIGHTS)
        assert state is not None and state.leader == -1
        await reported(world, znodes.topic_config_path("flights"))
        still_the_first(world)

    run_world(test, replace(QUIET, unclean_leader_election_enable=True))


def test_an_epoch_that_was_set_back_does_not_stop_the_next_controller() -> None:
    """Brokers refuse a controller whose epoch is below one that they have accepted."""

    async def main() -> None:
        cluster = SimulatedCluster(1)
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            store = await store_of(cluster)
            for _ in range(3):
                controller = (await admin.describe_cluster()).controller_id
                cluster.expire_session(controller)
                await asyncio.sleep(10)
            assert await raw_of(store, znodes.CONTROLLER_EPOCH) == b"4"
            await store.remove(znodes.CONTROLLER_EPOCH)
            await store.ensure(znodes.CONTROLLER_EPOCH, b"1")
            cluster.expire_session((await admin.describe_cluster()).controller_id)
            await asyncio.sleep(10)
            assert await raw_of(store, znodes.CONTROLLER_EPOCH) == b"5"
            await admin.create_topic("after", partitions=3, replication_factor=3)

    run(main(), seed=1, max_time=3600)


@pytest.mark.parametrize("data", [b'{"endpoints":[]}', b'{"endpoints":["OTHER://h:1"]}', b"{"])
def test_new_topics_get_no_replica_on_a_rogue(data: bytes) -> None:
    async def main() -> None:
        cluster = SimulatedCluster(1)
        await cluster.start()
        store = await store_of(cluster)
        await store.session.create(znodes.broker_path(7), data, ephemeral=True)
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic("after", partitions=12, replication_factor=3)
            described = await admin.describe_topic("after")
        assert all(sorted(p.replicas) == [1, 2, 3] for p in described.partitions)

    run(main(), seed=1, max_time=600)
