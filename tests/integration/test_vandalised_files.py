"""Files of one broker change at random while it, or all of them, are down; nothing is lost.

The ISR has two other members with everything, so each damaged replica must leave it and fetch again
what it lost.
"""

import asyncio
from pathlib import Path
from random import Random

import pytest
from barnabas_tools.cli.log.segment_check import check_partition
from barnabas_tools.local.cluster import LocalCluster

from tests.support.ledger import Ledger
from tests.support.log_files import partition_folders
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
    """Stop or kill one broker or all, damage files of one, and start them in any order.

    That one goes down first: what only the last member of the ISR has is lost with its files.
    """
    victim = random.choice(cluster.broker_ids)
    others = [broker_id for broker_id in cluster.broker_ids if broker_id != victim]
    down = [victim, *others] if random.random() < 0.5 else [victim]
    end = cluster.stop_broker if random.random() < 0.3 else cluster.kill
    for broker_id in down:
        await asyncio.to_thread(end, broker_id)
    data = cluster.layout.data_directory(victim)
    damage = [damage_a_file(random, data) for _ in range(random.choice([1, 1, 2, 3]))]
    for broker_id in random.sample(down, len(down)):
        await asyncio.to_thread(cluster.start_broker, broker_id, False)
    await asyncio.to_thread(cluster.wait_until_serving)
    return f"broker {victim} of {down}, {end.__name__}: {'; '.join(damage)}"


def faults_of_logs(data: Path) -> list[str]:
    """What `barnabas log verify` finds in the logs. An index has no checksum: an entry that is
    wrong may stay, and is not used."""
    found = [fault for path in partition_folders(data) for fault in check_partition(path).faults]
    return [fault for fault in found if "index: entry" not in fault]


async def story(directory: Path, seed: int, rounds: int) -> None:
    random = Random(seed)
    with real_cluster(directory, CONFIG) as cluster:
        ledger = Ledger(cluster.bootstrap, random)
        await ledger.create_topics()
        strikes: list[str] = []
        for number in range(rounds):
            await ledger.write(60)
            done = await strike(cluster, random)
            strikes.append(done)
            try:
                await ledger.until_in_sync(IN_SYNC_SECONDS)
                await ledger.check()
            except (AssertionError, TimeoutError) as error:
                raise AssertionError(f"seed {seed}, round {number}, {done}: {error}") from error
        await asyncio.to_thread(cluster.stop)
        for broker_id in cluster.broker_ids:
            faults = faults_of_logs(cluster.layout.data_directory(broker_id))
            assert not faults, f"seed {seed}, broker {broker_id}: {faults} after {strikes}"


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
