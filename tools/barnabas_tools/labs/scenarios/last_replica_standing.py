"""The ISR shrinks to one broker, and that broker loses power: which broker has the records?"""

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "letters"


async def scenario(stage: LabCluster) -> None:
    # The controller leads, because the ISR cannot shrink while the controller is paused.
    last = await stage.controller()
    others = [broker for broker in (1, 2, 3) if broker != last]
    await stage.create_topic(TOPIC, replicas=(last, *others), min_insync_replicas="2")
    await stage.produce(TOPIC, [b"one", b"two", b"three"], acks="all")
    stage.say("three records are acknowledged by all replicas; no disk has flushed them")
    for broker in others:
        await stage.pause(broker)
    await stage.produce(TOPIC, [b"alone"], acks=1)
    await stage.until("the ISR is the leader alone", lambda: stage.isr_is(TOPIC, (last,)))
    await stage.lose_power(last)
    for broker in others:
        await stage.resume(broker)
    stage.say("the two others are back with all three records; only the last one is in the ISR")
    await stage.start(last)
    await stage.until("a broker leads", lambda: _led(stage))
    await stage.until("all are in sync", lambda: stage.isr_is(TOPIC, (1, 2, 3)))
    await stage.say_replicas(TOPIC)
    seen = await stage.read(TOPIC)
    stage.check(
        "everything acknowledged by all is there", seen[:3] == [b"one", b"two", b"three"], seen
    )
    ends = {b: r.log_end_offset for b, r in (await stage.replicas(TOPIC)).items()}
    stage.check("all three replicas have it", all(end >= 3 for end in ends.values()), ends)


async def _led(stage: LabCluster) -> bool:
    return await stage.leader(TOPIC) != -1


LAB = Lab(
    name="last-replica-standing",
    title="The last in-sync replica loses power",
    page="last-replica-standing",
    prediction=Prediction(
        "Three replicas have a record, and none has flushed it. Two are disconnected, and the ISR\n"
        "shrinks to one; that one loses power, and so the record. The two return with it. The\n"
        "only member of the ISR returns without it, and leads. What happens in Kafka?",
        (
            "the leader fetches the record from the others",
            "the others truncate it, because the leader does not have it",
            "one of the others leads, because it has more",
        ),
        1,
        "Followers always follow. Here two rules prevent the loss. Before an ISR falls below\n"
        "min.insync.replicas or to one member its leader flushes, and from then on only flushed\n"
        "records count. And a replica that has every committed record leads instead of a member\n"
        "that lost power.",
    ),
    scenario=scenario,
    config={"log.disk": "volatile", "zookeeper.session.timeout.ms": "6000"},
    switch={"last.replica.fsync.enable": "false", "eligible.leader.replicas.enable": "false"},
)
