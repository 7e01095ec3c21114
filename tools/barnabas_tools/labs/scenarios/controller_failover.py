"""The controller dies: another broker creates /controller, with a higher controller epoch."""

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "letters"


async def scenario(stage: LabCluster) -> None:
    old = await stage.controller()
    others = [broker for broker in (1, 2, 3) if broker != old]
    # Led by another broker, so that at first only the controller is missing.
    await stage.create_topic(TOPIC, replicas=(others[0], others[1], old), min_insync_replicas="2")
    epoch = int(await stage.znode("/controller_epoch") or 0)
    stage.say(f"broker {old} is controller, epoch {epoch}; broker {others[0]} leads {TOPIC}")

    await stage.kill(old)
    error = await stage.try_to_produce(TOPIC, b"meanwhile", acks=1)
    stage.check("a producer can write without a controller", error is None, error or "acknowledged")
    new = await stage.controller()
    new_epoch = int(await stage.znode("/controller_epoch") or 0)
    stage.check("another broker is controller", new in others, f"broker {new}")
    stage.check("it has a higher epoch", new_epoch > epoch, f"{epoch} -> {new_epoch}")

    await stage.until("the dead broker leaves the ISR", lambda: stage.isr_is(TOPIC, others))
    await stage.create_topic("made-by-the-new-one", replicas=others)
    stage.check("the new controller creates topics", True)
    await stage.start(old)
    await stage.until("all are in sync", lambda: stage.isr_is(TOPIC, (1, 2, 3)))
    still = await stage.controller()
    stage.check("the old one returns as an ordinary broker", still == new, f"broker {still}")


LAB = Lab(
    name="controller-failover",
    title="The controller dies",
    page="controller",
    prediction=Prediction(
        "The controller is killed; it leads no partition. What stops?",
        (
            "everything, until there is a new one",
            "only new decisions: producers, leaders and followers continue",
            "producers stop, consumers continue",
        ),
        1,
        "Leaders and followers have their roles. The controller is needed to change them:\n"
        "elections, ISR changes, new topics. The first broker to create /controller is the next.",
    ),
    scenario=scenario,
)
