"""Leadership returns to the first replica of the assignment, by itself or when asked."""

from barnabas_broker.labs.lab import Lab, Prediction
from barnabas_broker.labs.stage import Stage

TOPIC = "letters"
PREFERRED = 1


async def scenario(stage: Stage) -> None:
    await stage.create_topic(TOPIC, replicas=(PREFERRED, 2, 3))
    stage.say(f"broker {PREFERRED}, first of the assignment, leads: it is the preferred leader")
    await stage.stop(PREFERRED)
    await stage.until("another leads", lambda: stage.led_by_another(TOPIC, PREFERRED))
    leader = await stage.leader(TOPIC)
    stage.check("a stopping leader hands over to the ISR", leader in (2, 3), f"broker {leader}")
    await stage.start(PREFERRED)
    await stage.until("it is in the ISR", lambda: stage.isr_is(TOPIC, (1, 2, 3)))
    stage.say("it is back and in sync: every leadership it had is still with the others")
    took = await stage.until(
        "the preferred leader leads again", lambda: stage.led_by(TOPIC, PREFERRED)
    )
    stage.check("the controller has given it back", True, f"after {took:.1f} s")


LAB = Lab(
    name="preferred-leader",
    title="Leadership goes back to the preferred leader, so that load stays spread",
    page="elections",
    prediction=Prediction(
        "A broker is restarted. It was the leader, and is in the ISR again. Who leads?",
        (
            "the broker that took over, for ever",
            "the restarted one as soon as it is up",
            "the one that took over, until the controller's next look at the imbalance",
        ),
        2,
        "After a rolling restart the last broker to be restarted would lead nothing. Every\n"
        "leader.imbalance.check.interval.seconds the controller compares leaders with preferred\n"
        "ones, and gives leadership back where more than 10 % differ.",
    ),
    scenario=scenario,
    config={"leader.imbalance.check.interval.seconds": "1"},
    switch={"auto.leader.rebalance.enable": "false"},
)
