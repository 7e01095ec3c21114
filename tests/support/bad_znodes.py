"""A cluster whose znodes are damaged, and the events that its brokers report about them."""

from barnabas_common.events import EventKind
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.store import Store

from tests.support.control_world import ControlWorld

FLIGHTS, OTHER = TopicPartition("flights", 0), TopicPartition("other", 0)
# Malformed, truncated, empty, another type, a version with other fields.
NONSENSE = [b"", b"{", b"nonsense", b"[]", b"7", b'{"version":99}', b"\xff\xfe", b"null"]


async def start_cluster(world: ControlWorld) -> None:
    """Broker 9 is controller and has no replicas; 1 leads both topics."""
    await world.start_brokers(9, 1, 2, 3)
    for partition in (FLIGHTS, OTHER):
        await world.create_topic(partition.topic, {0: [1, 2, 3]})
        await world.until(lambda p=partition: world.brokers[3].role(p) is not None)  # type: ignore[misc]


def reports(world: ControlWorld, path: str, broker_id: int = 9) -> list[str]:
    """Return the causes of the broker's `znode-malformed` events about this znode."""
    return [
        event.cause
        for event in world.brokers[broker_id].events.since(0)
        if event.kind is EventKind.ZNODE_MALFORMED and event.details["path"] == path
    ]


async def reported(world: ControlWorld, path: str, broker_id: int = 9) -> None:
    """Wait until the broker has reported this znode as malformed."""
    await world.until(lambda: bool(reports(world, path, broker_id)))


async def other_goes_on(world: ControlWorld) -> None:
    """Broker 1 dies and 2 leads the partition with a sound znode; the controller is still the
    first.
    """
    await world.kill_and_expire(1)
    await world.until_state(OTHER, lambda s: s.leader == 2)
    still_the_first(world)


def still_the_first(world: ControlWorld) -> None:
    """Assert that broker 9 is still controller, in its first term."""
    assert world.controller() is world.brokers[9]
    assert world.brokers[9].controller.epoch == 1


async def raw(world: ControlWorld, path: str) -> bytes:
    return await raw_of(world.store, path)


async def raw_of(store: Store, path: str) -> bytes:
    """Return a znode's data; fails if the znode does not exist."""
    found = await store.get(path)
    assert found is not None
    return found[0]
