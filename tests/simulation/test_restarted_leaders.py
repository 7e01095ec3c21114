"""A leader restarts while there is no controller; the next one reads what was written by hand."""

from dataclasses import replace

import pytest
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store import znodes

from tests.support.control_world import QUIET, ControlWorld, run_world

FLIGHTS = TopicPartition("flights", 0)


@pytest.mark.parametrize("set_back", [1, 2])
def test_it_gets_a_leader_epoch_that_no_other_has_had(set_back: int) -> None:
    """It remembers none, so it could not refuse one that another leader has had."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 4, 2, 3)
        await world.create_topic("flights", {0: [2, 3]})
        await world.until_state(FLIGHTS, lambda state: state.isr == (2, 3))
        await world.kill_and_expire(2)
        await world.until_state(FLIGHTS, lambda state: state.leader == 3)
        await world.kill_and_expire(3)
        await world.until_state(FLIGHTS, lambda state: state.leader == -1)
        await world.start_broker(3)
        newest = await world.until_state(FLIGHTS, lambda state: state.leader == 3)
        controller = world.kill(1)
        await world.kill_and_expire(3)
        older = replace(newest, leader_epoch=newest.leader_epoch - set_back)
        world.zookeeper.put(znodes.state_path(FLIGHTS), znodes.encode_state(older))
        await world.start_broker(3)
        world.zookeeper.expire(controller.session)
        await world.until(lambda: world.controller() is not None)
        state = await world.until_state(FLIGHTS, lambda s: s.leader_epoch > older.leader_epoch)
        assert state.leader_epoch > newest.leader_epoch
        assert (state.leader, state.isr) == (3, (3,))

    run_world(test, replace(QUIET, min_insync_replicas=1))
