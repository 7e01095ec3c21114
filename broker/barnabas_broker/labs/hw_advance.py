"""The high watermark follows the slowest member of the ISR, one fetch later."""

from barnabas_broker.labs.lab import Lab, Prediction
from barnabas_broker.labs.stage import Stage

TOPIC = "letters"
LEADER, FAST, SLOW = 1, 2, 3


async def scenario(stage: Stage) -> None:
    await stage.create_topic(TOPIC, replicas=(LEADER, FAST, SLOW))
    await stage.produce(TOPIC, [b"one", b"two"], acks="all")
    await _until_all_are_at(stage, 2)
    await stage.say_replicas(TOPIC)

    await stage.pause(SLOW)
    stage.say("three more records with acks=1: the leader alone answers")
    await stage.produce(TOPIC, [b"three", b"four", b"five"], acks=1)
    await stage.until("the other follower has them", lambda: _log_end_is(stage, FAST, 5))
    await stage.say_replicas(TOPIC)
    leader = (await stage.replicas(TOPIC))[LEADER]
    stage.check("the paused follower is still in the ISR", SLOW in await stage.isr(TOPIC))
    stage.check("the leader's log end is 5", leader.log_end_offset == 5, leader.log_end_offset)
    stage.check("its high watermark is 2", leader.high_watermark == 2, leader.high_watermark)
    seen = await stage.read(TOPIC)
    stage.check("a consumer sees only what is below it", seen == [b"one", b"two"], seen)

    await stage.resume(SLOW)
    await _until_all_are_at(stage, 5)
    await stage.say_replicas(TOPIC)
    seen = await stage.read(TOPIC)
    stage.check("now a consumer sees all five", len(seen) == 5, seen)


async def _until_all_are_at(stage: Stage, offset: int) -> None:
    async def arrived() -> bool:
        replicas = (await stage.replicas(TOPIC)).values()
        return len(replicas) == 3 and all(r.high_watermark == offset for r in replicas)

    await stage.until(f"every replica's high watermark is {offset}", arrived)


async def _log_end_is(stage: Stage, broker_id: int, offset: int) -> bool:
    return (await stage.replicas(TOPIC))[broker_id].log_end_offset == offset


LAB = Lab(
    name="hw-advance",
    title="The high watermark waits for the slowest member of the ISR",
    page="offsets",
    prediction=Prediction(
        "A follower in the ISR is paused. Then the leader appends three records for a producer\n"
        "that asked for acks=1. What does a consumer see?",
        (
            "all of them: the leader has them",
            "none of the three, until the follower has them too or leaves the ISR",
            "an error, because a replica is missing",
        ),
        1,
        "The high watermark is the smallest log end in the ISR. What lies above it could still be\n"
        "lost with the leader, so no consumer is shown it.",
    ),
    scenario=scenario,
    # The paused broker must stay a member for as long as the lab looks.
    config={"replica.lag.time.max.ms": "30000", "zookeeper.session.timeout.ms": "18000"},
)
