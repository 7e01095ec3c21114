"""False and true suspicions in random order, under all invariants; every record by value.

A firewall resets connections between random brokers and refuses new ones, for short and long times.
In between brokers are killed, paused, and lose their sessions.
"""

import asyncio
import random
from collections import Counter

import pytest
from barnabas import Admin
from barnabas_common.events import EventKind
from barnabas_simulator.cluster import SimulatedCluster
from barnabas_simulator.invariants import Invariants
from barnabas_simulator.loop import run

from tests.simulation.test_suspects_in_clusters import events, in_sync
from tests.support.delivery import History, judge
from tests.support.whole_cluster import TP, produce, read_back

RECORDS = 400
ACTS = ("slander", "slander", "mutual slander", "kill", "pause", "expire")
CONFIG = {
    "replica.lag.time.max.ms": "5000",
    "replica.socket.timeout.ms": "5000",
    "controller.socket.timeout.ms": "5000",
}
COUNTED = (EventKind.BROKER_SUSPECTED, EventKind.REGISTERED_ANEW, EventKind.CONTROLLER_DEPOSED)


class Story:
    """One seed: produce during the faults, heal, compare."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._cluster = SimulatedCluster(seed, config=CONFIG)
        self.counts: Counter[EventKind] = Counter()

    async def run(self) -> None:
        cluster, history = self._cluster, History()
        invariants = Invariants(cluster)
        invariants.install()
        await cluster.start()
        async with Admin(cluster.bootstrap, runtime=cluster.client_runtime("admin")) as admin:
            await admin.create_topic(TP.topic, 1, 3, configs={"min.insync.replicas": "2"})
            producing = asyncio.ensure_future(produce(cluster, history, range(RECORDS)))
            for _ in range(12):
                await asyncio.sleep(self._random.choice([0.0, 0.001, 0.01, 0.05, 0.3, 1.0, 4.0]))
                await self._act()
            await producing
            await in_sync(admin)
        self.counts.update({kind: len(events(cluster, kind)) for kind in COUNTED})
        elected = events(cluster, EventKind.LEADER_ELECTED)
        assert not any(event.details["unclean"] for event in elected)
        judge({TP: history}, {TP: await read_back(cluster)}).assert_good()
        assert len(history.acked) == RECORDS

    async def _act(self) -> None:
        cluster, chance = self._cluster, self._random
        broker_id = chance.choice(cluster.broker_ids)
        others = [b for b in cluster.broker_ids if b != broker_id]
        match chance.choice(ACTS):
            case "slander":
                some = chance.sample(others, chance.choice([1, 2]))
                await self._reject([(other, broker_id) for other in some])
            case "mutual slander":
                other = chance.choice(others)
                await self._reject([(other, broker_id), (broker_id, other)])
            case "kill":
                cluster.kill(broker_id)
                await asyncio.sleep(chance.choice([0.0, 0.1, 1.0, 8.0]))
                cluster.start_broker(broker_id)
                await cluster.serving()
            case "pause":
                cluster.pause(broker_id)
                await asyncio.sleep(chance.choice([0.5, 1.0, 3.0, 10.0]))
                cluster.resume(broker_id)
            case "expire":
                cluster.expire_session(broker_id)

    async def _reject(self, links: list[tuple[int, int]]) -> None:
        cluster = self._cluster
        for client, server in links:
            cluster.network.reject(cluster.host(client), cluster.host(server))
        await asyncio.sleep(self._random.choice([0.01, 0.1, 0.5, 2.0, 10.0]))
        for client, server in links:
            cluster.network.admit(cluster.host(client), cluster.host(server))


def tell(seeds: range) -> Counter[EventKind]:
    """Run the seeds; returns how often each kind of event occurred."""
    counts: Counter[EventKind] = Counter()
    for seed in seeds:
        story = Story(seed)
        run(story.run(), seed=seed, max_time=3600)
        counts += story.counts
    return counts


def test_evidence_of_all_kinds_harms_nothing() -> None:
    counts = tell(range(8))
    assert all(counts[kind] for kind in COUNTED), f"the faults miss their mark: {counts}"


@pytest.mark.slow
def test_evidence_of_all_kinds_harms_nothing_in_many_runs() -> None:
    tell(range(1_000, 1_100))
