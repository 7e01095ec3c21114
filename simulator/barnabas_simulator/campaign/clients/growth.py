"""The client that gives a topic more partitions while others use it."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable

from barnabas import Admin
from barnabas_common.errors import BarnabasError

from barnabas_simulator.campaign.clients.factory import RETRY_SECONDS
from barnabas_simulator.campaign.options import Options
from barnabas_simulator.cluster import SimulatedCluster

GROWN = "partitions added"
TIMEOUT_MS = 5_000
LAST_PART = 0.6
"""Of the chaos: all partitions must be known when it ends."""


class Growth:
    """Adds `options.growth` partitions to `topic`, which has `count`, one at a time, each as often
    as it takes. It runs on the node `host`.

    `found` is told how many partitions the topic has, once the cluster says so. `counts` counts
    the partitions that were added.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        options: Options,
        host: str,
        topic: str,
        count: int,
        counts: Counter[str],
        note: Callable[[str], None],
        found: Callable[[int], None],
    ) -> None:
        self._cluster = cluster
        self._options = options
        self.host = host
        self._topic = topic
        self._count = count
        self._counts = counts
        self._note = note
        self._found = found
        self._chance = random.Random(f"{options.seed}/times of {host}")

    @property
    def hosts(self) -> list[str]:
        return [self.host] if self._options.growth else []

    async def run(self, stop: asyncio.Event) -> None:
        """Grow at random times; after `stop` no growth begins and none is asked for again."""
        options, loop = self._options, asyncio.get_running_loop()
        end = loop.time() + LAST_PART * options.chaos_seconds
        times = sorted(self._chance.uniform(loop.time(), end) for _ in range(options.growth))
        runtime = self._cluster.client_runtime(self.host)
        async with Admin(
            self._cluster.bootstrap, runtime=runtime, request_timeout_ms=TIMEOUT_MS
        ) as admin:
            for number, at in enumerate(times, 1):
                await asyncio.sleep(max(0.0, at - loop.time()))
                await self._grow(admin, self._count + number, stop)

    async def _grow(self, admin: Admin, wanted: int, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                self._note(f"{self.host}: {self._topic} to {wanted} partitions")
                await admin.create_partitions(self._topic, wanted, timeout_ms=TIMEOUT_MS)
            except BarnabasError as error:  # it may have happened nevertheless
                self._note(f"{self.host}: {type(error).__name__}: {error}")
            if await self._has(admin, wanted):
                self._counts[GROWN] += 1
                self._found(wanted)
                return
            await asyncio.sleep(RETRY_SECONDS)

    async def _has(self, admin: Admin, wanted: int) -> bool:
        try:
            return len((await admin.describe_topic(self._topic)).partitions) >= wanted
        except BarnabasError as error:
            self._note(f"{self.host}: {type(error).__name__}: {error}")
            return False
