"""How long the cluster in containers takes from `up -d` to its first acknowledged record.

    python bench/compose_startup.py [--rounds 3] [--json FILE]

The images are built before. Each round starts with no containers and no volumes. The record is sent
from the host, with acks=all, to a new topic of replication factor 3.
"""

import sys
import time
from functools import partial
from pathlib import Path

from barnabas.sync import Admin, Producer
from barnabas_common.errors import BarnabasError
from barnabas_tools.chaos.faults.compose_cluster import BOOTSTRAP, ComposeCluster
from barnabas_tools.chaos.faults.errors import FaultError
from report import Report, compare, options_parser

ROOT = Path(__file__).resolve().parents[1]
PROJECT = "barnabas-bench"
ADDRESSES = ",".join(BOOTSTRAP)
PATIENCE_SECONDS = 180.0
RETRY_SECONDS = 0.1

MEDIAN = "from `up -d` to the first acknowledged record, median"
LONGEST = "the same, longest"


def main() -> int:
    parser = options_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    report = Report("Start of the cluster in containers, three brokers and ZooKeeper")
    report.row(MEDIAN, "s", "15")
    report.row(LONGEST, "s")
    return compare(report, options, partial(_measure, options.rounds, report), None)


def _measure(rounds: int, report: Report, _folder: Path) -> None:
    cluster = ComposeCluster(PROJECT, ROOT, ["docker-compose.yml"])
    try:
        cluster.compose("build")
        took = sorted(_once(cluster) for _ in range(rounds))
    except FaultError as error:
        raise RuntimeError(str(error)) from None
    finally:
        cluster.compose("down", "--volumes", "--timeout", "1")
    report.barnabas(MEDIAN, took[len(took) // 2])
    report.barnabas(LONGEST, took[-1])


def _once(cluster: ComposeCluster) -> float:
    cluster.compose("down", "--volumes", "--timeout", "1")
    began = time.monotonic()
    cluster.compose("up", "-d")
    while not _topic_is_created():
        if time.monotonic() - began > PATIENCE_SECONDS:
            raise RuntimeError(f"no topic could be created within {PATIENCE_SECONDS:g} s")
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
