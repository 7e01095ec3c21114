"""Transactions in a log of Kafka and in one of Barnabas: the same answers, and the same files."""

import random
from pathlib import Path

import pytest
from barnabas_broker.config import LogConfig
from barnabas_broker.log.append_origin import AppendOrigin
from barnabas_broker.log.index.transaction_index import aborted_between
from barnabas_broker.log.producers.snapshot_file import decode_snapshot
from barnabas_broker.log.producers.verification import NOT_NEEDED
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.errors import KafkaError
from barnabas_common.record.batch import TRANSACTIONAL
from barnabas_common.record.sequence import sequence_after
from barnabas_common.record.transactional import marker_batch

from tests.kafka_tools.harness import dump_log_segments, run_java
from tests.kafka_tools.test_log_files import open_log
from tests.support.idempotent import sent
from tests.support.log_transactions import indexed
from tests.support.log_world import NOW

pytestmark = pytest.mark.kafka

STEPS = 400
ERRORS = {
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "OutOfOrderSequenceException",
    "INVALID_PRODUCER_EPOCH": "InvalidProducerEpochException",
    "INVALID_TXN_STATE": "InvalidTxnStateException",
    "TRANSACTION_COORDINATOR_FENCED": "TransactionCoordinatorFencedException",
    "INVALID_RECORD": "InvalidRecordException",
}


def random_steps(seed: int) -> list[str]:
    """Lines for `TransactionLog.java`: five producers, some with transactions, and markers of the
    right and of wrong epochs."""
    chance = random.Random(seed)
    epochs = dict.fromkeys(range(5), 0)
    sequences = dict.fromkeys(range(5), 0)
    opened: set[int] = set()
    steps = []
    for number in range(STEPS):
        kind, producer_id = chance.random(), chance.randrange(5)
        epoch = epochs[producer_id]
        if kind < 0.55:
            in_transaction = producer_id < 4 if chance.random() < 0.97 else producer_id == 4
            count = chance.randint(1, 3)
            stale = chance.random() < 0.05 and epoch > 0
            batch = sent(
                *[b"x" * 50] * count,
                producer_id=producer_id,
                epoch=epoch - 1 if stale else epoch,
                sequence=sequences[producer_id],
                timestamp=NOW + number,
                attributes=TRANSACTIONAL if in_transaction else 0,
            )
            if not stale and in_transaction == (producer_id < 4):
                sequences[producer_id] = sequence_after(sequences[producer_id], count)
                opened.add(producer_id)
            steps.append(f"CLIENT {batch.hex()}")
        elif kind < 0.75 and producer_id < 4:
            if chance.random() < 0.3:
                epochs[producer_id] += 1
                sequences[producer_id] = 0
            coordinator_epoch = 3 if chance.random() < 0.9 else 2
            epoch = epochs[producer_id] - (chance.random() < 0.05)
            commit = chance.random() < 0.4
            marker = marker_batch(producer_id, max(epoch, 0), commit, coordinator_epoch, NOW)
            origin = "COORDINATOR" if chance.random() < 0.95 else "CLIENT"
            steps.append(f"{origin} {marker.hex()}")
        elif kind < 0.77:
            steps.append("roll")
        elif kind < 0.9:
            steps.append("watermark")
        else:
            steps.append("aborted")
    return steps


def play(log: UnifiedLog, steps: list[str], chance: random.Random) -> tuple[list[str], list[str]]:
    """The steps with offsets that fit the log, and what Barnabas answers to each."""
    asked, answers = [], []
    for step in steps:
        kind, _, batch = step.partition(" ")
        end = log.log_end_offset
        if kind == "watermark":
            offset = chance.randint(log.high_watermark, end)
            step = f"watermark {offset}"
            log.maybe_increment_high_watermark(offset)
            answer = "moved"
        elif kind == "roll":
            log.roll()
            answer = "rolled"
        elif kind == "aborted":
            start = chance.randint(0, end)
            upper = chance.randint(start, end)
            step = f"aborted {start} {upper}"
            indexes = [s.txn_index for s in log.segments() if s.next_offset > start]
            found = aborted_between(indexes or [log.segments()[-1].txn_index], start, upper)
            answer = " ".join(["aborted", *(f"{o.producer_id}:{o.first_offset}" for o in found)])
        else:
            origin, data = AppendOrigin[kind], bytes.fromhex(batch)
            try:
                first = log.append_as_leader(data, 0, NOW, origin, NOT_NEEDED).first_offset
                answer = f"appended {first}"
            except KafkaError as error:
                answer = ERRORS[error.code.name]
        asked.append(step)
        answers.append(f"{answer} {log.log_end_offset} {log.last_stable_offset}")
    return asked, answers


