"""Coordinators of many groups are killed with -9: no acknowledged commit is lost.

All groups have one coordinator. Committers go on while it is killed, so a commit without an answer
may stand or not; what was acknowledged must stand, unless the same committer has sent a later one.
"""

import asyncio
from pathlib import Path

import pytest
from barnabas import Admin
from barnabas_common.errors import BarnabasError
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.local.cluster import LocalCluster

from tests.support.cluster_state import create_topic, leaders, until_not_led_by, wait_until_in_sync
from tests.support.real_cluster import real_cluster

pytestmark = pytest.mark.integration

ORDERS = TopicPartition("orders", 0)
OFFSETS = "__consumer_offsets"
COMMITTERS = 10


class Ledger:
    """By group: the last acknowledged commit, and the last that was sent."""

    def __init__(self, groups: int) -> None:
        self.acknowledged = {f"group-{number}": -1 for number in range(groups)}
        self.sent = dict(self.acknowledged)
        self.commits = 0

    async def commit_until(self, stop: asyncio.Event, bootstrap: str, groups: list[str]) -> None:
        """Commit to the groups in turn, 1 more each time."""
        async with Admin(bootstrap) as admin:
            while not stop.is_set():
                for group in groups:
                    self.sent[group] += 1
                    try:
                        await admin.alter_group_offsets(group, {ORDERS: self.sent[group]})
                    except BarnabasError:
                        continue
                    self.acknowledged[group] = self.sent[group]
                    self.commits += 1

    def wrong(self, committed: dict[str, int]) -> dict[str, tuple[int, int, int]]:
        """The groups whose commit is not one of those that may stand."""
        return {
            group: (low, committed[group], self.sent[group])
            for group, low in self.acknowledged.items()
            if not low <= committed[group] <= self.sent[group]
        }


async def committed(bootstrap: str, groups: list[str]) -> dict[str, int]:
    async with Admin(bootstrap) as admin:
        found = {}
        for group in groups:
            offsets = await admin.list_group_offsets(group)
            found[group] = offsets[ORDERS].offset if ORDERS in offsets else -1
        return found


async def story(cluster: LocalCluster, groups: int, kills: int) -> None:
    await create_topic(cluster.bootstrap, ORDERS.topic, 1)
    ledger, stop = Ledger(groups), asyncio.Event()
    names = list(ledger.sent)
    async with asyncio.TaskGroup() as committers:
        for number in range(COMMITTERS):
            share = names[number::COMMITTERS]
            committers.create_task(ledger.commit_until(stop, cluster.bootstrap, share))
        for _ in range(kills):
            wanted = ledger.commits + groups
            async with asyncio.timeout(120.0):
                while ledger.commits < wanted:
                    await asyncio.sleep(0.05)
            coordinator = (await leaders(cluster.bootstrap, OFFSETS))[0]
            await asyncio.to_thread(cluster.kill, coordinator)
            await until_not_led_by(cluster.bootstrap, OFFSETS, coordinator)
            await asyncio.to_thread(cluster.restart, coordinator)
            await wait_until_in_sync(cluster.bootstrap, OFFSETS)
        stop.set()
    assert ledger.wrong(await committed(cluster.bootstrap, names)) == {}


def _config() -> dict[str, str]:
    return {"offsets.topic.num.partitions": "1", "zookeeper.session.timeout.ms": "3000"}


async def test_acknowledged_commits_outlive_their_coordinators(tmp_path: Path) -> None:
    with real_cluster(tmp_path, _config()) as cluster:
        await story(cluster, groups=100, kills=3)


@pytest.mark.slow
async def test_a_thousand_groups_and_fifty_kills(tmp_path: Path) -> None:
    with real_cluster(tmp_path, _config()) as cluster:
        await story(cluster, groups=1_000, kills=50)


def test_the_ledger_finds_a_lost_commit_and_one_that_was_never_sent() -> None:
    ledger = Ledger(3)
    ledger.acknowledged = {"group-0": 5, "group-1": 5, "group-2": 5}
    ledger.sent = {"group-0": 6, "group-1": 6, "group-2": 6}
    found = ledger.wrong({"group-0": 4, "group-1": 7, "group-2": 6})
    assert found == {"group-0": (5, 4, 6), "group-1": (5, 7, 6)}
