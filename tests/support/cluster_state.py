"""What a test asks a running cluster through the public client, and waits for."""

import asyncio

from barnabas import Admin
from barnabas_common.errors import TransportError
from barnabas_tools.local.readiness import ask


async def create_topic(
    bootstrap: str, topic: str, partitions: int, *, replication_factor: int = 3, **configs: str
) -> None:
    """Create a topic, with `min.insync.replicas=2` unless `configs` has it; names use _ for dots.

    Returns when every broker that answers knows the topic.
    """
    named = {"min.insync.replicas": str(min(2, replication_factor))}
    named |= {name.replace("_", "."): value for name, value in configs.items()}
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.create_topic(
            topic, partitions=partitions, replication_factor=replication_factor, configs=named
        )

    await known_everywhere(bootstrap, topic)


async def known_everywhere(bootstrap: str, topic: str, within: float = 20.0) -> None:
    """Wait until each broker that answers knows the topic:

    UpdateMetadata reaches them one by one.
    """
    async with asyncio.timeout(within):
        for address in bootstrap.split(","):
            while not await _knows(address, topic):
                await asyncio.sleep(0.02)


async def _knows(address: str, topic: str) -> bool:
    try:
        return topic in [known.topic for known in (await ask(address)).topics]
    except TransportError:
        return True


async def leaders(bootstrap: str, topic: str) -> dict[int, int]:
    """Return the leader of each partition, -1 for none."""
    async with Admin(bootstrap_servers=bootstrap) as admin:
        description = (await admin.describe_topics([topic]))[0]
    return {p.partition: p.leader_id for p in description.partitions}


async def until_not_led_by(
    bootstrap: str, topic: str, broker_id: int, within: float = 20.0
) -> None:
    """Wait until every partition is led by another broker.

    UpdateMetadata reaches the brokers one by one, and the broker that answers may be the last.
    """
    async with asyncio.timeout(within):
        while not {broker_id, -1}.isdisjoint((await leaders(bootstrap, topic)).values()):
            await asyncio.sleep(0.05)


async def controller_id(bootstrap: str) -> int:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        return (await admin.describe_cluster()).controller_id


async def choose(bootstrap: str, topic: str, victim: str) -> int:
    """Return the leader of the first partition, one of its followers, or the controller."""
    led = (await leaders(bootstrap, topic))[0]
    controller = await controller_id(bootstrap)
    if victim == "follower":
        return next(b for b in (1, 2, 3) if b not in (led, controller))
    return controller if victim == "controller" else led


async def wait_until_in_sync(
    bootstrap: str, topic: str, replicas: int = 3, within: float = 40.0
) -> None:
    """Wait until every partition has a leader and `replicas` members in its ISR."""
    async with asyncio.timeout(within), Admin(bootstrap_servers=bootstrap) as admin:
        while True:
            description = (await admin.describe_topics([topic]))[0]
            if all(
                p.leader_id >= 0 and len(p.in_sync_replicas) >= replicas
                for p in description.partitions
            ):
                return
            await asyncio.sleep(0.05)
