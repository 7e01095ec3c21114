"""A batch arrives after its transaction has ended; what it begins, no coordinator ends."""

from barnabas import Producer
from barnabas.admin import ConfigResource, OpenTransaction
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.topic_partition import TopicPartition

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.old_producer import OldProducer
from barnabas_tools.labs.framework.stage import LabCluster

VERIFICATION = "transaction.partition.verification.enable"
ASKED, NOT_ASKED = "orders", "payments"


async def scenario(stage: LabCluster) -> None:
    for topic in (ASKED, NOT_ASKED):
        await stage.create_topic(topic, min_insync_replicas="2")
    stage.say("a producer as before Kafka 4.0: all its transactions have the same epoch")
    answer = await _late_batch(stage, ASKED)
    stage.check("the late batch is refused", answer is not ErrorCode.NONE, answer.name)
    took = await stage.comes(lambda: _reads_behind(stage, ASKED))
    stage.check("readers are not blocked", took is not None, stage.after(took))
    await stage.say_replicas(ASKED)

    stage.say(f"the same with {VERIFICATION}=false, as all brokers before Kafka 3.6 were")
    async with stage.admin() as admin:
        everywhere = ConfigResource.all_brokers()
        await admin.incremental_alter_configs(everywhere, {VERIFICATION: "false"})
    answer = await _late_batch(stage, NOT_ASKED)
    await stage.say_replicas(NOT_ASKED)
    stage.check("without the question it is appended", answer is ErrorCode.NONE, answer.name)
    blocked = not await _reads_behind(stage, NOT_ASKED)
    stage.check("and blocks every read_committed reader: no timeout ends it", blocked)
    hanging = await _find(stage, NOT_ASKED)
    stage.check("find-hanging names it", len(hanging) == 1, _told(hanging))
    async with stage.admin() as admin:
        for found in hanging:
            producer = found.producer
            await admin.abort_transaction(
                found.topic_partition,
                producer.producer_id,
                producer.producer_epoch,
                producer.coordinator_epoch,
            )
    stage.say("barnabas transaction abort: the leader appends a marker")
    took = await stage.comes(lambda: _reads_behind(stage, NOT_ASKED))
    stage.check("then readers go on", took is not None, stage.after(took))


async def _late_batch(stage: LabCluster, topic: str) -> ErrorCode:
    """Send a batch when its transaction is aborted; then one record of another producer."""
    tp = TopicPartition(topic, 0)
    async with OldProducer(stage.view.bootstrap, f"late-{topic}") as producer:
        await producer.init()
        await producer.add(tp)
        batch = producer.batch(tp, b"late")
        stage.say(f"{topic}: a batch is under way; meanwhile its transaction is aborted")
        await producer.end(commit=False)
        await stage.until("the abort is complete", producer.is_complete)
        answer = await producer.send(tp, batch)
        stage.say(f"the batch arrives: {answer.name}")
    async with Producer(stage.view.bootstrap) as other:
        await other.send_and_wait(topic, b"behind", partition=0)
    return answer


async def _reads_behind(stage: LabCluster, topic: str) -> bool:
    return b"behind" in await stage.read(topic, isolation_level="read_committed")


async def _find(stage: LabCluster, topic: str) -> list[OpenTransaction]:
    async with stage.admin() as admin:
        return await admin.find_hanging_transactions([(topic, 0)], max_transaction_timeout_ms=0)


def _told(hanging: list[OpenTransaction]) -> str:
    return ", ".join(
        f"{found.topic_partition} from offset {found.producer.current_txn_start_offset} on,"
        f" producer id {found.producer.producer_id}"
        for found in hanging
    )


LAB = Lab(
    name="hanging-transaction",
    title="A batch of a transaction arrives when the transaction is over",
    page="last-stable-offset",
    prediction=Prediction(
        "A producer sends a batch, which the network delays. Its coordinator aborts the\n"
        "transaction and writes the marker. Then the batch arrives at the leader. It has the\n"
        "producer's present epoch and the right sequence. What does the leader do?",
        (
            "it appends the batch: id, epoch and sequence are right",
            "it refuses the batch: the coordinator says that it is not part of a transaction",
            "it appends the batch, and the coordinator aborts it after the timeout",
            "it refuses the batch: there is a newer marker in the log",
        ),
        1,
        "Appended, the batch would begin a transaction that its coordinator does not know. No\n"
        "timeout would end it, and no read_committed reader would get past it. So a leader asks\n"
        "the coordinator before it appends the first batch of a transaction (KIP-890).\n"
        "`--switch` turns the question off from the beginning.",
    ),
    scenario=scenario,
    config={"transaction.state.log.num.partitions": "1"},
    switch={VERIFICATION: "false"},
)
