"""The end of a reassignment cannot be written: somebody has spoilt the topic's znode."""

from barnabas_common.events import EventKind
from barnabas_controller.store import znodes

from tests.simulation.test_controller_reassignment import ask_isr, kinds, reassign, until_home
from tests.support.control_world import ControlWorld, run_world

TOPIC = znodes.topic_path("flights")


def test_it_ends_when_the_znode_is_mended() -> None:
    """Until then it is under way: its topic is not deleted."""

    async def test(world: ControlWorld) -> None:
        await world.start_brokers(1, 2, 3, 4)
        await world.create_topic("flights", {0: [1, 2]})
        await reassign(world, [3, 4])
        found = await world.store.get(TOPIC)
        assert found is not None
        await world.store.put(TOPIC, b"nonsense")
        await ask_isr(world, [1, 2, 3, 4])
        await world.settle(5)
        assert EventKind.REASSIGNMENT_WAITS in kinds(world)
        assert EventKind.REASSIGNMENT_COMPLETED not in kinds(world)
        await world.store.ensure(znodes.delete_topic_path("flights"))
        await world.store.put(TOPIC, found[0])
        await until_home(world, 3, 4)

        async def gone() -> bool | None:
            return await world.store.exists(TOPIC) is None or None

        await world.until_some(gone)

    run_world(test)
