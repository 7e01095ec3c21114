"""A follower that does not keep up leaves the ISR, and comes back when it has caught up."""

from barnabas_broker.labs.lab import Lab, Prediction
from barnabas_broker.labs.stage import Stage

TOPIC = "letters"


async def scenario(stage: Stage) -> None:
    # The controller leads, for the ISR cannot change while the controller is paused.
    leader = await stage.controller()
    steady, slow = (broker for broker in (1, 2, 3) if broker != leader)
    await stage.create_topic(TOPIC, replicas=(leader, steady, slow), min_insync_replicas="2")
    await stage.produce(TOPIC, [b"one"], acks="all")
    stage.say(f"the ISR is {await stage.isr(TOPIC)}, min.insync.replicas is 2")

    await stage.pause(slow)
    stage.say("nothing is written: a follower that has everything is in sync, however silent")
    await stage.produce(TOPIC, [b"two"], acks=1)
    stage.say("now there is a record that it does not have")
    took = await stage.until("it leaves the ISR", lambda: stage.isr_is(TOPIC, (leader, steady)))
    stage.check("the paused follower has left the ISR", True, f"after {took:.1f} s")
    error = await stage.try_to_produce(TOPIC, b"three")
    stage.check("acks=all goes on with two", error is None, error or "acknowledged")

    await stage.pause(steady)
    await stage.produce(TOPIC, [b"four"], acks=1)
    await stage.until("the leader is alone", lambda: stage.isr_is(TOPIC, (leader,)))
    error = await stage.try_to_produce(TOPIC, b"refused", retries=2)
    stage.check(
        "acks=all is refused: one replica is less than min.insync.replicas",
        "NOT_ENOUGH_REPLICAS" in str(error),
        error or "acknowledged",
    )

    await stage.resume(steady)
    await stage.resume(slow)
    took = await stage.until("both are back", lambda: stage.isr_is(TOPIC, (1, 2, 3)))
    stage.check("caught up, both are in the ISR again", True, f"after {took:.1f} s")
    error = await stage.try_to_produce(TOPIC, b"five")
    stage.check("and acks=all is served", error is None, error or "acknowledged")
    seen = await stage.read(TOPIC)
    expected = [b"one", b"two", b"three", b"four", b"five"]
    stage.check("every acknowledged record is there, and no other", seen == expected, seen)


LAB = Lab(
    name="isr-shrink",
    title="Who does not keep up leaves the ISR; too small an ISR refuses acks=all",
    page="isr",
    prediction=Prediction(
        "Three replicas, min.insync.replicas=2. Both followers are paused for longer than\n"
        "replica.lag.time.max.ms. What happens to a producer with acks=all?",
        (
            "it is answered: the leader has the record, and the ISR is only the leader",
            "it waits until a follower is back",
            "it is refused with NOT_ENOUGH_REPLICAS",
        ),
        2,
        "The ISR shrinks so that the partition need not wait for the slow; min.insync.replicas is\n"
        "the floor under that: fewer copies than this are not worth an acknowledgement.",
    ),
    scenario=scenario,
    # The brokers are paused for longer than a follower may lag, and keep their sessions.
    config={"zookeeper.session.timeout.ms": "40000"},
    switch={"replica.lag.time.max.ms": "600000"},
)
