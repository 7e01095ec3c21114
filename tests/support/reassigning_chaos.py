"""Random reassignments while brokers die; no acknowledged record may be lost."""

import asyncio
import random
from collections import Counter

from barnabas_common.errors import BarnabasError

from tests.support.reassigning import MovingPartition

ACTS = ("reassign", "reassign", "reassign", "cancel", "kill", "controller", "expire", "start")
BROKERS = range(1, 6)
MAY_BE_DEAD = 2


class ReassigningChaos:
    """One run: `steps` acts, then all brokers start again and the partition must come to rest.

    `done` counts what happened, by name. Requests that were refused have their own name.
    """

    def __init__(self, seed: int, steps: int = 14) -> None:
        self.moving = MovingPartition(seed, [1, 2, 3], brokers=len(BROKERS))
        self.done: Counter[str] = Counter()
        self._steps = steps
        self._random = random.Random(seed)

    async def run(self) -> None:
        moving = self.moving
        await moving.start()
        async with moving.producing():
            for _ in range(self._steps):
                await asyncio.sleep(
                    self._random.choice([0.005, 0.05, 0.5, 2.0]) * self._random.random()
                )
                await self._act(self._random.choice(ACTS))
            for broker_id in self._dead():
                moving.cluster.start_broker(broker_id)
            await moving.cluster.serving()
            await moving.until(lambda: moving.is_home(*moving.assignment().replicas), 90)
            await asyncio.sleep(1)
        await moving.assert_nothing_lost()

    def _dead(self) -> list[int]:
        return [b for b in BROKERS if b not in self.moving.cluster.running_brokers]

    async def _act(self, act: str) -> None:
        cluster, dead = self.moving.cluster, self._dead()
        serving = [b for b in cluster.running_brokers if cluster.is_serving(b)]
        if act == "reassign":
            count = self._random.choice([2, 3, 3])
            await self._request_reassignment(act, self._random.sample(BROKERS, count))
        elif act == "cancel":
            await self._request_reassignment(act, None)
        elif act == "start" and dead:
            cluster.start_broker(self._random.choice(dead))
        elif act == "expire" and serving:
            cluster.expire_session(self._random.choice(serving))
        elif act in ("kill", "controller") and len(dead) < MAY_BE_DEAD:
            controller = self.moving.controller()
            if act == "controller" and not controller:
                return
            cluster.kill(
                controller if act == "controller" else self._random.choice(cluster.running_brokers)
            )
        else:
            return
        if act not in ("reassign", "cancel"):
            self.done[act] += 1

    async def _request_reassignment(self, act: str, target: list[int] | None) -> None:
        try:
            async with asyncio.timeout(3):
                await self.moving.reassign(target)
            self.done[act] += 1
        except (BarnabasError, TimeoutError):
            self.done[f"{act} refused"] += 1
