"""Listeners are notified of changes of role: in order, with epochs, even if one of them fails."""

import pytest
from barnabas_common.messages.control import StopReplicaPartition, StopReplicaRequest
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import run

from tests.support.replication_world import CONTROLLER, TP, ReplicationWorld


class Noted:
    """A notification, and the partition's state at that moment."""

    def __init__(self, world: ReplicationWorld, broker_id: int = 1) -> None:
        self.calls: list[tuple[str, TopicPartition, int]] = []
        self.leads: list[bool] = []
        self._world, self._broker_id = world, broker_id

    def became_leader(self, topic_partition: TopicPartition, leader_epoch: int) -> None:
        self._note("leader", topic_partition, leader_epoch)

    def became_follower(self, topic_partition: TopicPartition, leader_epoch: int) -> None:
        self._note("follower", topic_partition, leader_epoch)

    def stopped(self, topic_partition: TopicPartition) -> None:
        self._note("stopped", topic_partition, -1)

    def _note(self, role: str, key: TopicPartition, epoch: int) -> None:
        partition = self._world.incarnations[self._broker_id].manager.partitions.get(key)
        self.calls.append((role, key, epoch))
        self.leads.append(partition is not None and partition.leadership is not None)


class Failing(Noted):
    def _note(self, role: str, key: TopicPartition, epoch: int) -> None:
        raise RuntimeError("the coordinator is broken")


def test_leader_follower_and_leader_again_each_with_its_epoch() -> None:
    async def scenario() -> None:
        world = ReplicationWorld()
        await world.start(1, 2)
        noted = Noted(world)
        world.incarnations[1].manager.roles.add_listener("flights", noted)
        await world.create(1, 2)
        await world.elect(2)
        await world.elect(1)
        assert noted.calls == [("leader", TP, 0), ("follower", TP, 1), ("leader", TP, 2)]
        assert noted.leads == [True, False, True], "the role had been taken"

    run(scenario())


def test_a_deleted_replica_is_stopped_and_other_topics_are_not_told() -> None:
    async def scenario() -> None:
        world = ReplicationWorld()
        await world.start(1, 2)
        noted, other = Noted(world), Noted(world)
        roles = world.incarnations[1].manager.roles
        roles.add_listener("flights", noted)
        roles.add_listener("elsewhere", other)
        await world.create(1, 2)
        item = StopReplicaPartition(*TP, -2, True)
        await world.on(1, roles.stop_replicas(StopReplicaRequest(CONTROLLER, 1, -1, [item])))
        await world.on(1, roles.stop_replicas(StopReplicaRequest(CONTROLLER, 1, -1, [item])))
        assert noted.calls == [("leader", TP, 0), ("stopped", TP, -1)]
        assert noted.leads == [True, False]
        assert not other.calls

    run(scenario())


def test_a_replica_whose_directory_failed_is_stopped() -> None:
    async def scenario() -> None:
        world = ReplicationWorld()
        await world.start(1, 2)
        noted = Noted(world)
        await world.create(1, 2)
        manager = world.incarnations[1].manager
        manager.roles.add_listener("flights", noted)
        manager.directory_failed(world.log(1).directory.rpartition("/")[0])
        assert [role for role, _, _ in noted.calls] == ["leader", "stopped"]

    run(scenario())


def test_a_replica_that_refuses_its_role_for_a_damaged_log_is_stopped() -> None:
    async def scenario() -> None:
        world = ReplicationWorld()
        await world.start(1, 2)
        noted = Noted(world)
        await world.create(1, 2)
        manager = world.incarnations[1].manager
        manager.roles.add_listener("flights", noted)
        partition = manager.partitions.get(TP)
        assert partition is not None and partition.leadership is not None
        manager.damaged.found(partition.leadership, 0, "CRC")
        await world.elect(1)
        assert [role for role, _, _ in noted.calls] == ["leader", "stopped"]
        assert noted.leads == [True, False]

    run(scenario())


def test_a_listener_that_is_added_late_is_told_of_what_is_led_now() -> None:
    async def scenario() -> None:
        world = ReplicationWorld()
        await world.start(1, 2)
        followed = TopicPartition("flights", 1)
        await world.create(1, 2)
        await world.create(2, 1, key=followed)
        await world.create(1, 2, key=TopicPartition("elsewhere", 0))
        noted = Noted(world)
        world.incarnations[1].manager.roles.add_listener("flights", noted)
        assert noted.calls == [("leader", TP, 0)]

    run(scenario())


def test_a_listener_that_fails_stops_neither_the_role_nor_the_next_listener(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        world = ReplicationWorld()
        await world.start(1, 2)
        noted = Noted(world)
        roles = world.incarnations[1].manager.roles
        roles.add_listener("flights", Failing(world))
        roles.add_listener("flights", noted)
        await world.create(1, 2)
        assert noted.calls == [("leader", TP, 0)]
        assert (await world.produce(b"a")).error_code == 0

    run(scenario())
    assert "a role listener failed: became_leader" in caplog.text
