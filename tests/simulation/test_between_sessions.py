"""A broker whose ZooKeeper session has ended and whose next is not open yet."""

import asyncio
import errno

import pytest
from barnabas_broker.server import session_file
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import LeaderAndIsrPartition, LeaderAndIsrRequest
from barnabas_controller.store import znodes
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.loop import run


def test_a_topic_whose_settings_cannot_be_read_is_not_served_with_the_defaults() -> None:
    """With the default `min.insync.replicas` of 1, acks=all would promise less than it must."""

    async def story() -> None:
        cluster = SimulatedCluster()
        await cluster.start()
        broker = cluster.broker(1)
        cluster.part_from_zookeeper(1)
        cluster.expire_session(1)
        cluster.reunite_with_zookeeper(1)
        order = LeaderAndIsrRequest(
            1, 9, broker.membership.broker_epoch,
            [LeaderAndIsrPartition("flights", 0, "", 9, 1, 0, 0, [1], [1], is_new=True)],
        )  # fmt: skip
        answer = await broker.replica_manager.become_leader_or_follower(order)
        assert answer.partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert not len(broker.replica_manager.partitions)

    run(story())


def test_a_broker_without_descriptors_rejoins_when_it_has_some() -> None:
    """The new session's file cannot be written at first, which must not end the broker."""

    async def story() -> None:
        cluster = SimulatedCluster()
        await cluster.start()
        broker = cluster.broker(1)
        disk = broker._world.disk
        write, refusals = disk.write_file, [errno.EMFILE, errno.ENFILE]

        def write_file(path: str, data: bytes, **options: bool) -> None:
            if refusals and path.endswith(session_file.NAME):
                raise OSError(refusals.pop(), "no file descriptor is left")
            write(path, data, **options)

        disk.write_file = write_file  # type: ignore[method-assign]
        epoch = broker.membership.broker_epoch
        cluster.expire_session(1)
        async with asyncio.timeout(30):
            while broker.membership.broker_epoch <= epoch:
                await asyncio.sleep(0.1)
        assert not refusals and not broker.failed.done()

    run(story())


def test_a_broker_that_shuts_down_does_not_rejoin(caplog: pytest.LogCaptureFixture) -> None:
    """Its session ends while half of its components are closed."""

    async def story() -> None:
        cluster = SimulatedCluster()
        await cluster.start()
        broker = cluster.broker(1)
        manager = broker.replica_manager
        shutdown, (session,) = manager.shutdown, cluster.sessions_of(1)

        async def slow_shutdown() -> None:
            cluster.zookeeper.expire(session)
            await asyncio.sleep(10.0)
            await shutdown()

        manager.shutdown = slow_shutdown  # type: ignore[method-assign]
        await cluster.stop_broker(1)

    run(story())
    assert not [record for record in caplog.records if record.exc_info]


def test_a_loss_while_the_broker_registers_again_is_registered_too() -> None:
    """Otherwise elections would take the broker for one that has everything."""

    async def story() -> None:
        cluster = SimulatedCluster()
        await cluster.start()
        membership = cluster.broker(1).membership
        epoch = membership.broker_epoch
        cluster.part_from_zookeeper(1)
        membership.reregister(epoch, "it is suspected")
        await asyncio.sleep(0.1)
        membership.reregister_after_loss("a replica in the ISR was deleted")
        await asyncio.sleep(0.1)
        cluster.reunite_with_zookeeper(1)
        async with asyncio.timeout(60):
            while not membership.unbroken_since == membership.broker_epoch > epoch:
                await asyncio.sleep(0.1)
        node = cluster.zookeeper.tree.node(znodes.broker_path(1))
        assert node.czxid == membership.broker_epoch
        registered = znodes.decode_broker(1, node.data, node.czxid)
        assert registered.unbroken_since == znodes.UNBROKEN_SINCE_REGISTRATION

    run(story())
