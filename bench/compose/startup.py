"""How long the cluster in containers takes from `up -d` to its first acknowledged record.

    python bench/compose/startup.py [--rounds 3] [--json FILE]

The images are built before. Each round starts with no containers and no volumes. The record is sent
from the host, with acks=all, to a new topic of replication factor 3.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

from barnabas.sync import Admin, Producer
from barnabas_common.errors import BarnabasError
from barnabas_tools.chaos.faults.compose_cluster import BOOTSTRAP, ComposeCluster
from barnabas_tools.chaos.faults.errors import FaultError

ROOT = Path(__file__).resolve().parents[2]
PROJECT = "barnabas-bench"
ADDRESSES = ",".join(BOOTSTRAP)
PATIENCE_SECONDS = 180.0
RETRY_SECONDS = 0.1


def main() -> int:
    options = _options()
    cluster = ComposeCluster(PROJECT, ROOT, ["docker-compose.yml"])
    took = []
    try:
        cluster.compose("build")
        for number in range(options.rounds):
            took.append(_once(cluster))
            load = os.getloadavg()[0]
            print(f"round {number + 1}: {took[-1]:.1f} s (load average {load:.1f})", flush=True)
    except FaultError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        cluster.compose("down", "--volumes", "--timeout", "1")
    median = statistics.median(took)
    print(f"from `up -d` to the first acknowledged record: median {median:.1f} s; target 15 s")
    if options.json:
        options.json.write_text(json.dumps({"seconds": took, "median": median}) + "\n")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    return parser.parse_args()


def _once(cluster: ComposeCluster) -> float:
    cluster.compose("down", "--volumes", "--timeout", "1")
    began = time.monotonic()
    cluster.compose("up", "-d")
    while not _topic_is_created():
        if time.monotonic() - began > PATIENCE_SECONDS:
            raise FaultError(f"no topic could be created within {PATIENCE_SECONDS:g} s")
        time.sleep(RETRY_SECONDS)
    with Producer(bootstrap_servers=ADDRESSES, acks="all") as producer:
        producer.send_and_wait("first", b"first")
    return time.monotonic() - began


def _topic_is_created() -> bool:
    try:
        with Admin(bootstrap_servers=ADDRESSES) as admin:
            admin.create_topic("first", 1, 3)
    except BarnabasError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