def transaction_indexes(folder: Path) -> dict[str, bytes]:
    """The contents of the files that have any."""
    files = {path.name: path.read_bytes() for path in folder.glob("*.txnindex")}
    return {name: data for name, data in files.items() if data}


@pytest.mark.parametrize("seed", range(3))
def test_kafka_and_barnabas_answer_alike_and_write_the_same_files(
    seed: int, tmp_path: Path
) -> None:
    kafkas, ours = tmp_path / "kafka-0", tmp_path / "written-0"
    for folder in (kafkas, ours):
        folder.mkdir()
    log = open_log(ours, LogConfig())
    steps, answers = play(log, random_steps(seed), random.Random(seed))
    done = run_java("TransactionLog", str(kafkas), given="".join(f"{step}\n" for step in steps))
    assert done.returncode == 0, done.stderr
    assert answers == done.stdout.splitlines()
    kinds = {answer.split()[0] for answer in answers}
    assert {"appended", "moved", "rolled", "aborted", *ERRORS.values()} - kinds <= {
        "OutOfOrderSequenceException"
    }
    aborted = indexed(log)
    assert len(aborted) > 10
    log.flush()
    end = log.log_end_offset
    log.close()
    assert transaction_indexes(ours) == transaction_indexes(kafkas)
    logs = {path.name: path.read_bytes() for path in ours.glob("*.log")}
    assert logs == {path.name: path.read_bytes() for path in kafkas.glob("*.log")}
    snapshots = [(folder / f"{end:020}.snapshot").read_bytes() for folder in (kafkas, ours)]
    assert decode_snapshot(snapshots[0]) == decode_snapshot(snapshots[1])
    for is_clean in (True, False):
        theirs = open_log(kafkas, LogConfig(), is_clean)
        theirs.update_high_watermark(end)
        log.producers.transactions.high_watermark_moved(end)
        assert indexed(theirs) == aborted
        assert theirs.producers.transactions.first_unstable_offset == (
            log.producers.transactions.first_unstable_offset
        )
        theirs.close()


def test_kafkas_dump_log_segments_reads_markers_and_indexes(tmp_path: Path) -> None:
    folder = tmp_path / "written-0"
    folder.mkdir()
    log = open_log(folder)
    for producer_id, commit in ((7, False), (8, True)):
        batch = sent(b"a", b"b", producer_id=producer_id, epoch=3, attributes=TRANSACTIONAL)
        log.append_as_leader(batch, 0, NOW, guard=NOT_NEEDED)
        marker = marker_batch(producer_id, 3, commit, 5, NOW)
        log.append_as_leader(marker, 0, NOW, AppendOrigin.COORDINATOR)
    log.close()
    dump = dump_log_segments(sorted(folder.glob("*.log")))
    assert not dump.faults
    assert [batch["isControl"] for batch in dump.batches] == ["false", "true"] * 2
    markers = [record["endTxnMarker"] for record in dump.records if "endTxnMarker" in record]
    assert markers == ["ABORT", "COMMIT"]
    assert all(r["coordinatorEpoch"] == "5" for r in dump.records if "endTxnMarker" in r)
    (index,) = folder.glob("*.txnindex")
    done = run_java("kafka.tools.DumpLogSegments", "--files", str(index))
    assert done.stdout.splitlines()[1:] == [
        "version: 0 producerId: 7 firstOffset: 0 lastOffset: 2 lastStableOffset: 3"
    ], done.stdout
    (snapshot,) = folder.glob("*.snapshot")
    done = run_java("kafka.tools.DumpLogSegments", "--files", str(snapshot))
    lines = [line for line in done.stdout.splitlines() if line.startswith("producerId")]
    assert [line.split()[5] for line in lines] == ["5", "5"], lines
    assert all("currentTxnFirstOffset: OptionalLong.empty" in line for line in lines), lines
    assert not done.stderr.strip()
