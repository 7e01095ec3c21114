"""All replicas are down: wait for a member of the ISR, or elect the first that returns."""

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

PATIENT, HASTY = "patient", "hasty"
LAST, BEHIND = 1, (2, 3)


async def scenario(stage: LabCluster) -> None:
    for topic, unclean in ((PATIENT, "false"), (HASTY, "true")):
        await stage.create_topic(
            topic,
            replicas=(LAST, *BEHIND),
            min_insync_replicas="1",
            unclean_leader_election_enable=unclean,
        )
        await stage.produce(topic, [b"first"], acks="all")
    for broker in BEHIND:
        await stage.kill(broker)
    for topic in (PATIENT, HASTY):
        await stage.until("the ISR is one broker", lambda t=topic: stage.isr_is(t, (LAST,)))  # type: ignore[misc]
        await stage.produce(topic, [b"second"], acks="all")
    await stage.kill(LAST)
    stage.say("all replicas are down; the two that are behind return")
    for broker in BEHIND:
        await stage.start(broker, wait=False)
    await stage.until("the hasty topic has a leader", lambda: stage.led_by_another(HASTY, LAST))
    leader = await stage.leader(PATIENT)
    stage.check("the patient topic has none", leader not in BEHIND, f"leader {leader}")
    seen = await stage.read(HASTY)
    stage.check(
        "the hasty topic has a leader and lacks its second record", seen == [b"first"], seen
    )

    await stage.start(LAST)
    await stage.until("the patient topic is led", lambda: stage.led_by(PATIENT, LAST))
    seen = await stage.read(PATIENT)
    stage.check("the patient topic has lost nothing", seen == [b"first", b"second"], seen)
    await stage.until("replicas agree", lambda: stage.isr_is(HASTY, (1, 2, 3)))
    seen = await stage.read(HASTY)
    stage.check("the hasty topic has lost its second record", seen == [b"first"], seen)


LAB = Lab(
    name="all-replicas-down",
    title="All replicas are down, and return one after the other",
    page="elections",
    prediction=Prediction(
        "Three replicas die one after the other, and records are acknowledged until the last one\n"
        "dies. The first two return. What can the controller do?",
        (
            "wait for the third (and lose nothing), or elect one of the two (and lose records)",
            "elect one of the two: together they have every record",
            "only wait until all three are running",
        ),
        0,
        "Kafka first elected any replica; since 0.11 it waits by default.\n"
        "unclean.leader.election.enable chooses, for the cluster or for one topic.",
    ),
    scenario=scenario,
)
