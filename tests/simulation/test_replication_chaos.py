"""Random kills, restarts, cut links, elections and missed requests; no record may be missing.

Under kill -9 with intact disks and clean elections, every record acknowledged with acks=all must be
in every replica at its offset, and so must every record that a consumer has seen. All replicas must
be equal.
"""

import asyncio
import random
from collections.abc import Callable

import pytest
from barnabas_broker.replica.leader import leadership
from barnabas_broker.replica.leader.high_watermark import Progress
from barnabas_broker.replica.serve import follower_fetch
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.fetch import FetchPartition, FetchRequest
from barnabas_common.record.reader import records_from
from barnabas_simulator.loop import run

from tests.support.replication_world import TP, ReplicationWorld

BROKERS = (1, 2, 3)
LAG_MAX_MS = 4000


class Chaos:
    """One run: clients, a nemesis, and a controller that follows Kafka's rules."""

    def __init__(self, seed: int, steps: int, **config: str) -> None:
        self.random = random.Random(seed)
        self.steps = steps
        named = {name.replace("_", "."): value for name, value in config.items()}
        self.world = ReplicationWorld(
            seed, config={"replica.lag.time.max.ms": str(LAG_MAX_MS)} | named
        )
        self.acked: dict[int, bytes] = {}
        self.seen: dict[int, bytes] = {}
        self.cut: list[tuple[int, int]] = []
        self.deaf: int | None = None

    async def run(self) -> None:
        world = self.world
        await world.start(*BROKERS)
        await world.create(*BROKERS)
        clients = [asyncio.ensure_future(client) for client in (self._produce(), self._consume())]
        for _ in range(self.steps):
            await asyncio.sleep(self.random.uniform(0.05, 2.0))
            await self._mischief()
            await self._control()
        for client in clients:
            client.cancel()
        await self._heal()
        await self._judge()

    # ---- clients

    async def _produce(self) -> None:
        number = 0
        while True:
            number += 1
            value = b"%d" % number
            leader = self.world.states[TP].leader
            result = await self._ask(leader, self.world.produce(value, to=leader, timeout_ms=1500))
            if result is not None and result.error_code == ErrorCode.NONE:
                self.acked[result.base_offset] = value
            await asyncio.sleep(self.random.uniform(0.0, 0.1))

    async def _consume(self) -> None:
        """Read from random brokers; those that act as leader answer, deposed or not."""
        offset = 0
        while True:
            await asyncio.sleep(self.random.uniform(0.0, 0.2))
            broker_id = self.random.choice(BROKERS)
            if broker_id not in self.world.incarnations:
                continue
            manager = self.world.incarnations[broker_id].manager
            partitions = [FetchPartition(*TP, offset)]
            fetch = manager.consumer_fetches.fetch(
                FetchRequest(0, 1, 1 << 20, partitions=partitions)
            )
            response = await self._ask(broker_id, self.world.on(broker_id, fetch))
            if response is None or response.partitions[0].error_code:
                continue
            for record in records_from(response.partitions[0].records, offset):
                assert record.offset < response.partitions[0].high_watermark
                self.seen[record.offset] = record.value or b""
                offset = record.offset + 1

    async def _ask(self, broker_id: int, work):  # type: ignore[no-untyped-def]
        """Return an answer, or None if it never comes because the broker was killed."""
        if broker_id not in self.world.incarnations:
            work.close()
            return None
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(work)), 3.0)
        except TimeoutError:
            return None

    # ---- nemesis and controller

    async def _mischief(self) -> None:
        world, running_brokers = self.world, sorted(self.world.incarnations)
        dead = [broker_id for broker_id in BROKERS if broker_id not in running_brokers]
        match self.random.choice(["kill", "restart", "restart", "cut", "heal", "elect", "calm"]):
            case "kill" if running_brokers:
                victim = self.random.choice(running_brokers)
                self.cut = [pair for pair in self.cut if victim not in pair]
                world.kill(victim)
            case "restart" if dead:
                broker_id = self.random.choice(dead)
                await world.start(broker_id)
                await world.announce(only=broker_id)
            case "cut" if len(running_brokers) > 1:
                one, other = self.random.sample(running_brokers, 2)
                world.cut(one, other)
                self.cut.append((one, other))
            case "heal" if self.cut:
                world.heal(*self.cut.pop())
            case "elect":
                self.deaf = self.random.choice([None, *BROKERS])
                await self._elect()

    async def _control(self) -> None:
        """Remove dead brokers from the ISR unless all members are dead; replace a dead leader."""
        state = self.world.states[TP]
        if self.random.random() < 0.5 and self.deaf is not None:
            deaf, self.deaf = self.deaf, None
            if deaf in self.world.incarnations:
                await self.world.announce(only=deaf)
        gone = [broker_id for broker_id in state.isr if broker_id not in self.world.incarnations]
        if state.leader not in self.world.incarnations or (gone and len(gone) < len(state.isr)):
            await self._elect()

    async def _elect(self) -> None:
        state = self.world.states[TP]
        isr = tuple(broker_id for broker_id in state.isr if broker_id in self.world.incarnations)
        if isr:
            await self.world.elect(self.random.choice(isr), isr=isr, but=self.deaf)

    async def _heal(self) -> None:
        for pair in self.cut:
            self.world.heal(*pair)
        self.deaf = None
        for broker_id in BROKERS:
            if broker_id not in self.world.incarnations:
                await self.world.start(broker_id)
        await self._elect()

    async def _judge(self) -> None:
        world = self.world
        await world.until(lambda: sorted(world.isr()) == list(BROKERS))
        # A follower with a broken connection delays it until it reconnects or leaves the ISR.
        last = await world.produce(b"last", timeout_ms=3 * LAG_MAX_MS)
        assert last.error_code == ErrorCode.NONE
        await world.until_equal(*BROKERS)
        values = world.values(1)
        for known in (self.acked, self.seen):
            for offset, value in known.items():
                assert values[offset] == value, f"offset {offset} is {values[offset]!r}"
        assert len(set(values)) == len(values)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_acknowledged_or_seen_is_ever_missing(seed: int) -> None:
    chaos = Chaos(seed, steps=60)
    run(chaos.run(), seed=seed)
    assert len(chaos.acked) > 20
    assert len(chaos.seen) > 20


