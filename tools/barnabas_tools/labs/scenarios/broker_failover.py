"""kill -9 of a leader: another member of the ISR leads, and no acknowledged record is lost."""

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster
from barnabas_tools.labs.framework.writer import Writer

TOPIC = "letters"


async def scenario(stage: LabCluster) -> None:
    await stage.create_topic(TOPIC, replicas=(1, 2, 3), min_insync_replicas="2")
    writer = Writer(stage.view.bootstrap, TOPIC)
    writing = stage.meanwhile(writer.run())
    await stage.until("50 records are acknowledged", lambda: writer.has_written(50))
    before = await stage.partition(TOPIC)
    leader = before.leader_id

    await stage.kill(leader)
    took = await stage.until("another broker leads", lambda: stage.led_by_another(TOPIC, leader))
    state = await stage.partition(TOPIC)
    stage.say(f"broker {state.leader_id} leads after {took:.2f} s, epoch {state.leader_epoch}")
    wanted = len(writer.acknowledged) + 50
    await stage.until("the producer goes on", lambda: writer.has_written(wanted))
    writer.stop.set()
    await writing

    was_in_isr = state.leader_id in before.in_sync_replicas
    stage.check("the new leader was in the ISR", was_in_isr, state.leader_id)
    is_new = state.leader_epoch > before.leader_epoch
    stage.check("it leads in a new leader epoch", is_new, state.leader_epoch)
    stage.say(f"the longest time without an acknowledgement was {writer.longest_wait:.2f} s")
    lost = writer.lost(await stage.read(TOPIC))
    stage.check(
        "every acknowledged record is at its offset with its value",
        not lost,
        f"{len(writer.acknowledged)} acknowledged, {len(lost)} lost",
    )
    await stage.start(leader)
    await stage.until("it is in the ISR again", lambda: stage.isr_is(TOPIC, (1, 2, 3)))
    stage.check("the restarted broker follows", await stage.leader(TOPIC) != leader)


LAB = Lab(
    name="broker-failover",
    title="kill -9 of a leader while a producer writes",
    page="failure-detection",
    prediction=Prediction(
        "A producer writes with acks=all, one record after the other. The leader is killed with\n"
        "kill -9. What does the application notice?",
        (
            "some sends fail, and it must send them again",
            "one send takes longer; all are acknowledged, none is lost",
            "the records of the last milliseconds are lost",
        ),
        1,
        "An acknowledged record is in the log of every ISR member, so the next leader has it.\n"
        "The producer itself sends all other records again, to the new leader.",
    ),
    scenario=scenario,
)
