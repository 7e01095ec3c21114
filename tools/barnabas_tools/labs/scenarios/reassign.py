"""A partition moves to other brokers while it is written to, and no record is lost."""

from barnabas_common.topic_partition import TopicPartition

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster
from barnabas_tools.labs.framework.writer import Writer

TOPIC = "letters"
PARTITION = TopicPartition(TOPIC, 0)
OLD, NEW = (1, 2), (3, 4)


async def scenario(stage: LabCluster) -> None:
    await stage.create_topic(TOPIC, replicas=OLD, min_insync_replicas="2")
    writer = Writer(stage.view.bootstrap, TOPIC)
    writing = stage.meanwhile(writer.run())
    await stage.until("records are acknowledged", lambda: writer.has_written(100))
    state = await stage.partition(TOPIC)
    stage.say(f"    before: replicas {state.replicas}, leader {state.leader_id}")

    stage.say(f"move it from brokers {list(OLD)} to {list(NEW)} while the producer continues")
    async with stage.admin() as admin:
        await admin.alter_partition_reassignments({PARTITION: NEW})
    sizes = [len(state.in_sync_replicas)]

    async def moved() -> bool:
        now = await stage.partition(TOPIC)
        if now.replicas:  # a broker has answered
            sizes.append(len(now.in_sync_replicas))
        return tuple(now.replicas) == NEW and sorted(now.in_sync_replicas) == sorted(NEW)

    took = await stage.until("only the new brokers have it", moved)
    state = await stage.partition(TOPIC)
    stage.say(f"    after {took:.1f} s: replicas {state.replicas}, leader {state.leader_id}")
    wanted = len(writer.acknowledged) + 50
    await stage.until("the producer goes on", lambda: writer.has_written(wanted))
    writer.stop.set()
    await writing

    stage.check("one of the new brokers leads", state.leader_id in NEW, state.leader_id)
    seen = f"{min(sizes)} to {max(sizes)} members"
    stage.check("the ISR was never smaller than before", min(sizes) >= len(OLD), seen)
    await stage.until("the old logs are deleted", lambda: _dropped(stage))
    stage.check("the old brokers have no folder of it", True)
    lost = writer.lost(await stage.read(TOPIC))
    stage.check(
        "every record acknowledged before, during and after the move is there",
        not lost,
        f"{len(writer.acknowledged)} acknowledged, {len(lost)} lost",
    )


async def _dropped(stage: LabCluster) -> bool:
    folders = (stage.cluster.layout.data_directory(broker) / str(PARTITION) for broker in OLD)
    return not any(folder.exists() for folder in folders)


LAB = Lab(
    name="reassign",
    title="A partition moves to other brokers while it is written to",
    page="reassignment",
    prediction=Prediction(
        "A partition must move from brokers 1 and 2 to brokers 3 and 4. In which order?",
        (
            "3 and 4 copy it, then producers are stopped for the switch",
            "the old copies are deleted first, to make room",
            "3 and 4 join as followers, then one of them leads, then the old ones are deleted",
        ),
        2,
        "It is ordinary replication: the new replicas catch up and join the ISR. Only when all of\n"
        "them are members, leadership moves and the old replicas are deleted. Until then the move\n"
        "can be cancelled, and there are never fewer copies than before.",
    ),
    scenario=scenario,
    brokers=4,
)
