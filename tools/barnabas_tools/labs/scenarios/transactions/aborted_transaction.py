"""An aborted transaction: its records are in the log, and hidden from readers that ask for it."""

from typing import cast

from barnabas import Producer
from barnabas.consumer.config import IsolationLevel
from barnabas_common.record.batch import batches, whole_batch
from barnabas_common.record.reader import read_batch
from barnabas_common.record.transactional import marker_in

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "orders"
ISOLATION = "isolation.level"
COMMITTED = "read_committed"
# The record before, three of the aborted transaction, its marker, the record behind.
RECORDS_IN_LOG = [b"before", b"a1", b"a2", b"a3", b"behind"]
END_OF_LOG = 6


async def scenario(stage: LabCluster) -> None:
    level = cast(IsolationLevel, stage.application[ISOLATION])
    await stage.create_topic(TOPIC, min_insync_replicas="2")
    await stage.produce(TOPIC, [b"before"])
    async with Producer(stage.view.bootstrap, transactional_id="orders") as producer:
        await producer.init_transactions()
        await producer.begin_transaction()
        for value in (b"a1", b"a2", b"a3"):
            await producer.send_and_wait(TOPIC, value, partition=0)
        stage.say("three records of an open transaction are in the log of every replica")
        await stage.produce(TOPIC, [b"behind"])
        stage.say("and one of another producer, without a transaction, behind them")
        await stage.say_replicas(TOPIC)
        seen = await stage.read(TOPIC, isolation_level=level)
        stage.check("while it is open, a reader gets what is before it", seen == [b"before"], seen)
        await producer.abort_transaction()
        stage.say("abort: the leader appends a marker, a record that no reader gets")

    async def goes_on() -> bool:
        leader = (await stage.replicas(TOPIC))[await stage.leader(TOPIC)]
        return leader.last_stable_offset == leader.log_end_offset == END_OF_LOG

    took = await stage.comes(goes_on)
    await stage.say_replicas(TOPIC)
    stage.check("then the last stable offset is the end of the log", took is not None)
    seen = await stage.read(TOPIC, isolation_level=level)
    stage.check("the reader never sees what was aborted", seen == [b"before", b"behind"], seen)
    everything = await stage.read(TOPIC)
    stage.check("read_uncommitted readers see it forever", set(everything) == set(RECORDS_IN_LOG),
                everything)  # fmt: skip
    await stage.stop(3)
    stage.say("the log of broker 3:")
    for line in log_lines(stage.log_bytes(3, TOPIC)):
        stage.say(f"    {line}")


def log_lines(content: bytes) -> list[str]:
    """One line for each batch of a log."""
    lines = []
    for position, header in batches(content):
        batch = whole_batch(content, position, header)
        if header.is_control:
            marker = marker_in(batch)
            assert marker is not None
            what = "marker: " + ("commit" if marker.commit else "abort")
        else:
            what = ", ".join(repr(record.value) for record in read_batch(batch))
        of = f"  producer id {header.producer_id}" if header.is_transactional else ""
        lines.append(f"offset {header.base_offset}  {what}{of}")
    return lines


LAB = Lab(
    name="aborted-transaction",
    title="What a reader sees of a transaction that is aborted",
    page="last-stable-offset",
    prediction=Prediction(
        "A producer writes three records in a transaction. Another producer writes one behind\n"
        "them, without a transaction. Then the transaction is aborted. What becomes of the three\n"
        "records?",
        (
            "they are cut off, and the record behind them moves up",
            "they stay in the log; every reader leaves them out",
            "they stay in the log; readers with isolation_level=read_committed leave them out",
            "they never were in the log: a leader keeps them until the commit",
        ),
        2,
        "A leader writes the batches of a transaction as they come, and the outcome behind them.\n"
        "Nothing is ever taken out. With the batches the leader sends a list of the aborted\n"
        "transactions among them, and a read_committed reader leaves those out. `--switch` reads\n"
        "with the default, read_uncommitted.",
    ),
    scenario=scenario,
    config={"transaction.state.log.num.partitions": "1"},
    application={ISOLATION: COMMITTED},
    switch={ISOLATION: "read_uncommitted"},
)
