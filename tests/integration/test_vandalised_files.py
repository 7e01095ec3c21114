"""Files of one broker change at random while it, or all of them, are down; nothing is lost.

The ISR has two other members with everything, so each damaged replica must leave it and fetch again
what it lost.
"""

import asyncio
from pathlib import Path
from random import Random

import pytest
from barnabas_tools.local.cluster import LocalCluster

from tests.support.ledger import Ledger
from tests.support.log_files import assert_sound
from tests.support.real_cluster import real_cluster
from tests.support.vandalism import damage_a_file

pytestmark = pytest.mark.integration

CONFIG = {
    "zookeeper.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "3000",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "log.segment.bytes": "20000",
    "log.index.interval.bytes": "500",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.min.cleanable.ratio": "0.1",
    "log.flush.offset.checkpoint.interval.ms": "2000",
}
IN_SYNC_SECONDS = 90.0


async def strike(cluster: LocalCluster, random: Random) -> str:
    """Stop or kill one broker or all, damage files of one, and start them in any order."""
    victim = random.choice(cluster.broker_ids)
    down = cluster.broker_ids if random.random() < 0.5 else [victim]
    end = cluster.stop_broker if random.random() < 0.3 else cluster.kill
    for broker_id in down:
        await asyncio.to_thread(end, broker_id)
    data = cluster.layout.data_directory(victim)
    damage = [damage_a_file(random, data) for _ in range(random.choice([1, 1, 2, 3]))]
    for broker_id in random.sample(down, len(down)):
        await asyncio.to_thread(cluster.start_broker, broker_id, False)
    await asyncio.to_thread(cluster.wait_until_serving)
    return f"broker {victim} of {down}, {end.__name__}: {'; '.join(damage)}"


async def story(directory: Path, seed: int, rounds: int) -> None:
    random = Random(seed)
    with real_cluster(directory, CONFIG) as cluster:
        ledger = Ledger(cluster.bootstrap, random)
        await ledger.create_topics()
        for number in range(rounds):
            await ledger.write(60)
            done = await strike(cluster, random)
            try:
                await ledger.until_in_sync(IN_SYNC_SECONDS)
                await ledger.check()
            except (AssertionError, TimeoutError) as error:
                raise AssertionError(f"seed {seed}, round {number}, {done}: {error}") from error
        await asyncio.to_thread(cluster.stop)
        for broker_id in cluster.broker_ids:
            assert_sound(cluster.layout.data_directory(broker_id))


async def test_a_few_rounds(tmp_path: Path) -> None:
    await story(tmp_path, seed=1, rounds=4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
async def test_many_rounds(tmp_path: Path, seed: int) -> None:
    await story(tmp_path, seed, rounds=40)


async def test_what_is_missing_is_found(tmp_path: Path) -> None:
    with real_cluster(tmp_path, CONFIG) as cluster:
        ledger = Ledger(cluster.bootstrap, Random(1))
        await ledger.create_topics()
        await ledger.write(20)
        await ledger.check()
        ledger.plain[max(ledger.plain) + 1] = b"was never written"
        with pytest.raises(AssertionError, match="1 of 21 records are lost"):
            await ledger.check()
        ledger.plain.popitem()
        key, (offset, _) = next(iter(ledger.newest.items()))
        ledger.newest[key] = (offset, b"another value")
        with pytest.raises(AssertionError, match="newest records"):
            await ledger.check()
        del ledger.newest[key]
        ledger.committed.pop()
        with pytest.raises(AssertionError, match="10 of 9 are visible"):
            await ledger.check()
