"""Kafka before 0.11: a follower truncates to its late high watermark and loses a record."""

from barnabas import Producer
from barnabas_common.runtime import PausePoint

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "letters"
LEADER, FOLLOWER, THIRD = 1, 2, 3
BEFORE_FETCH = PausePoint.FOLLOWER_BEFORE_FETCH
BEFORE_APPLY = PausePoint.FOLLOWER_BEFORE_APPLY
BEFORE_ANSWER = PausePoint.LEADER_BEFORE_FETCH_ANSWER


async def scenario(stage: LabCluster) -> None:
    await stage.create_topic(TOPIC, replicas=(LEADER, FOLLOWER, THIRD), min_insync_replicas="1")
    await _commit_without_the_follower_hearing_of_it(stage)
    stage.say("m2 is acknowledged; the follower has it, but does not know that it is committed:")
    await stage.say_replicas(TOPIC)

    stage.pauses.hold(FOLLOWER, BEFORE_FETCH)
    epoch = (await stage.partition(TOPIC)).leader_epoch
    await stage.kill(THIRD)
    await stage.until("the ISR change brings a new epoch", lambda: _in_epoch(stage, epoch + 1))
    await stage.pauses.reached(FOLLOWER, BEFORE_FETCH)
    stage.say("the follower has become follower of the new epoch, and has not fetched yet:")
    await stage.say_replicas(TOPIC)
    end = await stage.log_end(FOLLOWER, TOPIC)
    stage.check("it has kept all its records", end == 2, f"log end offset {end}")

    await stage.kill(LEADER)
    await stage.until("the follower leads", lambda: stage.led_by(TOPIC, FOLLOWER))
    stage.pauses.release_all()
    seen = await stage.read(TOPIC)
    stage.check("the acknowledged record is there", seen == [b"m1", b"m2"], seen)
    await stage.start(LEADER)
    await stage.until("the old leader follows", lambda: _joined(stage))
    seen = await stage.read(TOPIC)
    stage.check("it remains after the old leader's return", seen == [b"m1", b"m2"], seen)


async def _commit_without_the_follower_hearing_of_it(stage: LabCluster) -> None:
    """Commit m2 by a follower's fetch, and hold back the answer to that fetch."""
    pauses = stage.pauses
    async with Producer(stage.view.bootstrap) as producer:
        await producer.send_and_wait(TOPIC, b"m1", partition=0)
        await stage.until("m1 is committed everywhere", lambda: _high_watermark_is(stage, 1))
        pauses.hold(FOLLOWER, BEFORE_FETCH, LEADER)
        await pauses.reached(FOLLOWER, BEFORE_FETCH, LEADER)
        sent = await producer.send(TOPIC, b"m2", partition=0)
        await stage.until("the leader has m2", lambda: _leader_end_is(stage, 2))
        pauses.hold(LEADER, BEFORE_ANSWER, FOLLOWER)
        pauses.release(FOLLOWER, BEFORE_FETCH, LEADER)
        await pauses.reached(LEADER, BEFORE_ANSWER, FOLLOWER)
        pauses.hold(FOLLOWER, BEFORE_APPLY, LEADER)
        pauses.release(LEADER, BEFORE_ANSWER, FOLLOWER)
        await pauses.reached(FOLLOWER, BEFORE_APPLY, LEADER)
        pauses.hold(LEADER, BEFORE_ANSWER, FOLLOWER)
        pauses.release(FOLLOWER, BEFORE_APPLY, LEADER)
        await sent


async def _high_watermark_is(stage: LabCluster, offset: int) -> bool:
    return await stage.every_replica(TOPIC, 3, lambda r: r.high_watermark == offset)


async def _leader_end_is(stage: LabCluster, offset: int) -> bool:
    return await stage.log_end(LEADER, TOPIC) == offset


async def _in_epoch(stage: LabCluster, epoch: int) -> bool:
    replicas = await stage.replicas(TOPIC)
    return all(replicas[b].leader_epoch >= epoch for b in (LEADER, FOLLOWER) if b in replicas)


async def _joined(stage: LabCluster) -> bool:
    return {LEADER, FOLLOWER} <= set(await stage.isr(TOPIC))


LAB = Lab(
    name="data-loss",
    title="What a follower may truncate when a leader epoch starts",
    page="truncation",
    prediction=Prediction(
        "A follower has a record, and its leader has acknowledged it; but the follower has not\n"
        "received the new high watermark yet. Now a new leader epoch starts, and its log must\n"
        "agree with the leader's. What may the follower truncate?",
        (
            "everything above its high watermark: it cannot know that this is committed",
            "nothing: in the leader's log its last epoch does not end before its own log does",
            "everything: it fetches the whole log again",
        ),
        1,
        "A follower's high watermark is always one fetch late. If it truncates there, and the\n"
        "leader dies before the record is fetched again, an acknowledged record is lost\n"
        "(KIP-101). `--switch` plays the same schedule with the rule of Kafka before 0.11.",
    ),
    scenario=scenario,
    # The follower that is held must stay in the ISR for as long as the lab takes.
    config={"auto.leader.rebalance.enable": "false", "replica.lag.time.max.ms": "30000"},
    switch={"replica.truncation": "high-watermark"},
    pause_points=True,
)
