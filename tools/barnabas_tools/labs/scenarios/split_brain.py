"""A paused leader resumes: two brokers act as leader, and only one of them can commit."""

import asyncio

from barnabas import Producer
from barnabas_common.errors import BarnabasError

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "letters"
SLEEPER = 1


async def scenario(stage: LabCluster) -> None:
    await stage.create_topic(TOPIC, replicas=(SLEEPER, 2, 3), min_insync_replicas="2")
    await stage.produce(TOPIC, [b"before"], acks="all")
    async with Producer(
        stage.view.bootstrap, acks="all", delivery_timeout_ms=20_000, request_timeout_ms=20_000
    ) as producer:
        await producer.send_and_wait(TOPIC, b"known", partition=0)
        await stage.pause(SLEEPER)
        stage.say("a producer that knows no other leader sends to the paused one")
        late = stage.meanwhile(producer.send_and_wait(TOPIC, b"late", partition=0))
        await stage.until("another broker leads", lambda: stage.led_by_another(TOPIC, SLEEPER))
        await stage.produce(TOPIC, [b"after"], acks="all")
        await stage.say_replicas(TOPIC)
        stage.say("the old leader resumes; it does not know yet that it was replaced")
        await stage.resume(SLEEPER)
        offset = await _outcome(late)
    await stage.until("it follows, in sync", lambda: stage.isr_is(TOPIC, (1, 2, 3)))
    await stage.say_replicas(TOPIC)
    seen = await stage.read(TOPIC)
    stage.check(
        "what both leaders acknowledged is one log",
        seen[:3] == [b"before", b"known", b"after"],
        seen,
    )
    stage.check(
        "the late record was acknowledged only where it now stands",
        offset is None or seen[offset : offset + 1] == [b"late"],
        f"offset {offset}" if offset is not None else "it was refused",
    )
    replicas = await stage.replicas(TOPIC)
    leaders = [broker for broker, replica in replicas.items() if replica.is_leader]
    stage.check("one broker leads", len(leaders) == 1, f"brokers {leaders}")
    ends = {replica.log_end_offset for replica in replicas.values()}
    stage.check("all logs end alike", len(ends) == 1, sorted(ends))


async def _outcome(late: "asyncio.Task[object]") -> int | None:
    """Return the offset of the record sent to the paused leader; None if it was refused."""
    try:
        metadata = await late
    except BarnabasError:
        return None
    offset: int = metadata.offset  # type: ignore[attr-defined]
    return offset


LAB = Lab(
    name="split-brain",
    title="A paused leader resumes after another broker was elected",
    page="leader-epochs",
    prediction=Prediction(
        "A leader is paused until its session expires, and another broker is elected. The old\n"
        "leader resumes and finds a produce request (acks=all) in its socket. What happens to it?",
        (
            "the record is appended and acknowledged: there are two histories",
            "the old leader never acknowledges it: no follower fetches from it any more",
            "the old leader refuses it: it notices immediately that it was replaced",
        ),
        1,
        "The old leader may append the record. But to acknowledge it, the old ISR would have to\n"
        "fetch it, and those brokers follow the leader of a newer epoch. Once notified, the old\n"
        "leader truncates its log to the new leader's, and the producer sends the record again.",
    ),
    scenario=scenario,
)
