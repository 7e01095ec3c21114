"""An idempotent producer on whole clusters: once each and in order, whatever is lost on the way."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from barnabas import Admin, Producer
from barnabas.producer import DeliveryHandle, ProducerMetrics
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.delivery import Verdict
from barnabas_simulator.loop import run

from tests.support.delivery import History, judge
from tests.support.seeded_bugs import SEEDED_BUGS
from tests.support.whole_cluster import TP, leader_of, read_back

CLIENT = "producer"
ROUNDS = 12


@dataclass
class Run:
    """A producer that sends in bursts of small batches, and what became of its records."""

    cluster: SimulatedCluster
    idempotent: bool
    history: History = field(default_factory=History)
    metrics: ProducerMetrics = field(default_factory=ProducerMetrics)
    bounce: asyncio.Task[None] | None = None

    async def produce(self, fault: Callable[["Run", int], Awaitable[None]]) -> Verdict:
        """Send a burst in each round, with a fault while it is in flight, and judge the log."""
        await self._create_topic()
        handles: list[tuple[bytes, DeliveryHandle]] = []
        async with Producer(
            self.cluster.bootstrap,
            runtime=self.cluster.client_runtime(CLIENT),
            enable_idempotence=self.idempotent,
            batch_size=200,
            request_timeout_ms=4_000,
            metadata_max_age_ms=2_000,
        ) as producer:
            for number in range(ROUNDS):
                for value in [b"%d/%d" % (number, record) for record in range(60)]:
                    self.history.sent.append(value)
                    handle = await producer.send(TP.topic, value, partition=0)
                    handles.append((value, handle))
                await fault(self, number)
            await producer.flush()
            self.metrics = producer.metrics()
        for value, handle in handles:
            self.history.acked[value] = handle.result().offset
        return judge({TP: self.history}, {TP: await read_back(self.cluster)})

    async def _create_topic(self) -> None:
        runtime = self.cluster.client_runtime("admin")
        async with Admin(self.cluster.bootstrap, runtime=runtime) as admin:
            await admin.create_topic(
                TP.topic, 1, replication_factor=3, configs={"min.insync.replicas": "2"}
            )


async def answers_are_lost(run: Run, number: int) -> None:
    """The leader has the batches; the producer does not know."""
    leader = await leader_of(run.cluster)
    run.cluster.network.links.lose_next((f"broker-{leader}", CLIENT))
    await asyncio.sleep(0.3)


async def every_tenth_frame_is_lost(run: Run, number: int) -> None:
    """Requests and answers are lost alike, many in a row."""
    links = run.cluster.network.links
    for broker in run.cluster.broker_ids:
        links.make_flaky((f"broker-{broker}", CLIENT), 0.1 if number < ROUNDS - 2 else 0)
        links.make_flaky((CLIENT, f"broker-{broker}"), 0.1 if number < ROUNDS - 2 else 0)
    await asyncio.sleep(1.0)


async def connections_overtake_each_other(run: Run, number: int) -> None:
    """A connection breaks while it is slow: what was sent over it arrives after the retry."""
    links, leader = run.cluster.network.links, await leader_of(run.cluster)
    links.delay((CLIENT, f"broker-{leader}"), 0.5 if number % 3 else 0)
    await asyncio.sleep(0.05)
    links.lose_next((f"broker-{leader}", CLIENT))
    await asyncio.sleep(0.5)


async def leaders_are_killed(run: Run, number: int) -> None:
    """A leader dies with batches stored, replicated or not, and unanswered."""
    if number % 3 == 0:
        leader = await leader_of(run.cluster)
        await asyncio.sleep(0.002 * (number + 1))
        run.cluster.kill(leader)
        await asyncio.sleep(3.0)
        run.cluster.start_broker(leader)
        await run.cluster.serving()
    await asyncio.sleep(0.2)


async def leaders_die_before_they_answer(run: Run, number: int) -> None:
    """The followers have the next burst when the leader dies; none of its answers arrives."""
    if number % 3 == 0:
        leader = await leader_of(run.cluster)
        run.cluster.network.cut(f"broker-{leader}", CLIENT)
        run.bounce = asyncio.create_task(_bounce(run.cluster, leader))
    elif run.bounce is not None:
        await run.bounce


async def _bounce(cluster: SimulatedCluster, leader: int) -> None:
    await asyncio.sleep(0.5)
    cluster.kill(leader)
    cluster.network.heal(f"broker-{leader}", CLIENT)
    await asyncio.sleep(3.0)
    cluster.start_broker(leader)
    await cluster.serving()


async def leaders_pause(run: Run, number: int) -> None:
    """A leader stops for longer than its session, and comes back with requests in its socket."""
    if number % 4 == 0:
        leader = await leader_of(run.cluster)
        run.cluster.pause(leader)
        await asyncio.sleep(12.0)
        run.cluster.resume(leader)
    await asyncio.sleep(0.2)


FAULTS = [
    answers_are_lost,
    every_tenth_frame_is_lost,
    connections_overtake_each_other,
    leaders_are_killed,
    leaders_die_before_they_answer,
    leaders_pause,
]


def played(
    fault: Callable[[Run, int], Awaitable[None]], seed: int, idempotent: bool
) -> tuple[Run, Verdict]:
    async def main() -> tuple[Run, Verdict]:
        cluster = SimulatedCluster(seed)
        await cluster.start()
        story = Run(cluster, idempotent)
        return story, await story.produce(fault)

    return run(main(), seed=seed, max_time=1_200)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fault", FAULTS)
def test_every_record_is_there_once_and_in_order(
    fault: Callable[[Run, int], Awaitable[None]], seed: int
) -> None:
    story, verdict = played(fault, seed, idempotent=True)
    verdict.assert_good()
    assert verdict.acked == len(story.history.sent)
    assert story.metrics.batches_retried > 0, "no fault met the producer"
    assert -1 not in story.history.acked.values(), "no other producer writes in between"


@pytest.mark.parametrize("fault", FAULTS)
def test_the_same_without_idempotence_leaves_copies(
    fault: Callable[[Run, int], Awaitable[None]],
) -> None:
    verdicts = [played(fault, seed, idempotent=False)[1] for seed in range(3)]
    for verdict in verdicts:
        verdict.assert_good(once=False)
    assert any(verdict.duplicated for verdict in verdicts)


def test_a_new_leader_that_knows_no_producers_leaves_copies() -> None:
    with SEEDED_BUGS["M8"].planted():
        verdicts = [played(leaders_die_before_they_answer, seed, True)[1] for seed in range(3)]
    assert any(verdict.repeated for verdict in verdicts)
