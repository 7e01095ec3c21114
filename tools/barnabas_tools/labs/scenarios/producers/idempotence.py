"""A leader dies after a record is stored and before the producer has its answer."""

from collections.abc import Sequence

from barnabas import Producer
from barnabas.producer import ProducerOptions
from barnabas_common.runtime import PausePoint

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

WITH, WITHOUT = "letters", "postcards"
ORDER = {WITH: (1, 2, 3), WITHOUT: (2, 3, 1)}
LETTER = b"letter"


async def scenario(stage: LabCluster) -> None:
    for topic, replicas in ORDER.items():
        await stage.create_topic(topic, replicas=replicas, min_insync_replicas="2")

    stage.say("an idempotent producer: every batch names its producer id and its sequence")
    offset = await _answer_lost(stage, WITH, ORDER[WITH], enable_idempotence=True)
    seen = await stage.read(WITH)
    stage.check("the record is there once", seen.count(LETTER) == 1, seen)
    stage.check("the answer names the offset of the first attempt", offset == 1, offset)
    stage.check("what was sent next follows it", seen[-1:] == [b"after"], seen)

    stage.say("the same with enable_idempotence=False")
    await _answer_lost(stage, WITHOUT, ORDER[WITHOUT], enable_idempotence=False)
    seen = await stage.read(WITHOUT)
    stage.check("without idempotence the retry has written it twice", seen.count(LETTER) == 2, seen)


async def _answer_lost(
    stage: LabCluster, topic: str, replicas: Sequence[int], enable_idempotence: bool
) -> int:
    """Kill the leader when one follower has the record and the other holds back the answer.

    Returns the offset that the producer was told in the end.
    """
    leader, next_leader, late = replicas
    # No option, as in most applications, unless idempotence is to be off.
    options: ProducerOptions = {"retry_backoff_ms": 50}
    if not enable_idempotence:
        options["enable_idempotence"] = False
    async with Producer(stage.view.bootstrap, **options) as producer:
        await producer.send_and_wait(topic, b"before", partition=0)
        stage.say(f"broker {late} stops fetching, so that acks=all has to wait")
        await stage.stop_fetching(late)
        sending = stage.meanwhile(producer.send_and_wait(topic, LETTER, partition=0))

        async def is_copied() -> bool:
            return await stage.log_end(next_leader, topic) == 2

        await stage.until(f"broker {next_leader} has the record", is_copied)
        await stage.say_replicas(topic)
        await stage.kill(leader)
        await stage.until("another broker leads", lambda: stage.led_by_another(topic, leader))
        stage.pauses.release(late, PausePoint.FOLLOWER_BEFORE_FETCH)
        metadata = await sending
        stage.say(f"the producer has sent it again, and was told offset {metadata.offset}")
        await producer.send_and_wait(topic, b"after", partition=0)
    await stage.start(leader)
    await stage.until("all are in sync", lambda: stage.isr_is(topic, replicas))
    return metadata.offset


LAB = Lab(
    name="idempotence",
    title="A leader dies after it stored a record and before it answered",
    page="idempotence",
    prediction=Prediction(
        "A record is in the logs of the leader and of one follower. Before the producer has its\n"
        "answer, the leader is killed; that follower leads, and the producer, which cannot know\n"
        "how far its record came, sends it again. How often is the record in the log?",
        (
            "twice: the new leader never spoke with this producer",
            "once: the new leader finds producer id and sequence of the batch in its own log",
            "once: the unacknowledged copy is truncated before the retry arrives",
            "not at all: the producer gives up, and the copy was not committed",
        ),
        1,
        "The header of a batch names its producer and the sequence of its first record. Every\n"
        "replica knows the last five batches of each producer from its log, also a new leader.\n"
        "It does not store a batch again that it knows; it answers with the first one's offset.",
    ),
    scenario=scenario,
    config={"replica.lag.time.max.ms": "30000"},
    pause_points=True,
)
