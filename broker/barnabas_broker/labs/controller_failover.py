"""The controller dies: another broker wins /controller, under a higher controller epoch."""

from barnabas_broker.labs.lab import Lab, Prediction
from barnabas_broker.labs.stage import Stage

TOPIC = "letters"


async def scenario(stage: Stage) -> None:
    old = await stage.controller()
    others = [broker for broker in (1, 2, 3) if broker != old]
    # Led by another broker than the controller, so that only the controller is missed at first.
    await stage.create_topic(TOPIC, replicas=(others[0], others[1], old), min_insync_replicas="2")
    epoch = int(await stage.znode("/controller_epoch") or 0)
    stage.say(f"broker {old} is controller, epoch {epoch}; broker {others[0]} leads {TOPIC}")

    await stage.kill(old)
    error = await stage.try_to_produce(TOPIC, b"meanwhile", acks=1)
    stage.check("records flow without a controller", error is None, error or "acknowledged")
    new = await stage.controller()
    new_epoch = int(await stage.znode("/controller_epoch") or 0)
    stage.check("another broker is controller", new in others, f"broker {new}")
    stage.check("under a higher epoch", new_epoch > epoch, f"{epoch} -> {new_epoch}")

    await stage.until("the dead broker leaves the ISR", lambda: stage.isr_is(TOPIC, others))
    await stage.create_topic("made-by-the-new-one", replicas=others)
    stage.check("the new controller creates topics", True)
    await stage.start(old)
    await stage.until("all are in sync", lambda: stage.isr_is(TOPIC, (1, 2, 3)))
    still = await stage.controller()
    stage.check("the old one comes back as an ordinary broker", still == new, f"broker {still}")


LAB = Lab(
    name="controller-failover",
    title="The controller dies: another broker takes its place, with a higher epoch",
    page="controller",
    prediction=Prediction(
        "The controller is killed; it leads no partition. What stops?",
        (
            "everything, until there is a new one",
            "nothing that is already running: only new decisions wait",
            "consumers go on, producers stop",
        ),
        1,
        "Leaders and followers know their roles. The controller is needed when these must change:\n"
        "elections, ISR changes, new topics. Whoever creates /controller first is the next.",
    ),
    scenario=scenario,
)
