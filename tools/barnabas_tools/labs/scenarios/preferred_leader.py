"""Leadership returns to the first replica of the assignment, automatically or on request."""

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "letters"
PREFERRED = 1


async def scenario(stage: LabCluster) -> None:
    await stage.create_topic(TOPIC, replicas=(PREFERRED, 2, 3))
    stage.say(f"broker {PREFERRED} leads; as the first of the assignment it is preferred")
    await stage.stop(PREFERRED)
    await stage.until("another leads", lambda: stage.led_by_another(TOPIC, PREFERRED))
    leader = await stage.leader(TOPIC)
    stage.check("leadership moved within the ISR", leader in (2, 3), f"broker {leader}")
    await stage.start(PREFERRED)
    await stage.until("it is in the ISR", lambda: stage.isr_is(TOPIC, (1, 2, 3)))
    stage.say("it is back in sync, and the other brokers still lead")
    took = await stage.comes(lambda: stage.led_by(TOPIC, PREFERRED))
    claim = "the controller has moved leadership back"
    stage.check(claim, took is not None, stage.after(took))


LAB = Lab(
    name="preferred-leader",
    title="Which broker leads after a restart",
    page="elections",
    prediction=Prediction(
        "A leader is restarted and is in the ISR again. Which broker leads?",
        (
            "the broker that took over, permanently",
            "the restarted one, as soon as it runs",
            "the one that took over, until the controller's next check of the imbalance",
        ),
        2,
        "After a rolling restart the last broker to be restarted would lead nothing. Every\n"
        "leader.imbalance.check.interval.seconds the controller compares leaders with preferred\n"
        "leaders, and moves leadership back to a broker if others lead more than 10 % of its own.",
    ),
    scenario=scenario,
    config={"leader.imbalance.check.interval.seconds": "1"},
    switch={"auto.leader.rebalance.enable": "false"},
)
