"""How a follower learns from the leader's epochs where to truncate its log."""

from pathlib import Path

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "letters"
OLD, NEXT, THIRD = 1, 2, 3


async def scenario(stage: LabCluster) -> None:
    await stage.create_topic(TOPIC, replicas=(OLD, NEXT, THIRD), min_insync_replicas="2")
    await stage.produce(TOPIC, [b"a", b"b"])
    stage.say("the followers stop fetching; the leader appends three records that no one copies")
    await stage.stop_fetching(NEXT, THIRD)
    await stage.produce(TOPIC, [b"x", b"y", b"z"], acks=1)
    await stage.kill(OLD)
    stage.pauses.release_all()
    await stage.until("another leads", lambda: stage.led_by_another(TOPIC, OLD))
    leader = await stage.leader(TOPIC)
    await stage.produce(TOPIC, [b"c", b"d", b"e", b"f"])
    _say_epochs(stage, OLD)
    _say_epochs(stage, leader)

    stage.say("the old leader returns with five records in its log")
    await stage.start(OLD)
    await stage.until("all are in sync", lambda: stage.isr_is(TOPIC, (OLD, NEXT, THIRD)))
    await stage.until("all logs end alike", lambda: _ends_are(stage, 6))
    for broker in (OLD, NEXT, THIRD):
        await stage.stop(broker)
    _say_epochs(stage, OLD)
    expected = [b"a", b"b", b"c", b"d", b"e", b"f"]
    for broker in (OLD, NEXT, THIRD):
        values = stage.log_values(broker, TOPIC)
        stage.check(f"broker {broker} has the leader's log", values == expected, values)


def _say_epochs(stage: LabCluster, broker_id: int) -> None:
    """Print the checkpoint: version, count, then each epoch with its start offset."""
    folder: Path = stage.cluster.layout.data_directory(broker_id) / f"{TOPIC}-0"
    _, _, *epochs = (folder / "leader-epoch-checkpoint").read_text().splitlines()
    shown = ", ".join(f"epoch {e} from {start}" for e, start in (line.split() for line in epochs))
    stage.say(f"    broker {broker_id}'s leader-epoch-checkpoint: {shown}")


async def _ends_are(stage: LabCluster, offset: int) -> bool:
    return await stage.every_replica(TOPIC, 3, lambda r: r.log_end_offset == offset)


LAB = Lab(
    name="leader-epoch",
    title="A returning leader makes its log equal to the new leader's",
    page="leader-epochs",
    prediction=Prediction(
        "A leader appended three records that no follower copied, and died. The next leader\n"
        "started a new epoch and appended four others. The old leader returns with log end offset\n"
        "5; the new leader's is 6. It fetches from offset 5. What does it get?",
        (
            "the record at offset 5, the only one it lacks",
            "the answer that its epoch ended at 2: it truncates to 2 and fetches from there",
            "an error: its offset is out of range",
        ),
        1,
        "Each fetch contains the epoch of the follower's last record. The leader knows the start\n"
        "offset of each epoch in its own log, so it knows that the logs share only two records.",
    ),
    scenario=scenario,
    config={"replica.lag.time.max.ms": "30000"},
    pause_points=True,
)
