"""Brokers die, restart, stop and lose disks: leadership and ISRs follow."""

import asyncio
import dataclasses

import pytest
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.control import AlterPartitionItem, AlterPartitionRequest
from barnabas_common.messages.control import ControlledShutdownRequest as ShutdownRequest
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes
from barnabas_controller.store.leader_and_isr import NO_LEADER, RECOVERING

from tests.support.control_world import QUIET, ControlWorld, run_world

FLIGHTS = TopicPartition("flights", 0)


async def three_brokers_and_a_topic(world: ControlWorld) -> None:
    """Broker 9 is controller, so that 1 to 3 can come and go."""
    await world.start_brokers(9, 1, 2, 3)
    await world.create_topic("flights", {0: [1, 2, 3]})


def test_a_leaders_death_elects_the_next_in_sync_replica() -> None:
    async def test(world: ControlWorld) -> None:
        await three_brokers_and_a_topic(world)
        await world.kill_and_expire(1)
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert state.isr == (2, 3)
        assert state.leader_epoch == 1
        for broker_id in (2, 3):
            broker = world.brokers[broker_id]
            await world.until(lambda b=broker: b.role(FLIGHTS).leader == 2)  # type: ignore[misc]
            role = broker.role(FLIGHTS)
            assert role is not None
            assert (role.leader_epoch, role.in_sync_replicas) == (1, [2, 3])
            assert role.partition_epoch == state.partition_epoch
            assert not role.is_new
        metadata = world.brokers[9].metadata(FLIGHTS)
        assert metadata is not None
        assert (metadata.leader, metadata.offline_replicas) == (2, [1])
        assert world.brokers[9].live_brokers() == {2, 3, 9}

    run_world(test)


def test_a_silent_broker_is_dead_when_its_session_expires() -> None:
    async def test(world: ControlWorld) -> None:
        await three_brokers_and_a_topic(world)
        before = world.clock.monotonic()
        world.kill(1)
        await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert 6 <= world.clock.monotonic() - before < 7

    run_world(test, dataclasses.replace(QUIET, suspects_on_evidence=False))


def test_a_followers_death_takes_it_out_of_the_isr_and_raises_the_leader_epoch() -> None:
    async def test(world: ControlWorld) -> None:
        await three_brokers_and_a_topic(world)
        await world.kill_and_expire(3)
        state = await world.until_state(FLIGHTS, lambda s: s.isr == (1, 2))
        assert (state.leader, state.leader_epoch) == (1, 1)
        await world.until(lambda: world.brokers[1].role(FLIGHTS).leader_epoch == 1)  # type: ignore[union-attr]

    run_world(test)


def test_the_last_in_sync_replica_is_waited_for_and_leads_again() -> None:
    async def test(world: ControlWorld) -> None:
        await three_brokers_and_a_topic(world)
        await world.kill_and_expire(2, 3)
        await world.until_state(FLIGHTS, lambda s: s.isr == (1,))
        await world.kill_and_expire(1)
        state = await world.until_state(FLIGHTS, lambda s: s.leader == NO_LEADER)
        assert state.isr == (1,), "only broker 1 has everything that was acknowledged"

        await world.start_broker(2)
        await world.settle()
        offline = await world.state(FLIGHTS)
        assert offline is not None and offline.leader == NO_LEADER

        loop = asyncio.get_running_loop()
        returned = loop.time()
        await world.start_broker(1)
        back = await world.until_state(FLIGHTS, lambda s: s.leader == 1)
        assert loop.time() - returned < 2.0, "its registration is the reason, and no timer"
        assert back.isr == (1,)
        assert back.leader_epoch == state.leader_epoch + 1
        await world.until(lambda: world.brokers[2].role(FLIGHTS).leader == 1)  # type: ignore[union-attr]

    run_world(test)


def test_an_unclean_election_happens_only_where_the_topic_allows_it() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        allowed = znodes.encode_config({"unclean.leader.election.enable": "true"})
        await world.store.put(znodes.topic_config_path("risky"), allowed)
        risky, safe = TopicPartition("risky", 0), TopicPartition("safe", 0)
        await world.create_topic("risky", {0: [1, 2]})
        await world.create_topic("safe", {0: [1, 2]})
        await world.kill_and_expire(2)
        for partition in (risky, safe):
            await world.until_state(partition, lambda s: s.isr == (1,))
        await world.start_broker(2)
        await world.kill_and_expire(1)
        state = await world.until_state(risky, lambda s: s.leader == 2)
        assert (state.isr, state.recovery_state) == ((2,), RECOVERING)
        await world.until_state(safe, lambda s: s.leader == NO_LEADER and s.isr == (1,))

    run_world(test)


@pytest.mark.parametrize("evidence", [True, False], ids=["evidence", "session"])
def test_a_broker_that_restarts_faster_than_anyone_looks_is_treated_as_dead_and_new(
    evidence: bool,
) -> None:
    async def test(world: ControlWorld) -> None:
        await three_brokers_and_a_topic(world)
        first = world.brokers[1].epoch
        # the controller is disconnected from ZooKeeper
        world.zookeeper.client(world.brokers[9].node).disconnect()
        await world.kill_and_expire(1)
        await world.start_broker(1)
        assert world.brokers[1].epoch > first
        world.zookeeper.client(world.brokers[9].node).reconnect()
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert state.isr == (2, 3)
        await world.until(lambda: world.brokers[1].role(FLIGHTS) is not None)
        role = world.brokers[1].role(FLIGHTS)
        assert role is not None and role.leader == 2
        epochs = {request.broker_epoch for request in world.brokers[1].told}
        assert epochs == {world.brokers[1].epoch}

    run_world(test, dataclasses.replace(QUIET, suspects_on_evidence=evidence))


