"""A partition moves to other brokers while it is written to, and nothing is lost on the way."""

import asyncio

from barnabas import Producer
from barnabas.topic_partition import TopicPartition

from barnabas_broker.labs.lab import Lab, Prediction
from barnabas_broker.labs.stage import Stage

TOPIC = "letters"
PARTITION = TopicPartition(TOPIC, 0)
OLD, NEW = (1, 2), (3, 4)


async def scenario(stage: Stage) -> None:
    await stage.create_topic(TOPIC, replicas=OLD, min_insync_replicas="2")
    acknowledged: dict[int, bytes] = {}
    stop = asyncio.Event()
    writing = stage.meanwhile(_write(stage, acknowledged, stop))
    await stage.until("records are acknowledged", lambda: _reached(acknowledged, 100))
    state = await stage.partition(TOPIC)
    stage.say(f"    before: replicas {state.replicas}, leader {state.leader_id}")

    stage.say(f"move it from brokers {list(OLD)} to {list(NEW)}, while the producer goes on")
    async with stage.admin() as admin:
        await admin.alter_partition_reassignments({PARTITION: NEW})
    sizes = [len(state.in_sync_replicas)]

    async def moved() -> bool:
        now = await stage.partition(TOPIC)
        if now.replicas:  # somebody has answered
            sizes.append(len(now.in_sync_replicas))
        return tuple(now.replicas) == NEW and sorted(now.in_sync_replicas) == sorted(NEW)

    took = await stage.until("only the new brokers have it", moved)
    state = await stage.partition(TOPIC)
    stage.say(f"    after {took:.1f} s: replicas {state.replicas}, leader {state.leader_id}")
    so_far = len(acknowledged)
    await stage.until("the producer goes on", lambda: _reached(acknowledged, so_far + 50))
    stop.set()
    await writing

    stage.check("one of the new brokers leads", state.leader_id in NEW, state.leader_id)
    seen = f"{min(sizes)} to {max(sizes)} members"
    stage.check("the ISR was never smaller than before", min(sizes) >= len(OLD), seen)
    await stage.until("the old logs are deleted", lambda: _dropped(stage))
    stage.check("the old brokers have no folder of it", True)
    values = await stage.read(TOPIC)
    lost = [v for offset, v in acknowledged.items() if values[offset : offset + 1] != [v]]
    stage.check(
        "every record acknowledged before, meanwhile and after is there",
        not lost,
        f"{len(acknowledged)} acknowledged, {len(lost)} lost",
    )


async def _write(stage: Stage, acknowledged: dict[int, bytes], stop: asyncio.Event) -> None:
    async with Producer(stage.view.bootstrap, acks="all", retry_backoff_ms=50) as producer:
        while not stop.is_set():
            value = b"%d" % len(acknowledged)
            metadata = await producer.send_and_wait(TOPIC, value, partition=0)
            acknowledged[metadata.offset] = value


async def _reached(acknowledged: dict[int, bytes], count: int) -> bool:
    return len(acknowledged) >= count


async def _dropped(stage: Stage) -> bool:
    folders = (stage.cluster.layout.data_directory(broker) / str(PARTITION) for broker in OLD)
    return not any(folder.exists() for folder in folders)


LAB = Lab(
    name="reassign",
    title="A partition moves to other brokers while it is written to",
    page="reassignment",
    prediction=Prediction(
        "A partition on brokers 1 and 2 is to move to 3 and 4. In which order?",
        (
            "3 and 4 are told to copy it, then producers are stopped for the switch",
            "the old copies go first, to make room",
            "3 and 4 join as followers, then one of them leads, then the old ones go",
        ),
        2,
        "It is ordinary replication: the new replicas catch up and join the ISR; only when all of\n"
        "them are members does leadership move and do the old ones leave. Until then it can be\n"
        "cancelled, and at no moment are there fewer copies than before.",
    ),
    scenario=scenario,
    brokers=4,
)
