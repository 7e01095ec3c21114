"""A follower that does not keep up leaves the ISR, and rejoins when it has caught up."""

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "letters"


async def scenario(stage: LabCluster) -> None:
    # The controller leads, because the ISR cannot change while the controller is paused.
    leader = await stage.controller()
    steady, slow = (broker for broker in (1, 2, 3) if broker != leader)
    await stage.create_topic(TOPIC, replicas=(leader, steady, slow), min_insync_replicas="2")
    await stage.produce(TOPIC, [b"one"], acks="all")
    stage.say(f"the ISR is {await stage.isr(TOPIC)}, min.insync.replicas is 2")

    await stage.pause(slow)
    stage.say("nothing is written: a follower that has every record stays in sync without fetching")
    await stage.produce(TOPIC, [b"two"], acks=1)
    stage.say("now the leader has a record that the paused follower lacks")
    left = await stage.comes(lambda: stage.isr_is(TOPIC, (leader, steady)))
    stage.check("the paused follower has left the ISR", left is not None, stage.after(left))
    error = await stage.try_to_produce(TOPIC, b"three")
    stage.check("acks=all still works with two replicas", error is None, error or "acknowledged")
    if left is None:
        stage.say("each write with acks=all waits for the paused follower, as long as it is paused")
        await stage.resume(slow)
        return

    await stage.pause(steady)
    await stage.produce(TOPIC, [b"four"], acks=1)
    await stage.until("the leader is alone", lambda: stage.isr_is(TOPIC, (leader,)))
    error = await stage.try_to_produce(TOPIC, b"refused", retries=2)
    stage.check(
        "acks=all is refused: one replica is fewer than min.insync.replicas",
        "NOT_ENOUGH_REPLICAS" in str(error),
        error or "acknowledged",
    )

    await stage.resume(steady)
    await stage.resume(slow)
    took = await stage.until("both are back", lambda: stage.isr_is(TOPIC, (1, 2, 3)))
    stage.check("after catching up both are in the ISR again", True, f"after {took:.1f} s")
    error = await stage.try_to_produce(TOPIC, b"five")
    stage.check("acks=all works again", error is None, error or "acknowledged")
    seen = await stage.read(TOPIC)
    expected = [b"one", b"two", b"three", b"four", b"five"]
    stage.check("every acknowledged record is there, and no other", seen == expected, seen)


LAB = Lab(
    name="isr-shrink",
    title="Followers that do not keep up, and a producer with acks=all",
    page="isr",
    prediction=Prediction(
        "Three replicas, min.insync.replicas=2. Both followers are paused for longer than\n"
        "replica.lag.time.max.ms. What happens to a producer with acks=all?",
        (
            "it is acknowledged: the leader has the record and is the whole ISR",
            "it waits until a follower resumes",
            "it is refused with NOT_ENOUGH_REPLICAS",
        ),
        2,
        "The ISR shrinks so that the partition does not wait for slow replicas.\n"
        "min.insync.replicas is the lower limit: with fewer copies no record is acknowledged.",
    ),
    scenario=scenario,
    # The brokers are paused for longer than a follower may lag, and keep their sessions.
    config={"zookeeper.session.timeout.ms": "40000"},
    switch={"replica.lag.time.max.ms": "600000"},
)
