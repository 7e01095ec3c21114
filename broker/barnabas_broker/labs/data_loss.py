"""Kafka before 0.11: a follower cuts to its late high watermark, and a committed record is gone."""

from barnabas import Producer
from barnabas.runtime import PausePoint

from barnabas_broker.labs.lab import Lab, Prediction
from barnabas_broker.labs.stage import Stage

TOPIC = "letters"
LEADER, FOLLOWER, THIRD = 1, 2, 3
BEFORE_FETCH = PausePoint.FOLLOWER_BEFORE_FETCH
BEFORE_APPLY = PausePoint.FOLLOWER_BEFORE_APPLY
BEFORE_ANSWER = PausePoint.LEADER_BEFORE_FETCH_ANSWER


async def scenario(stage: Stage) -> None:
    await stage.create_topic(TOPIC, replicas=(LEADER, FOLLOWER, THIRD), min_insync_replicas="1")
    await _commit_without_the_follower_hearing_of_it(stage)
    stage.say("m2 is acknowledged; the follower has it, but has not heard that it is committed:")
    await stage.say_replicas(TOPIC)

    stage.pauses.hold(FOLLOWER, BEFORE_FETCH)
    epoch = (await stage.partition(TOPIC)).leader_epoch
    await stage.kill(THIRD)
    await stage.until("the ISR change brings a new epoch", lambda: _in_epoch(stage, epoch + 1))
    await stage.pauses.reached(FOLLOWER, BEFORE_FETCH)
    stage.say("the follower has become follower of the new epoch, and has not fetched yet:")
    await stage.say_replicas(TOPIC)
    end = (await stage.replicas(TOPIC))[FOLLOWER].log_end_offset
    stage.check("it has kept what it had", end == 2, f"log end offset {end}")

    await stage.kill(LEADER)
    await stage.until("the follower leads", lambda: stage.led_by(TOPIC, FOLLOWER))
    stage.pauses.release_all()
    seen = await stage.read(TOPIC)
    stage.check("the acknowledged record is there", seen == [b"m1", b"m2"], seen)
    await stage.start(LEADER)
    await stage.until("the old leader follows", lambda: _joined(stage))
    seen = await stage.read(TOPIC)
    stage.check("and stays there", seen == [b"m1", b"m2"], seen)


async def _commit_without_the_follower_hearing_of_it(stage: Stage) -> None:
    """The leader knows from a fetch that the follower has m2; the answer to it is held back."""
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


async def _high_watermark_is(stage: Stage, offset: int) -> bool:
    replicas = (await stage.replicas(TOPIC)).values()
    return len(replicas) == 3 and all(r.high_watermark == offset for r in replicas)


async def _leader_end_is(stage: Stage, offset: int) -> bool:
    return (await stage.replicas(TOPIC))[LEADER].log_end_offset == offset


async def _in_epoch(stage: Stage, epoch: int) -> bool:
    replicas = await stage.replicas(TOPIC)
    return all(replicas[b].leader_epoch >= epoch for b in (LEADER, FOLLOWER) if b in replicas)


async def _joined(stage: Stage) -> bool:
    return {LEADER, FOLLOWER} <= set(await stage.isr(TOPIC))


LAB = Lab(
    name="data-loss",
    title="Truncating to the high watermark loses an acknowledged record; epochs keep it",
    page="truncation",
    prediction=Prediction(
        "A follower has a record, its leader has counted that and acknowledged it; only the news\n"
        "that it is committed has not reached the follower. Now a new leader epoch begins, and\n"
        "the follower must make its log fit the leader's. What may it cut?",
        (
            "everything above its high watermark: it cannot know that it is committed",
            "nothing: its last epoch does not end before its log in the leader's",
            "everything: it fetches it all again",
        ),
        1,
        "A follower's high watermark is always one fetch late. Cutting there, and then losing the\n"
        "leader before the record is fetched again, loses what was acknowledged (KIP-101).\n"
        "`--switch` plays the same schedule as Kafka before 0.11.",
    ),
    scenario=scenario,
    # The follower that is held must stay in the ISR for as long as the lab takes.
    config={"auto.leader.rebalance.enable": "false", "replica.lag.time.max.ms": "30000"},
    switch={"replica.truncation": "high-watermark"},
    pause_points=True,
)