@pytest.mark.parametrize("seed", range(200, 206))
def test_nothing_is_missing_when_followers_ask_before_they_fetch(seed: int) -> None:
    lookup = {"replica_truncation_lookup": "offsets-for-leader-epoch"}
    run(Chaos(seed, steps=60, **lookup).run(), seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_nothing_acknowledged_or_seen_is_ever_missing_in_many_runs(seed: int) -> None:
    run(Chaos(seed, steps=150).run(), seed=seed)


def _commit_alone(patch: pytest.MonkeyPatch) -> None:
    """Plant the fault that the high watermark follows the leader's own log end."""

    def wrong(progress: Progress) -> int:
        return max(progress.high_watermark, progress.end_offset)

    patch.setattr(leadership, "next_high_watermark", wrong)


def _never_truncate(patch: pytest.MonkeyPatch) -> None:
    """Plant the fault that a follower fetches from its own log end, whatever the leader answers."""
    patch.setattr(follower_fetch, "diverges", lambda *_: False)


@pytest.mark.parametrize("plant", [_commit_alone, _never_truncate])
def test_a_planted_fault_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert _is_noticed()


def test_truncation_by_high_watermark_is_found() -> None:
    """Kafka before 0.11."""
    assert _is_noticed(replica_truncation="high-watermark")


def _is_noticed(**config: str) -> bool:
    """Whether one of a few runs fails."""
    for seed in range(12):
        try:
            run(Chaos(seed, steps=60, **config).run(), seed=seed)
        except (AssertionError, IndexError):
            return True
    return False
