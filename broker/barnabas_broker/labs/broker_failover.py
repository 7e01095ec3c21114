"""kill -9 of a leader: the ISR has another, and no acknowledged record is lost."""

import asyncio

from barnabas import Producer

from barnabas_broker.labs.lab import Lab, Prediction
from barnabas_broker.labs.stage import Stage

TOPIC = "letters"
LEADER = 1


async def scenario(stage: Stage) -> None:
    await stage.create_topic(TOPIC, replicas=(LEADER, 2, 3), min_insync_replicas="2")
    acknowledged: dict[int, bytes] = {}
    gaps: list[float] = []
    stop = asyncio.Event()
    writing = stage.meanwhile(_write(stage, acknowledged, gaps, stop))
    await stage.until("50 records are acknowledged", lambda: _reached(acknowledged, 50))
    epoch = (await stage.partition(TOPIC)).leader_epoch

    await stage.kill(LEADER)
    took = await stage.until("another broker leads", lambda: stage.led_by_another(TOPIC, LEADER))
    state = await stage.partition(TOPIC)
    stage.say(f"broker {state.leader_id} leads after {took:.2f} s, epoch {state.leader_epoch}")
    so_far = len(acknowledged)
    await stage.until("the producer goes on", lambda: _reached(acknowledged, so_far + 50))
    stop.set()
    await writing

    stage.check("the new leader is of the ISR", state.leader_id in (2, 3), state.leader_id)
    stage.check("under a new leader epoch", state.leader_epoch > epoch, state.leader_epoch)
    stage.say(f"the longest time without an acknowledgement was {max(gaps):.2f} s")
    values = await stage.read(TOPIC)
    lost = [
        value for offset, value in acknowledged.items() if values[offset : offset + 1] != [value]
    ]
    stage.check(
        "every acknowledged record is at its offset with its value",
        not lost,
        f"{len(acknowledged)} acknowledged, {len(lost)} lost",
    )
    await stage.start(LEADER)
    await stage.until("it is in the ISR again", lambda: stage.isr_is(TOPIC, (1, 2, 3)))
    stage.check("the restarted broker follows", await stage.leader(TOPIC) != LEADER)


async def _write(
    stage: Stage, acknowledged: dict[int, bytes], gaps: list[float], stop: asyncio.Event
) -> None:
    """One record after the other; what was acknowledged where, and how long each took."""
    now = asyncio.get_running_loop().time
    async with Producer(stage.view.bootstrap, acks="all", retry_backoff_ms=50) as producer:
        number = 0
        while not stop.is_set():
            began = now()
            value = b"%d" % number
            metadata = await producer.send_and_wait(TOPIC, value, partition=0)
            acknowledged[metadata.offset] = value
            gaps.append(now() - began)
            number += 1


async def _reached(acknowledged: dict[int, bytes], count: int) -> bool:
    return len(acknowledged) >= count


LAB = Lab(
    name="broker-failover",
    title="kill -9 of a leader: another member of the ISR takes over, nothing acknowledged is lost",
    page="failure-detection",
    prediction=Prediction(
        "A producer writes with acks=all, one record after the other. The leader is killed with\n"
        "kill -9. What does the application notice?",
        (
            "some sends fail, and it must send them again",
            "one send takes longer; all are acknowledged, none is lost",
            "the records of the last milliseconds are lost",
        ),
        1,
        "What was acknowledged is in every ISR member's log: whoever of them leads next has it.\n"
        "What was not, the producer itself sends again to the new leader.",
    ),
    scenario=scenario,
)
