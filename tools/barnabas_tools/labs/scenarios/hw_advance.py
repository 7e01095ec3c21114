"""The high watermark follows the slowest member of the ISR, one fetch later."""

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "letters"
LEADER, FAST, SLOW = 1, 2, 3


async def scenario(stage: LabCluster) -> None:
    await stage.create_topic(TOPIC, replicas=(LEADER, FAST, SLOW))
    await stage.produce(TOPIC, [b"one", b"two"], acks="all")
    await _until_all_are_at(stage, 2)
    await stage.say_replicas(TOPIC)

    await stage.pause(SLOW)
    stage.say("three more records with acks=1: the leader acknowledges them alone")
    await stage.produce(TOPIC, [b"three", b"four", b"five"], acks=1)
    await stage.until("the other follower has them", lambda: _has_all(stage))
    await stage.say_replicas(TOPIC)
    leader = (await stage.replicas(TOPIC))[LEADER]
    stage.check("the paused follower is still in the ISR", SLOW in await stage.isr(TOPIC))
    stage.check("the leader's log end is 5", leader.log_end_offset == 5, leader.log_end_offset)
    stage.check("its high watermark is 2", leader.high_watermark == 2, leader.high_watermark)
    seen = await stage.read(TOPIC)
    stage.check("a consumer sees only the records below it", seen == [b"one", b"two"], seen)

    await stage.resume(SLOW)
    await _until_all_are_at(stage, 5)
    await stage.say_replicas(TOPIC)
    seen = await stage.read(TOPIC)
    stage.check("now a consumer sees all five", len(seen) == 5, seen)


async def _until_all_are_at(stage: LabCluster, offset: int) -> None:
    await stage.until(
        f"every replica's high watermark is {offset}",
        lambda: stage.every_replica(TOPIC, 3, lambda replica: replica.high_watermark == offset),
    )


async def _has_all(stage: LabCluster) -> bool:
    return await stage.log_end(FAST, TOPIC) == 5


LAB = Lab(
    name="hw-advance",
    title="What a consumer sees while a member of the ISR is slow",
    page="offsets",
    prediction=Prediction(
        "A follower in the ISR is paused. Then the leader appends three records from a producer\n"
        "with acks=1. What does a consumer see?",
        (
            "all three: the leader has them",
            "none of the three, until the follower has them too or leaves the ISR",
            "an error, because a replica is missing",
        ),
        1,
        "The high watermark is the smallest log end offset in the ISR. Records above it could\n"
        "still be lost with the leader, so no consumer sees them.",
    ),
    scenario=scenario,
    # The paused broker must stay in the ISR for as long as the lab takes.
    config={"replica.lag.time.max.ms": "30000", "zookeeper.session.timeout.ms": "18000"},
)
