"""The window in which a broker that has lost data is still in ISRs, or eligible, as if it had not.

Another fault might then lose what only the other members have. Most faults wait for its end
(`budget.disturbs`).
"""

import asyncio

from barnabas_simulator.campaign.faults.budget import disturbs, isr_memberships_kept, last_epoch
from barnabas_simulator.campaign.faults.faults import Fault
from barnabas_simulator.cluster import SimulatedCluster

ISR_MEMBERSHIP_SECONDS = 60.0
LOOK_SECONDS = 0.005


class LossWindow:
    """`election_waits`: the seconds that elections wait for a replica that lost nothing."""

    def __init__(self, cluster: SimulatedCluster, election_waits: float) -> None:
        self._cluster = cluster
        self._election_waits = election_waits
        self._victim: int | None = None
        self._last_epoch = 0
        self._since = 0.0

    def begin(self, victim: int) -> None:
        """A broker's disk loses data now."""
        self._victim, self._last_epoch = victim, last_epoch(self._cluster)
        self._since = asyncio.get_running_loop().time()

    def end(self) -> None:
        self._victim = None

    async def before(self, fault: Fault) -> None:
        """Wait until a fault may strike."""
        if self._victim is not None:
            since = asyncio.get_running_loop().time() - self._since
            if disturbs(fault, since, self._election_waits):
                await self.over()

    async def over(self) -> None:
        """Wait until the broker has lost the memberships of its earlier incarnations."""
        if self._victim is None:
            return
        loop = asyncio.get_running_loop()
        deadline, looked_at = loop.time() + ISR_MEMBERSHIP_SECONDS, -1
        while True:
            now = last_epoch(self._cluster)
            if now != looked_at:  # otherwise ZooKeeper has committed nothing since
                kept = isr_memberships_kept(self._cluster, self._victim, self._last_epoch)
            if not kept:
                break
            assert loop.time() < deadline, (
                f"broker {self._victim} lost data, and {ISR_MEMBERSHIP_SECONDS:g} s later it is"
                f" still in the ISR of {[str(partition) for partition in kept]}, or eligible"
            )
            looked_at = now
            await asyncio.sleep(LOOK_SECONDS)
        self._victim = None
