"""No member of the ISR is running: wait, or lose records."""

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "letters"
BEHIND, LEADER = 1, 2


async def scenario(stage: LabCluster) -> None:
    await stage.create_topic(TOPIC, replicas=(LEADER, BEHIND), min_insync_replicas="1")
    await stage.produce(TOPIC, [b"first"], acks="all")
    await stage.kill(BEHIND)
    await stage.until("it leaves the ISR", lambda: stage.isr_is(TOPIC, (LEADER,)))
    await stage.produce(TOPIC, [b"second"], acks="all")
    stage.say('"second" is acknowledged: the leader is the whole ISR, and has it')

    await stage.kill(LEADER)
    await stage.start(BEHIND)
    await stage.until("the partition has no leader", lambda: _offline_or_led(stage))
    leader = await stage.leader(TOPIC)
    stage.check("the replica that is behind does not lead", leader != BEHIND, f"leader {leader}")
    error = await stage.try_to_produce(
        TOPIC, b"third", delivery_timeout_ms=2_000, request_timeout_ms=1_000
    )
    stage.check("no producer can write", error is not None, error or "acknowledged")

    await stage.start(LEADER)
    if leader != BEHIND:
        await stage.until("it leads again", lambda: stage.led_by(TOPIC, LEADER))
    await stage.until("both are in sync", lambda: stage.isr_is(TOPIC, (BEHIND, LEADER)))
    seen = await stage.read(TOPIC)
    stage.check("no acknowledged record is lost", seen[:2] == [b"first", b"second"], seen)


async def _offline_or_led(stage: LabCluster) -> bool:
    """Whether the controller has acted on the leader's end."""
    return await stage.leader(TOPIC) != LEADER


LAB = Lab(
    name="unclean-election",
    title="No member of the ISR is running: availability or consistency",
    page="elections",
    prediction=Prediction(
        "A follower died and missed a record. Then the leader dies, and the follower returns.\n"
        "It is the only running replica. Does it lead?",
        (
            "yes: a partition should be available",
            "no: the partition waits for the last member of the ISR",
            "yes, but it accepts no writes",
        ),
        1,
        "Only a member of the ISR has every acknowledged record. unclean.leader.election.enable\n"
        'chooses availability instead: with `--switch` "second" is lost.',
    ),
    scenario=scenario,
    switch={"unclean.leader.election.enable": "true"},
)
