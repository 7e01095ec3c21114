"""A copier is killed in the middle of a transaction, and another one goes on exactly there."""

from collections import Counter

from barnabas_tools.labs.framework.copier import AT_LEAST_ONCE, EXACTLY_ONCE
from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster, ScenarioBroken
from barnabas_tools.labs.framework.worker_process import WorkerProcess

SOURCE, TARGET, GROUP = "orders", "copies", "copy"
RECORDS = 40
KILLED_AFTER = 25
DELIVERY = "delivery"
"""The setting of the copier: `exactly-once` or `at-least-once`."""


async def scenario(stage: LabCluster) -> None:
    delivery = stage.application[DELIVERY]
    if delivery not in (EXACTLY_ONCE, AT_LEAST_ONCE):
        raise ScenarioBroken(f"{DELIVERY} wants {EXACTLY_ONCE} or {AT_LEAST_ONCE}")
    for topic in (SOURCE, TARGET):
        await stage.create_topic(topic, min_insync_replicas="2")
    values = [b"%d" % number for number in range(RECORDS)]
    await stage.produce(SOURCE, values, acks="all")
    arguments = (stage.view.bootstrap, SOURCE, TARGET, GROUP, delivery)
    stage.say(f"a copier takes ten records at a time, {delivery}")
    async with WorkerProcess(*arguments, str(KILLED_AFTER), program="copier") as first:
        await stage.until(f"it has copied record {KILLED_AFTER}", first.is_stuck)
        await stage.catch_up()
        stage.say(f"kill -9 of the copier, which has written 20 to {KILLED_AFTER} of the third ten")
        await first.kill()
    written = await stage.read(TARGET)
    stage.say(f"the log of {TARGET} has {len(written)} copies")
    last = str(RECORDS - 1)
    async with WorkerProcess(*arguments, "none", program="copier") as second:
        await stage.until("the next copier has copied the rest", lambda: second.has_worked_on(last))
        stage.say(f"the next copier began at {second.worked[0]}")

        async def is_visible() -> bool:
            return last.encode() in await stage.read(TARGET, isolation_level="read_committed")

        await stage.until("the last copy is committed", is_visible)
    seen = Counter(await stage.read(TARGET, isolation_level="read_committed"))
    missing = [value.decode() for value in values if not seen[value]]
    twice = [value.decode() for value in values if seen[value] > 1]
    stage.check("every record is copied", not missing, f"missing: {missing}")
    stage.check("no record is copied twice", not twice, f"twice: {twice}")
    written = await stage.read(TARGET)
    stage.say(f"a read_uncommitted reader sees {len(written)} records, {len(written) - RECORDS} of")
    stage.say("them from the transaction that was open when the copier was killed")


LAB = Lab(
    name="exactly-once",
    title="What becomes of the copies when a copier is killed between copy and commit",
    page="transactions",
    prediction=Prediction(
        "A copier reads ten records, writes their copies, and commits how far it has read. It is\n"
        "killed when it has written six of the ten copies 20 to 29. The copies and the commit are\n"
        "one transaction. Another copier takes over with the same transactional id. How often\n"
        "does a read_committed reader see the copies 20 to 25?",
        (
            "twice: the next copier begins at 20 and writes them again",
            "once: the six that were written are aborted, and the next copier writes all ten",
            "once: the next copier finds the six, and begins at 26",
            "never: the six are not committed, and the next copier begins at 30",
        ),
        1,
        "The copies and the offsets behind them are committed together or not at all. The next\n"
        "copier's init_transactions aborts what the first left open, and the group gives it the\n"
        "last committed offset, 20. The six copies stay in the log, hidden. `--switch` writes the\n"
        "copies and then commits the offsets, without a transaction: six copies are there twice.",
    ),
    scenario=scenario,
    config={
        "group.min.session.timeout.ms": "1000",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
    },
    application={DELIVERY: EXACTLY_ONCE},
    switch={DELIVERY: AT_LEAST_ONCE},
)