def test_a_state_changed_by_hand_is_read_again_before_the_next_election() -> None:
    async def test(world: ControlWorld) -> None:
        await three_brokers_and_a_topic(world)
        state = await world.state(FLIGHTS)
        assert state is not None
        by_hand = dataclasses.replace(state, leader_epoch=7, isr=(1, 3))
        await world.store.put(znodes.state_path(FLIGHTS), znodes.encode_state(by_hand))
        await world.kill_and_expire(1)
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 3)
        assert (state.leader_epoch, state.isr) == (8, (3,))

    run_world(test)


def test_a_new_broker_receives_all_leaders_and_the_others_its_address() -> None:
    async def test(world: ControlWorld) -> None:
        await three_brokers_and_a_topic(world)
        await world.start_broker(4)
        await world.until(lambda: world.brokers[4].metadata(FLIGHTS) is not None)
        await world.until(lambda: world.brokers[1].live_brokers() == {1, 2, 3, 4, 9})

    run_world(test)


def test_a_stopping_broker_hands_over_its_leaderships_first() -> None:
    async def test(world: ControlWorld) -> None:
        await three_brokers_and_a_topic(world)
        await world.create_topic("followed", {0: [2, 1]})
        await world.create_topic("alone", {0: [1]})
        controller = world.brokers[9].controller
        request = ShutdownRequest(1, world.brokers[1].epoch)
        response = await controller.handle(request)
        assert (response.error_code, response.remaining) == (ErrorCode.NONE, [])
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        assert state.isr == (2, 3)
        await world.until_state(TopicPartition("followed", 0), lambda s: s.isr == (2,))
        alone = await world.state(TopicPartition("alone", 0))
        assert alone is not None and alone.leader == 1
        await world.until(
            lambda: TopicPartition("followed", 0) in world.brokers[1].stops(delete=False)
        )
        stale = await controller.handle(ShutdownRequest(1, request.broker_epoch - 1))
        assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
        unknown = await controller.handle(ShutdownRequest(77, 1))
        assert unknown.error_code == ErrorCode.BROKER_NOT_AVAILABLE

    run_world(test)


def test_a_broker_that_is_the_only_in_sync_one_is_told_what_it_still_leads() -> None:
    async def test(world: ControlWorld) -> None:
        await three_brokers_and_a_topic(world)
        await world.kill_and_expire(2, 3)
        await world.until_state(FLIGHTS, lambda s: s.isr == (1,))
        response = await world.brokers[9].controller.handle(
            ShutdownRequest(1, world.brokers[1].epoch)
        )
        assert [(p.topic, p.partition) for p in response.remaining] == [FLIGHTS]

    run_world(test)


def test_a_failed_disk_moves_the_leadership_of_its_partitions_alone() -> None:
    async def test(world: ControlWorld) -> None:
        await three_brokers_and_a_topic(world)
        await world.create_topic("other", {0: [1, 2]})
        await world.kill_and_expire(1)
        await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        await world.until_state(TopicPartition("other", 0), lambda s: s.leader == 2)
        world.brokers[2].failing[FLIGHTS] = ErrorCode.KAFKA_STORAGE_ERROR
        await world.start_broker(1)
        await world.kill_and_expire(3)  # the next LeaderAndIsr for flights-0 goes to broker 2
        state = await world.until_state(FLIGHTS, lambda s: s.leader != 2)
        assert state.leader == NO_LEADER and state.isr == (2,)
        other = await world.state(TopicPartition("other", 0))
        assert other is not None and other.leader == 2

    run_world(test)


def test_the_preferred_replicas_lead_again_after_a_while() -> None:
    async def test(world: ControlWorld) -> None:
        await three_brokers_and_a_topic(world)
        await world.kill_and_expire(1)
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 2)
        await world.start_broker(1)
        await world.until(lambda: world.brokers[1].role(FLIGHTS) is not None)
        await world.settle(seconds=400)
        state = await world.until_state(FLIGHTS, lambda s: True)
        assert state.leader == 2, "the preferred replica is not in sync yet"
        item = AlterPartitionItem(
            "flights", 0, state.leader_epoch, state.partition_epoch, [2, 3, 1]
        )
        request = AlterPartitionRequest(2, world.brokers[2].epoch, [item])
        response = await world.brokers[9].controller.handle(request)
        assert response.partitions[0].error_code == ErrorCode.NONE
        await world.settle(seconds=301)
        state = await world.until_state(FLIGHTS, lambda s: s.leader == 1)
        assert state.isr == (2, 3, 1)

    run_world(test, dataclasses.replace(QUIET, auto_leader_rebalance_enable=True))


def test_the_requests_of_a_controller_are_numbered() -> None:
    async def test(world: ControlWorld) -> None:
        await world.start_brokers(9, 1, 2)
        await world.create_topic(FLIGHTS.topic, {0: [1, 2]})
        await world.until(lambda: world.brokers[1].role(FLIGHTS) is not None)
        numbers = [request.number for request in world.brokers[1].told]
        assert len(numbers) > 1 and numbers[0] > 0
        assert numbers == sorted(set(numbers))

    run_world(test)
