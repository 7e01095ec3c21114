"""kill -9 of a group's coordinator: another broker reads the group from its log and goes on."""

import asyncio
from collections.abc import Sequence

from barnabas import Consumer, OffsetAndMetadata, Producer, RebalanceListener
from barnabas_common.errors import RebalanceInProgressError
from barnabas_common.topic_name import GROUP_METADATA_TOPIC
from barnabas_common.topic_partition import TopicPartition

from barnabas_tools.labs.framework.lab import Lab, Prediction
from barnabas_tools.labs.framework.stage import LabCluster

TOPIC = "orders"
GROUP = "shop"
PARTITIONS = 2
REPLICATION = "offsets.topic.replication.factor"


class _Member(RebalanceListener):
    """Reads, and commits after each record; `acknowledged` is what was committed last."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.acknowledged: dict[TopicPartition, int] = {}
        self.commits = 0
        self.longest_wait = 0.0
        self.given_up: list[TopicPartition] = []
        self.has_part = False
        self.stop = asyncio.Event()

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self.has_part = self.has_part or bool(partitions)

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        if not self.stop.is_set():
            self.given_up += partitions

    async def run(self, bootstrap: str) -> None:
        now = asyncio.get_running_loop().time
        async with Consumer(
            bootstrap_servers=bootstrap,
            group_id=GROUP,
            client_id=self.name,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            partition_assignment_strategy=["cooperative-sticky"],
            heartbeat_interval_ms=300,
            session_timeout_ms=20_000,
        ) as consumer:
            consumer.subscribe(TOPIC, self)
            while not self.stop.is_set():
                for record in await consumer.poll(timeout_ms=100, max_records=1):
                    began = now()
                    tp, offset = TopicPartition(TOPIC, record.partition), record.offset + 1
                    try:
                        await consumer.commit({tp: OffsetAndMetadata(offset)})
                    except RebalanceInProgressError:  # the other one joins: poll, then commit
                        break
                    self.acknowledged[tp] = offset
                    self.commits += 1
                    self.longest_wait = max(self.longest_wait, now() - began)


async def scenario(stage: LabCluster) -> None:
    coordinator = await _coordinator(stage)
    others = [broker for broker in stage.view.present if broker != coordinator]
    stage.say(f"broker {coordinator} coordinates group {GROUP}; it leads no partition of {TOPIC}")
    await stage.create_topic(TOPIC, PARTITIONS, replicas=(*others, coordinator))
    stop = asyncio.Event()
    writing = stage.meanwhile(_write(stage, stop))
    members = [_Member("a"), _Member("b")]
    running = [stage.meanwhile(member.run(stage.view.bootstrap)) for member in members]

    async def have_committed(count: int) -> bool:
        for task in running:
            if task.done():
                task.result()  # raises why it ended
        return all(member.commits >= count for member in members)

    await stage.until("both commit", lambda: have_committed(20))
    for member in members:  # the rebalances so far were those of their joins
        member.given_up.clear()
    before = await _generation(stage)
    acknowledged = {tp: offset for member in members for tp, offset in member.acknowledged.items()}
    stage.say(f"acknowledged commits: {_told(acknowledged)}")

    await stage.kill(coordinator)
    wanted = max(member.commits for member in members) + 20
    took = await stage.comes(lambda: have_committed(wanted))
    stage.check("both members commit again, without a restart", took is not None, stage.after(took))
    if took is not None:
        wait = max(member.longest_wait for member in members)
        stage.say(f"the longest commit took {wait:.2f} s")
        stage.check("another broker coordinates", await _coordinator(stage) in others)
        await _check_nothing_is_lost(stage, acknowledged, before)
    given_up = [tp for member in members for tp in member.given_up]
    stage.check("no member gave up a partition", not given_up, list(map(str, given_up)) or "none")

    await stage.start(coordinator)
    await stage.until("both commit", lambda: have_committed(wanted))
    for member in members:
        member.stop.set()
    stop.set()
    await asyncio.gather(writing, *running)


async def _check_nothing_is_lost(
    stage: LabCluster, acknowledged: dict[TopicPartition, int], generation: int
) -> None:
    async with stage.admin() as admin:
        offsets = {tp: o.offset for tp, o in (await admin.list_group_offsets(GROUP)).items()}
    lost = {tp: offset for tp, offset in acknowledged.items() if offsets.get(tp, -1) < offset}
    stage.check("no acknowledged commit is lost", not lost, _told(offsets))
    after = await _generation(stage)
    stage.check("it is the same generation", after == generation, after)


async def _coordinator(stage: LabCluster) -> int:
    """The first to ask has `__consumer_offsets` created."""
    async with stage.admin() as admin:
        found = (await admin.describe_groups([GROUP]))[GROUP].coordinator
    await stage.until("its partition has all its replicas", lambda: _is_replicated(stage))
    return found


async def _is_replicated(stage: LabCluster) -> bool:
    partition = await stage.partition(GROUP_METADATA_TOPIC)
    away = stage.view.away
    return sorted(partition.in_sync_replicas) == sorted(set(partition.replicas) - away)


async def _generation(stage: LabCluster) -> int:
    async with stage.admin() as admin:
        return (await admin.describe_groups([GROUP]))[GROUP].generation


async def _write(stage: LabCluster, stop: asyncio.Event) -> None:
    """Records in every partition, until it is told to stop."""
    async with Producer(stage.view.bootstrap, retry_backoff_ms=50) as producer:
        while not stop.is_set():
            for partition in range(PARTITIONS):
                await producer.send_and_wait(TOPIC, b"x", partition=partition)
            await asyncio.sleep(0.02)


def _told(offsets: dict[TopicPartition, int]) -> str:
    return ", ".join(f"{tp} at {offset}" for tp, offset in sorted(offsets.items()))


LAB = Lab(
    name="coordinator-failover",
    title="kill -9 of the broker that coordinates a group",
    page="groups",
    prediction=Prediction(
        "Two members of a group read and commit. The broker that coordinates the group is killed\n"
        "with kill -9; it leads no partition that they read. What does the group notice?",
        (
            "it rebalances: the next coordinator knows no members",
            "commits take longer for a moment; members, partitions and offsets stay",
            "nothing is read until that broker is back",
        ),
        1,
        "The state of a group is a record in __consumer_offsets, and so is every commit, each\n"
        "acknowledged by all in-sync replicas. The next leader of that partition reads them, and\n"
        "coordinates the same generation. `--switch` gives __consumer_offsets one replica: then\n"
        "the group has no coordinator until that broker is back.",
    ),
    scenario=scenario,
    config={
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "auto.leader.rebalance.enable": "false",
    },
    switch={REPLICATION: "1"},
)
