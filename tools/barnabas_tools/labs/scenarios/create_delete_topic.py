"""A topic's creation and deletion: znodes, folders; why a deletion waits for a dead broker."""

from pathlib import Path

from barnabas_common.errors import RequestTimedOutError

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "letters"


async def scenario(stage: LabCluster) -> None:
    controller = await stage.controller()
    # A new controller would not touch the topic until all its replicas are online.
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
        try:
            await admin.delete_topics([TOPIC], timeout_ms=2_000)
        except RequestTimedOutError as error:
            stage.say(f"    {error}")
    await stage.until(
        "the running brokers have deleted their replicas",
        lambda: _gone_from(stage, (controller, other)),
    )
    # The brokers answer in order: once this topic exists, the controller knows of the deletions.
    await stage.create_topic("another", replicas=(controller, other))
    request = await stage.znode(f"/admin/delete_topics/{TOPIC}")
    kept = await stage.znode(f"/brokers/topics/{TOPIC}")
    stage.check(
        f"the deletion is not done: it waits for broker {victim}",
        request is not None and kept is not None,
        f"/admin/delete_topics/{TOPIC} exists" if request is not None else "no znode is left",
    )
    await stage.start(victim)
    await stage.until("the topic's znodes are deleted", lambda: _forgotten(stage))
    await stage.until("that broker's folders are deleted", lambda: _gone_from(stage, (victim,)))
    stage.check("nothing of the topic is left", not any(_folders(stage, b) for b in (1, 2, 3)))


def _folders(stage: LabCluster, broker_id: int) -> list[Path]:
    return list(stage.cluster.layout.data_directory(broker_id).glob(f"{TOPIC}-[0-9]"))


async def _gone_from(stage: LabCluster, brokers: tuple[int, ...]) -> bool:
    return not any(_folders(stage, broker) for broker in brokers)


async def _forgotten(stage: LabCluster) -> bool:
    paths = (f"/brokers/topics/{TOPIC}", f"/admin/delete_topics/{TOPIC}")
    return [await stage.znode(path) for path in paths] == [None, None]


LAB = Lab(
    name="create-delete-topic",
    title="A topic in ZooKeeper and on disk, deleted while a broker is dead",
    page="topics",
    prediction=Prediction(
        "A topic is deleted while one of its brokers is dead. What happens?",
        (
            "it is deleted; the dead broker's copy stays on its disk forever",
            "the deletion waits, and ends when the dead broker has deleted its copy too",
            "the deletion is refused",
        ),
        1,
        "If the deletion ended immediately, the broker would return with records of an unknown\n"
        "topic, or, worse, of an earlier topic of the same name.",
    ),
    scenario=scenario,
)
