"""What acks=0, 1 and all promise, shown by the end of a leader that alone has the records."""

from barnabas_common.errors import BarnabasError

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "letters"
LEADER, FOLLOWERS = 1, (2, 3)


async def scenario(stage: LabCluster) -> None:
    await stage.create_topic(TOPIC, replicas=(LEADER, *FOLLOWERS), min_insync_replicas="2")
    await stage.produce(TOPIC, [b"before"], acks="all")
    stage.say("both followers stop fetching")
    await stage.stop_fetching(*FOLLOWERS)

    answers: dict[str, BarnabasError | None] = {}
    short = {"delivery_timeout_ms": 2_000, "request_timeout_ms": 1_000}
    for acks, value, given in (
        ("0", b"acks=0", {"acks": 0}),
        ("1", b"acks=1", {"acks": 1}),
        ("all", b"acks=all", {"acks": "all", **short}),
    ):
        answers[acks] = await stage.try_to_produce(TOPIC, value, **given)
        said = answers[acks]
        stage.say(f"    acks={acks}: {'done' if said is None else type(said).__name__}")
    stage.check("acks=0 did not wait for an answer", answers["0"] is None)
    stage.check("acks=1 was acknowledged by the leader alone", answers["1"] is None)
    stage.check(
        "acks=all was not: no follower has the record", answers["all"] is not None, answers["all"]
    )

    stage.say("the leader dies, and with it the records that only it has")
    await stage.kill(LEADER)
    stage.pauses.release_all()
    await stage.until("a follower leads", lambda: stage.led_by_another(TOPIC, LEADER))
    await stage.produce(TOPIC, [b"after"], acks="all")
    await stage.start(LEADER)
    await stage.until("all are in sync", lambda: stage.isr_is(TOPIC, (1, 2, 3)))
    seen = await stage.read(TOPIC)
    stage.check("acks=all: everything acknowledged is there", {b"before", b"after"} <= set(seen))
    stage.check("acks=1: an acknowledged record is lost", b"acks=1" not in seen, seen)
    stage.check("acks=0: the unacknowledged record is lost too", b"acks=0" not in seen)


LAB = Lab(
    name="acks",
    title="What acks=0, acks=1 and acks=all promise",
    page="acks",
    prediction=Prediction(
        "Both followers have stopped fetching. Three records are sent, with acks=0, 1 and all.\n"
        "Then the leader is killed and the followers take over. Which of the three survive?",
        (
            "those that were acknowledged: acks=1 and acks=all",
            "only acks=all",
            "none; the one with acks=all was never acknowledged",
            "all: the leader had written them to its log",
        ),
        2,
        "acks=1 means that one broker has the record, and that broker died. acks=all means that\n"
        "every member of the ISR has it; they did not, so the producer received an error.",
    ),
    scenario=scenario,
    config={"replica.lag.time.max.ms": "30000"},
    pause_points=True,
)
