"""A topic's life: znodes, roles, folders; and why a deletion waits for a dead broker."""

from pathlib import Path

from barnabas_broker.labs.lab import Lab, Prediction
from barnabas_broker.labs.stage import Stage

TOPIC = "letters"


async def scenario(stage: Stage) -> None:
    controller = await stage.controller()
    # A new controller would leave the topic alone until all its replicas are online.
    victim, other = (broker for broker in (1, 2, 3) if broker != controller)
    await stage.create_topic(TOPIC, partitions=2, replicas=(1, 2, 3))
    stage.say(f"    /brokers/topics/{TOPIC}: {await stage.znode(f'/brokers/topics/{TOPIC}')}")
    state = await stage.znode(f"/brokers/topics/{TOPIC}/partitions/0/state")
    stage.say(f"    .../partitions/0/state: {state}")
    stage.check("every partition has a state znode", state is not None)
    stage.check(
        "every broker has its folders", all(len(_folders(stage, b)) == 2 for b in (1, 2, 3))
    )

    await stage.kill(victim)
    stage.say(f"delete the topic while broker {victim}, which has replicas of it, is dead")
    async with stage.admin() as admin:
        await admin.delete_topics([TOPIC])
    await stage.until(
        "the living brokers have dropped their replicas",
        lambda: _gone_from(stage, (controller, other)),
    )
    # These brokers answer the controller in order: it knows of the drops when this topic is there.
    await stage.create_topic("another", replicas=(controller, other))
    wish = await stage.znode(f"/admin/delete_topics/{TOPIC}")
    kept = await stage.znode(f"/brokers/topics/{TOPIC}")
    stage.check(
        f"the deletion is not done: it waits for broker {victim}",
        wish is not None and kept is not None,
        f"/admin/delete_topics/{TOPIC} is there" if wish is not None else "all znodes are gone",
    )
    await stage.start(victim)
    await stage.until("the topic's znodes are gone", lambda: _forgotten(stage))
    await stage.until("so are that broker's folders", lambda: _gone_from(stage, (victim,)))
    stage.check("nothing of the topic is left", not any(_folders(stage, b) for b in (1, 2, 3)))


def _folders(stage: Stage, broker_id: int) -> list[Path]:
    return list(stage.cluster.layout.data_directory(broker_id).glob(f"{TOPIC}-[0-9]"))


async def _gone_from(stage: Stage, brokers: tuple[int, ...]) -> bool:
    return not any(_folders(stage, broker) for broker in brokers)


async def _forgotten(stage: Stage) -> bool:
    paths = (f"/brokers/topics/{TOPIC}", f"/admin/delete_topics/{TOPIC}")
    return [await stage.znode(path) for path in paths] == [None, None]


LAB = Lab(
    name="create-delete-topic",
    title="A topic's life in ZooKeeper and on disk; a deletion waits for dead brokers",
    page="topics",
    prediction=Prediction(
        "A topic is deleted while one of the brokers that hold it is dead. What happens?",
        (
            "it is gone; the dead broker's copy stays on its disk for ever",
            "the deletion waits, and ends when the dead broker has dropped its copy too",
            "the deletion is refused",
        ),
        1,
        "If the topic were forgotten at once, the broker would come back with records of a topic\n"
        "nobody knows, or, worse, of an earlier topic of the same name.",
    ),
    scenario=scenario,
)
