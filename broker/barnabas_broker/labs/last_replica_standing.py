"""The ISR thins to one broker, that broker loses power: who has the records now?"""

from barnabas_broker.labs.lab import Lab, Prediction
from barnabas_broker.labs.stage import Stage

TOPIC = "letters"


async def scenario(stage: Stage) -> None:
    # The controller leads, for the ISR cannot shrink while the controller is paused.
    last = await stage.controller()
    others = [broker for broker in (1, 2, 3) if broker != last]
    await stage.create_topic(TOPIC, replicas=(last, *others), min_insync_replicas="2")
    await stage.produce(TOPIC, [b"one", b"two", b"three"], acks="all")
    stage.say("three records are acknowledged by all; no disk has been asked to flush them")
    for broker in others:
        await stage.pause(broker)
    await stage.produce(TOPIC, [b"alone"], acks=1)
    await stage.until("the ISR is the leader alone", lambda: stage.isr_is(TOPIC, (last,)))
    await stage.lose_power(last)
    for broker in others:
        await stage.resume(broker)
    stage.say("the two others are back, with all three records; only the last one may lead")
    await stage.start(last)
    await stage.until("somebody leads", lambda: _led(stage))
    await stage.until("all are in sync", lambda: stage.isr_is(TOPIC, (1, 2, 3)))
    await stage.say_replicas(TOPIC)
    seen = await stage.read(TOPIC)
    stage.check(
        "everything acknowledged by all is there", seen[:3] == [b"one", b"two", b"three"], seen
    )
    ends = {b: r.log_end_offset for b, r in (await stage.replicas(TOPIC)).items()}
    stage.check("and on all three replicas", all(end >= 3 for end in ends.values()), ends)


async def _led(stage: Stage) -> bool:
    return await stage.leader(TOPIC) != -1


LAB = Lab(
    name="last-replica-standing",
    title="The last in-sync replica loses power: what the others have must not be cut away",
    page="last-replica-standing",
    prediction=Prediction(
        "Three replicas have a record, none has flushed it. Two are cut off, the ISR shrinks to\n"
        "one; that one loses power, and with it the record. The two come back, with it. The only\n"
        "member of the ISR comes back, without it, and leads. What happens in Kafka?",
        (
            "the leader fetches the record from the others",
            "the others cut it away, for the leader does not have it",
            "one of the others leads, for it has more",
        ),
        1,
        "Followers always follow. Here two rules close the hole: before an ISR becomes thin its\n"
        "leader flushes what it has, and while it is thin only what is flushed counts; and a\n"
        "member that lost power is passed over for a replica that holds everything committed.",
    ),
    scenario=scenario,
    config={"log.disk": "volatile", "zookeeper.session.timeout.ms": "6000"},
    switch={"last.replica.fsync.enable": "false", "eligible.leader.replicas.enable": "false"},
)
