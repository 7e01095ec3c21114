"""Kafka before 0.11: two logs differ at one offset forever. Epochs show where to truncate."""

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "letters"
FLUSHED, UNFLUSHED = 1, 2


async def scenario(stage: LabCluster) -> None:
    await stage.restart_with(FLUSHED, "log.flush.interval.messages=1")
    await stage.create_topic(TOPIC, replicas=(FLUSHED, UNFLUSHED), min_insync_replicas="1")
    await stage.produce(TOPIC, [b"m1"])
    await stage.until("both know that it is committed", lambda: _high_watermarks_are(stage, 1))
    await stage.stop(UNFLUSHED)
    await stage.start(UNFLUSHED)
    await stage.until("both are in sync", lambda: stage.isr_is(TOPIC, (FLUSHED, UNFLUSHED)))
    stage.say(f"m1 is on both disks; broker {FLUSHED} flushes each record, {UNFLUSHED} none")
    await stage.produce(TOPIC, [b"m2"])
    await stage.until("both have m2", lambda: _ends_are(stage, 2))
    await stage.until("it is known to be committed", lambda: _high_watermark_is_durable(stage))

    await stage.lose_power(FLUSHED, UNFLUSHED)
    await stage.until("their sessions are over", lambda: _sessions_are_over(stage))
    stage.say(f"broker {UNFLUSHED} returns first: it is in the ISR, so it may lead; but it lost m2")
    await stage.start(UNFLUSHED)
    await stage.until("it leads", lambda: stage.led_by(TOPIC, UNFLUSHED))
    await stage.produce(TOPIC, [b"m3"])
    seen = await stage.read(TOPIC)
    stage.say(f"    a consumer sees {seen}")

    await stage.start(FLUSHED)
    await stage.until("both are in sync", lambda: stage.isr_is(TOPIC, (FLUSHED, UNFLUSHED)))
    await stage.produce(TOPIC, [b"m4"])
    await stage.until("both end alike", lambda: _ends_are(stage, 3))
    for broker in (FLUSHED, UNFLUSHED):
        await stage.stop(broker)
    logs = {broker: stage.log_values(broker, TOPIC) for broker in (FLUSHED, UNFLUSHED)}
    for broker, values in logs.items():
        stage.say(f"    the log of broker {broker}: {values}")
    stage.check("both logs hold the same", logs[FLUSHED] == logs[UNFLUSHED])
    stage.check("all records after the power loss are there", logs[FLUSHED][1:] == [b"m3", b"m4"])
    stage.say("m2 is lost with either rule: the broker without it on disk led first")


async def _ends_are(stage: LabCluster, offset: int) -> bool:
    return await stage.every_replica(TOPIC, 2, lambda r: r.log_end_offset == offset)


async def _high_watermarks_are(stage: LabCluster, offset: int) -> bool:
    return await stage.every_replica(TOPIC, 2, lambda r: r.high_watermark == offset)


async def _high_watermark_is_durable(stage: LabCluster) -> bool:
    """Whether the checkpoint, which a restarted broker starts from, says 2."""
    file = stage.cluster.layout.data_directory(FLUSHED) / "replication-offset-checkpoint"
    return file.exists() and f"{TOPIC} 0 2" in file.read_text()


async def _sessions_are_over(stage: LabCluster) -> bool:
    paths = [f"/brokers/ids/{broker}" for broker in (FLUSHED, UNFLUSHED)]
    return [await stage.znode(path) for path in paths] == [None, None]


LAB = Lab(
    name="divergence",
    title="Two replicas lose power, and their logs differ at one offset",
    page="truncation",
    prediction=Prediction(
        "Two replicas lose power. One had not flushed its last record, m2; it returns first,\n"
        "leads, and appends m3 at m2's offset. Then the other returns with m2, which it knows to\n"
        "be committed. What is at that offset afterwards?",
        (
            "m2 on one and m3 on the other, forever",
            "m3 on both: the follower truncates where its epoch ended in the leader's log",
            "m2 on both: it was committed",
        ),
        1,
        "Truncation to the high watermark would keep m2 on one and m3 on the other. With epochs\n"
        "the follower asks where its last epoch ended in the leader's log, and truncates there.\n"
        "m2 is lost for another reason: it was on one disk only, and that broker returned second.",
    ),
    scenario=scenario,
    brokers=2,  # no third controller is left, which might take either out of the ISR
    # The broker that lost m2 must lead immediately, as in Kafka, without waiting for the other.
    config={
        "auto.leader.rebalance.enable": "false",
        "log.disk": "volatile",
        "eligible.leader.replicas.enable": "false",
    },
    switch={"replica.truncation": "high-watermark"},
)
