"""A producer that seemed dead comes back after another one has taken over its transactional id."""

from barnabas import Producer
from barnabas_common.errors import BarnabasError

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "payments"
FIRST = "biller"
SUCCESSOR = "successor.transactional.id"
"""The setting of the second instance: the id of the first, or one of its own."""
PAYMENT = b"bill 7"


async def scenario(stage: LabCluster) -> None:
    successor = stage.application[SUCCESSOR]
    await stage.create_topic(TOPIC, min_insync_replicas="2")
    bootstrap = stage.view.bootstrap
    async with (
        Producer(bootstrap, transactional_id=FIRST) as zombie,
        Producer(bootstrap, transactional_id=successor) as second,
    ):
        await zombie.init_transactions()
        await zombie.begin_transaction()
        await zombie.send_and_wait(TOPIC, PAYMENT, partition=0)
        stage.say(f"instance 1, transactional id {FIRST!r}, has sent {PAYMENT!r} and stands still")
        stage.say(f"instance 2 takes over the work, with transactional id {successor!r}")
        await second.init_transactions()
        async with second.transaction():
            await second.send(TOPIC, PAYMENT, partition=0)
        await stage.catch_up()
        stage.say("instance 1 goes on where it was: it commits")
        try:
            await zombie.commit_transaction()
            refusal: BarnabasError | None = None
        except BarnabasError as error:
            refusal = error
        told = "committed" if refusal is None else f"{type(refusal).__name__}"
        stage.check("instance 1 is refused", refusal is not None and refusal.fatal, told)
        await second.begin_transaction()
        await second.send(TOPIC, b"bill 8", partition=0)
        await second.commit_transaction()
        stage.say("instance 2 is not disturbed, and commits its next transaction")

    async def has_both() -> bool:
        return b"bill 8" in await stage.read(TOPIC, isolation_level="read_committed")

    if await stage.comes(has_both) is None:
        stage.say("a read_committed reader does not get that far")
    seen = await stage.read(TOPIC, isolation_level="read_committed")
    stage.check("the payment is there once", seen.count(PAYMENT) == 1, seen)
    stage.check("what instance 2 wrote is there", b"bill 8" in seen, seen)


LAB = Lab(
    name="zombie-fencing",
    title="A producer that seemed dead commits after its work was given to another one",
    page="transactions",
    prediction=Prediction(
        "Instance 1 has an open transaction and stands still. Instance 2 starts with the same\n"
        "transactional id, writes the same payment and commits. Then instance 1 wakes up and\n"
        "commits its transaction. What does a read_committed reader see?",
        (
            "the payment twice: both transactions were committed",
            "the payment of instance 1: it began first",
            "the payment of instance 2: instance 1 is refused",
            "none: the second commit undoes the first",
        ),
        2,
        "Of the producers with one transactional id the one that was initialized last counts.\n"
        "Its init_transactions raised the epoch and aborted the transaction that was open. The\n"
        "request of instance 1 has the old epoch, so it is refused, and it must close.\n"
        "`--switch` gives instance 2 an id of its own: then nothing fences instance 1.",
    ),
    scenario=scenario,
    config={"transaction.state.log.num.partitions": "1"},
    application={SUCCESSOR: FIRST},
    switch={SUCCESSOR: "biller-2"},
)
