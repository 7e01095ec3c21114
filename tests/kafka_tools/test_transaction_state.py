"""Kafka's own decoder reads the `__transaction_state` that a coordinator here has written."""

from pathlib import Path

import pytest
from barnabas_simulator.cluster import SimulatedCluster

from tests.kafka_tools.harness import dump_log_segments, run_java
from tests.support.raw_transactions import (
    PARTITIONS,
    MarkerLeaders,
    RawTransaction,
    TransactionCoordinators,
    in_cluster,
)

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("version", [0, 2])
def test_kafka_decodes_our_transactions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: int
) -> None:
    MarkerLeaders().install(monkeypatch)
    log = tmp_path / f"{0:020}.log"

    async def story(cluster: SimulatedCluster, coordinators: TransactionCoordinators) -> None:
        one = RawTransaction(coordinators, version=version)
        await one.init()
        for commit in (True, False):
            await one.add(*PARTITIONS)
            await one.end(commit)
        await coordinators.settled("copy")
        at = await coordinators.find_transaction("copy")
        transactions = cluster.broker(at).transactions._transactions
        transaction = transactions.get("copy")
        assert transaction is not None
        partition = transactions.partition_of(transaction)
        folder = f"/data/{partition.topic}-{partition.partition}"
        log.write_bytes(bytes(cluster.disks[at].look_into(folder)[f"{0:020}.log"].data))

    in_cluster(story)
    assert dump_log_segments([log]).faults == []
    done = run_java(
        "kafka.tools.DumpLogSegments",
        "--transaction-log-decoder",
        "--print-data-log",
        "--files",
        str(log),
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("| offset: ")]
    states = ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]
    states += ["Ongoing", "PrepareAbort", "CompleteAbort"]
    assert len(lines) == len(states), lines
    for line, state in zip(lines, states, strict=True):
        added = state in ("Ongoing", "PrepareCommit", "PrepareAbort")
        partitions = "orders-0,orders-1,orders-2" if added else ""
        assert "key: transaction_metadata::transactionalId=copy payload: " in line
        assert f"state={state},partitions=[{partitions}]" in line, line
    assert f"producerEpoch:{version}," in lines[-1], "it rose with each transaction, or stayed"
