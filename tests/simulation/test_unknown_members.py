"""A member of an ISR that the next controller's broker was not told of."""

import pytest
from barnabas_common.messages.control import LeaderAndIsrRequest
from barnabas_common.topic_partition import TopicPartition

from tests.support.control_world import ControlWorld, RecordingBroker, run_world

FLIGHTS = TopicPartition("flights", 0)


def is_told_of_leader_alone(world: ControlWorld) -> None:
    """Brokers 2 and 3 learn of an ISR without broker 3, as before it joined."""
    for broker_id in (2, 3):
        broker = world.brokers[broker_id]
        told = broker.metadata(FLIGHTS)
        assert told is not None and told.in_sync_replicas == [2, 3]
        told.in_sync_replicas.remove(3)


def has_role_of(broker: RecordingBroker, controller_epoch: int) -> bool:
    requests = [r for r in broker.told if isinstance(r, LeaderAndIsrRequest)]
    return any(r.controller_epoch == controller_epoch for r in requests)


@pytest.mark.parametrize(("has_restarted", "isr"), [(False, (2, 3)), (True, (2,))])
def test_a_leader_that_has_not_restarted_knows_its_isr(
    has_restarted: bool, isr: tuple[int, ...]
) -> None:
    """The member stays: it may be the only one that has everything if the leader is lost."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3)
        await world.create_topic("flights", {0: [2, 3]})
        await world.until(lambda: all(world.brokers[b].metadata(FLIGHTS) for b in (2, 3)))
        is_told_of_leader_alone(world)
        controller = world.kill(1)
        if has_restarted:
            told = world.brokers[2].told
            await world.kill_and_expire(2)
            (await world.start_broker(2)).told.extend(told)
        world.zookeeper.expire(controller.session)
        await world.until(lambda: world.controller() is not None)
        await world.until(lambda: has_role_of(world.brokers[3], controller_epoch=2))
        state = await world.state(FLIGHTS)
        assert state is not None and (state.leader, state.isr) == (2, isr)

    run_world(test)
