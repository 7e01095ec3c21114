"""What a consumer group costs a reader: rounds with one and without.

    python bench/groups.py [--records N] [--rounds N] [--json FILE]

Three brokers, 6 partitions, replication factor 3. Rounds with and without a group alternate, so
that other load on the machine meets both; the figure is the ratio of the medians. On a busy machine
the client's own CPU time per record says more than the rate.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import uvloop
from barnabas import Consumer
from barnabas_tools.local.cluster import LocalCluster
from support import measures
from support.machine import busy_percent, write_figures

TOPIC = "bench"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    load = busy_percent()
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(Path(folder), brokers=3) as cluster,
    ):
        figures = uvloop.run(_measure(cluster.bootstrap, options))
    figures["busy before, %"] = round(load)
    for name, value in figures.items():
        print(f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value:.3f}")
    write_figures(options.json, **figures)
    return 0


async def _measure(bootstrap: str, options: argparse.Namespace) -> dict[str, Any]:
    await measures.create_topic(bootstrap, TOPIC)
    await measures.send(
        bootstrap, TOPIC, records=options.records, size=100, batch_size=262_144, linger_ms=20
    )
    figures: dict[str, Any] = {}
    for name, read in (("poll", _poll), ("async for", _iterate)):
        rates: dict[str, list[float]] = {"without": [], "with": []}
        costs: dict[str, list[float]] = {"without": [], "with": []}
        for number in range(options.rounds):
            for kind, group in (("without", None), ("with", f"{name}-{number}")):
                rate, cost = await _read(bootstrap, options.records, group, read)
                rates[kind].append(rate)
                costs[kind].append(cost)
        for kind in rates:
            figures[f"{name}, {kind} a group, records/s"] = round(median(rates[kind]))
            figures[f"{name}, {kind} a group, CPU us per record"] = median(costs[kind])
        figures[f"{name}, ratio of rates"] = median(rates["with"]) / median(rates["without"])
        figures[f"{name}, ratio of CPU"] = median(costs["without"]) / median(costs["with"])
    return figures


async def _read(bootstrap: str, records: int, group: str | None, read: Any) -> tuple[float, float]:
    """Records/s and CPU us per record, from the first record on: joining is not counted."""
    async with Consumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        group_id=group,
        auto_commit_interval_ms=1_000,
    ) as consumer:
        first = len(await consumer.poll(max_records=1))
        began, used = time.perf_counter(), time.process_time()
        await read(consumer, records - first)
        cost = (time.process_time() - used) * 1e6 / records
        return records / (time.perf_counter() - began), cost


async def _poll(consumer: Consumer, records: int) -> None:
    count = 0
    while count < records:
        count += len(await consumer.poll(max_records=10_000))


async def _iterate(consumer: Consumer, records: int) -> None:
    count = 0
    async for _ in consumer:
        count += 1
        if count == records:
            return


if __name__ == "__main__":
    sys.exit(main())
