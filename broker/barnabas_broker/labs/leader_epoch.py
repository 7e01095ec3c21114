"""What a follower asks, and how the leader's epochs tell it where to cut."""

from pathlib import Path

from barnabas_broker.labs.lab import Lab, Prediction
from barnabas_broker.labs.stage import Stage

TOPIC = "letters"
OLD, NEXT, THIRD = 1, 2, 3


async def scenario(stage: Stage) -> None:
    await stage.create_topic(TOPIC, replicas=(OLD, NEXT, THIRD), min_insync_replicas="2")
    await stage.produce(TOPIC, [b"a", b"b"])
    stage.say("the followers stop fetching; the leader takes three records that nobody copies")
    await stage.stop_fetching(NEXT, THIRD)
    await stage.produce(TOPIC, [b"x", b"y", b"z"], acks=1)
    await stage.kill(OLD)
    stage.pauses.release_all()
    await stage.until("another leads", lambda: stage.led_by_another(TOPIC, OLD))
    leader = await stage.leader(TOPIC)
    await stage.produce(TOPIC, [b"c", b"d", b"e", b"f"])
    _say_epochs(stage, OLD)
    _say_epochs(stage, leader)

    stage.say("the old leader comes back: its log has five records, of epochs it knows")
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


def _say_epochs(stage: Stage, broker_id: int) -> None:
    """Version, count, then a line per epoch: which, and from which offset on."""
    folder: Path = stage.cluster.layout.data_directory(broker_id) / f"{TOPIC}-0"
    _, _, *epochs = (folder / "leader-epoch-checkpoint").read_text().splitlines()
    told = ", ".join(f"epoch {e} from {start}" for e, start in (line.split() for line in epochs))
    stage.say(f"    broker {broker_id}'s leader-epoch-checkpoint: {told}")


async def _ends_are(stage: Stage, offset: int) -> bool:
    replicas = (await stage.replicas(TOPIC)).values()
    return len(replicas) == 3 and all(r.log_end_offset == offset for r in replicas)


LAB = Lab(
    name="leader-epoch",
    title="A returning leader asks where its last epoch ended, and cuts exactly there",
    page="leader-epochs",
    prediction=Prediction(
        "A leader took three records that nobody copied, and died. The next leader began a new\n"
        "epoch and wrote four others. The old one returns with log end 5, the leader's is 6.\n"
        "It asks for records from offset 5. What does it get?",
        (
            "the record at offset 5: it lacks just one",
            "the answer that its epoch ended at 2: it cuts to 2 and asks again from there",
            "an error: its offset is out of range",
        ),
        1,
        "Each fetch names the epoch of the last record the follower has. The leader knows where\n"
        "each epoch began in its log, so it knows that two records is all they share.",
    ),
    scenario=scenario,
    config={"replica.lag.time.max.ms": "30000"},
    pause_points=True,
)
