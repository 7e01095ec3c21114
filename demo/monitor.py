"""Asks the cluster repeatedly for leaders, in-sync replicas and high watermarks."""

import asyncio
import time
from dataclasses import dataclass, field

from barnabas import Admin
from barnabas_common.errors import BarnabasError

_PATIENCE = 2.0
_REGULAR_PAUSE = 0.25
_PAUSE_IN_ELECTION = 0.02


@dataclass
class Partition:
    """One partition as last reported; `leader` -1: none."""

    leader: int = -1
    epoch: int = -1
    in_sync_replicas: list[int] = field(default_factory=list)
    high_watermark: int = 0


@dataclass(frozen=True)
class Election:
    """What followed a kill: `seconds` until all partitions were reported with new leaders."""

    victim: int
    seconds: float
    before: dict[int, Partition]
    after: dict[int, Partition]

    def __str__(self) -> str:
        moves = "; ".join(
            f"{number}: {before.leader}→{after.leader}, epoch {before.epoch}→{after.epoch}"
            for number, before in self.before.items()
            for after in [self.after[number]]
        )
        return f"{self.seconds:.2f} s after the kill ({moves})"


class Monitor:
    """Watches one topic while `run` runs. `election` is set once the killed leader is replaced."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.partitions: dict[int, Partition] = {}
        self.election: Election | None = None
        self._bootstrap = bootstrap
        self._topic = topic
        self._killed: tuple[int, float, dict[int, Partition]] | None = None

    def leader_killed(self, broker_id: int) -> None:
        """Start the clock of the election."""
        led = {
            number: Partition(p.leader, p.epoch, p.in_sync_replicas, p.high_watermark)
            for number, p in self.partitions.items()
            if p.leader == broker_id
        }
        self.election = None
        self._killed = (broker_id, time.monotonic(), led)

    @property
    def electing(self) -> bool:
        """Whether a leader was killed and not yet replaced in every partition."""
        return self._killed is not None and self.election is None

    async def run(self) -> None:
        """Ask until cancelled. Dead brokers delay high watermarks; another task asks for them."""
        async with Admin(bootstrap_servers=self._bootstrap) as admin:
            watermarks = asyncio.create_task(self._repeat(admin, self._look_at_watermarks))
            try:
                await self._repeat(admin, self._look_at_leaders)
            finally:
                watermarks.cancel()
                await asyncio.gather(watermarks, return_exceptions=True)

    async def _repeat(self, admin, look) -> None:  # type: ignore[no-untyped-def]
        while True:
            try:
                async with asyncio.timeout(_PATIENCE):
                    await look(admin)
            except (BarnabasError, TimeoutError):
                pass  # the broker that was asked is the one that died; ask again
            await asyncio.sleep(_PAUSE_IN_ELECTION if self.electing else _REGULAR_PAUSE)

    async def _look_at_leaders(self, admin: Admin) -> None:
        for heard in (await admin.describe_topic(self._topic)).partitions:
            partition = self.partitions.setdefault(heard.partition, Partition())
            if heard.leader_epoch < partition.epoch:
                continue  # from a broker that does not know the newer leader yet
            partition.leader, partition.epoch = heard.leader_id, heard.leader_epoch
            partition.in_sync_replicas = sorted(heard.in_sync_replicas)
        self._judge_election()

    def _judge_election(self) -> None:
        if self._killed is None or self.election is not None:
            return
        victim, when, before = self._killed
        after = {number: self.partitions[number] for number in before}
        if all(p.leader not in (-1, victim) for p in after.values()):
            elected = {number: Partition(p.leader, p.epoch) for number, p in after.items()}
            self.election = Election(victim, time.monotonic() - when, before, elected)

    async def _look_at_watermarks(self, admin: Admin) -> None:
        for broker in await admin.describe_replicas([self._topic]):
            for replica in broker.replicas:
                partition = self.partitions.get(replica.partition)
                if partition is not None:
                    partition.high_watermark = max(partition.high_watermark, replica.high_watermark)
