"""kill -9 of a transaction's coordinator: another broker reads the transaction and ends it."""

from barnabas import Producer
from barnabas_common.topic_name import TRANSACTION_STATE_TOPIC

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "orders"
NAME = "billing"
PARTITIONS = 2
REPLICATION = "transaction.state.log.replication.factor"
MIN_ISR = "transaction.state.log.min.isr"


async def scenario(stage: LabCluster) -> None:
    async with Producer(
        stage.view.bootstrap, transactional_id=NAME, retry_backoff_ms=50
    ) as producer:
        await producer.init_transactions()
        coordinator, _ = await _described(stage)
        await stage.until("its partition has all its replicas", lambda: _is_replicated(stage))
        others = [broker for broker in stage.view.present if broker != coordinator]
        stage.say(f"broker {coordinator} coordinates {NAME!r}; it leads no partition of {TOPIC}")
        await stage.create_topic(
            TOPIC, PARTITIONS, replicas=(*others, coordinator), min_insync_replicas="2"
        )
        await producer.begin_transaction()
        for partition in range(PARTITIONS):
            await producer.send_and_wait(TOPIC, b"open", partition=partition)
        stage.say("a transaction is open in both partitions")

        await stage.kill(coordinator)
        commit = stage.meanwhile(producer.commit_transaction())

        async def is_committed() -> bool:
            if commit.done():
                commit.result()  # raises why it failed
            return commit.done()

        took = await stage.comes(is_committed)
        stage.check("the producer's commit succeeds", took is not None, stage.after(took))
        if took is not None:
            now, state = await _described(stage)
            stage.check("another broker coordinates", now in others, f"broker {now}, {state}")
        for partition in range(PARTITIONS):
            took = await stage.comes(lambda number=partition: _reads(stage, number))  # type: ignore[misc]
            seen = await stage.read(TOPIC, partition, "read_committed")
            stage.check(f"partition {partition} shows what is committed", took is not None, seen)
        await stage.start(coordinator)
        await stage.until("the commit has succeeded", is_committed)
        async with producer.transaction():
            await producer.send(TOPIC, b"next", partition=0)
        stage.say("the next transaction is committed, by the same producer")


async def _reads(stage: LabCluster, partition: int) -> bool:
    return b"open" in await stage.read(TOPIC, partition, "read_committed")


async def _described(stage: LabCluster) -> tuple[int, str]:
    async with stage.admin() as admin:
        found = (await admin.describe_transactions([NAME]))[NAME]
    return found.coordinator, found.state


async def _is_replicated(stage: LabCluster) -> bool:
    partition = await stage.partition(TRANSACTION_STATE_TOPIC)
    return sorted(partition.in_sync_replicas) == sorted(partition.replicas)


LAB = Lab(
    name="transaction-coordinator-failover",
    title="kill -9 of the broker that coordinates an open transaction",
    page="transactions",
    prediction=Prediction(
        "A producer has written to two partitions in a transaction. The broker that coordinates\n"
        "it is killed with kill -9; it leads neither partition. Then the producer commits. What\n"
        "happens?",
        (
            "the commit fails: the next coordinator does not know the transaction",
            "the transaction is aborted; the producer has to send its records again",
            "the commit takes a moment longer, and succeeds",
            "the commit waits until that broker is back",
        ),
        2,
        "Which partitions a transaction has is in __transaction_state before the first record\n"
        "is sent, and so is the decision, each acknowledged by the in-sync replicas. The next\n"
        "leader of that partition reads it, takes the commit, and writes the markers. `--switch`\n"
        "gives __transaction_state one replica: then nothing is decided until that broker is back.",
    ),
    scenario=scenario,
    config={"transaction.state.log.num.partitions": "1", "auto.leader.rebalance.enable": "false"},
    switch={REPLICATION: "1", MIN_ISR: "1"},
)
