"""The same appends to Kafka's `ProducerStateManager` and to Barnabas have the same outcome."""

import asyncio
import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from barnabas_broker.coordinator.producer_ids import ProducerIdManager
from barnabas_broker.log.producers.snapshot_file import decode_snapshot, name_of
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.errors import KafkaError
from barnabas_common.record.sequence import MAX_SEQUENCE, sequence_after
from barnabas_controller.store.store import Store
from barnabas_controller.zookeeper.kazoo_session import connect_kazoo
from barnabas_tools.local.zookeeper_server import EmbeddedZooKeeper

from tests.kafka_tools.harness import dump_log_segments, parse_dump, run_java
from tests.kafka_tools.test_log_files import open_log
from tests.support.idempotent import sent
from tests.support.log_world import NOW

pytestmark = pytest.mark.kafka

APPENDS = 600
ERRORS = {
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "OutOfOrderSequenceException",
    "INVALID_PRODUCER_EPOCH": "InvalidProducerEpochException",
}


@dataclass
class Append:
    """`origin` is client or replica."""

    origin: str
    producer_id: int
    epoch: int
    sequence: int
    records: int
    timestamp: int

    def __str__(self) -> str:
        return (
            f"{self.origin} {self.producer_id} {self.epoch} {self.sequence} {self.records}"
            f" {self.timestamp}"
        )

    def to(self, log: UnifiedLog) -> str:
        """What Barnabas answers, in the words of `ProducerStates.java`."""
        batch = sent(
            *[b""] * self.records,
            producer_id=self.producer_id,
            epoch=self.epoch,
            sequence=self.sequence,
            timestamp=self.timestamp,
        )
        end = log.log_end_offset
        if self.origin == "replica":
            log.append_as_follower(end.to_bytes(8, "big") + batch[8:])
            return f"appended {end}"
        try:
            answer = log.append_as_leader(batch, 0, NOW)
        except KafkaError as error:
            return ERRORS[error.code.name]
        if log.log_end_offset == end:
            return "duplicate {} {} {}".format(*answer)
        return f"appended {end}"


def random_appends(seed: int) -> list[Append]:
    """Three producers that retry, skip, go back, change epochs and pass the largest sequence."""
    chance = random.Random(seed)
    appends: list[Append] = []
    next_of: dict[int, tuple[int, int]] = {}
    for _ in range(APPENDS):
        producer_id = chance.randrange(3)
        epoch, sequence = next_of.get(producer_id, (0, MAX_SEQUENCE - chance.randrange(60)))
        records = chance.randint(1, 4)
        earlier = [one for one in appends if one.producer_id == producer_id]
        kind = chance.random()
        if kind < 0.25 and earlier:
            appends.append(chance.choice(earlier[-12:]))
            continue
        if kind < 0.33:
            sequence = chance.choice([0, 1, sequence_after(sequence, chance.randrange(9))])
        if kind > 0.9:
            epoch = max(0, epoch + chance.choice([-1, 1, 1]))
            sequence = chance.choice([0, 0, sequence])
        origin = "replica" if chance.random() < 0.1 else "client"
        # The same under the same sequence: Barnabas looks at that too, Kafka does not.
        sent_at = NOW + sequence % APPENDS
        appends.append(Append(origin, producer_id, epoch, sequence, records, sent_at))
        next_of[producer_id] = (epoch, sequence_after(sequence, records))
        if chance.random() < 0.2:  # what the leader refused is lost, and the producer goes on
            next_of.pop(producer_id)
    return appends


@pytest.mark.parametrize("seed", range(3))
def test_kafka_and_barnabas_answer_alike_and_write_the_same_snapshot(
    seed: int, tmp_path: Path
) -> None:
    kafkas, ours = tmp_path / "kafka-0", tmp_path / "written-0"
    for folder in (kafkas, ours):
        folder.mkdir()
    appends = random_appends(seed)
    done = run_java("ProducerStates", str(kafkas), given="".join(f"{one}\n" for one in appends))
    assert done.returncode == 0, done.stderr
    log = open_log(ours)
    answers = [one.to(log) for one in appends]
    assert answers == done.stdout.splitlines()
    kinds = {answer.split()[0] for answer in answers}
    assert kinds == {"appended", "duplicate", *ERRORS.values()}, "the appends reach every case"
    log.flush()
    end = log.log_end_offset
    log.close()
    written = (kafkas / name_of(end)).read_bytes(), (ours / name_of(end)).read_bytes()
    assert decode_snapshot(written[0]) == decode_snapshot(written[1])
    assert len(written[0]) == len(written[1])


def test_kafkas_dump_log_segments_reads_a_snapshot(tmp_path: Path) -> None:
    folder = tmp_path / "written-0"
    folder.mkdir()
    log = open_log(folder)
    for producer_id in (7, 2**40):
        log.append_as_leader(sent(b"a", b"b", producer_id=producer_id, epoch=3, sequence=5), 0, NOW)
    log.roll()
    log.close()
    assert not dump_log_segments(sorted(folder.glob("*.log"))).faults
    done = run_java("kafka.tools.DumpLogSegments", "--files", str(folder / name_of(4)))
    lines = [line for line in done.stdout.splitlines() if line.startswith("producerId")]
    assert [line.split(" coordinatorEpoch")[0] for line in lines] == [
        "producerId: 7 producerEpoch: 3",
        f"producerId: {2**40} producerEpoch: 3",
    ]
    assert all("firstSequence: 5 lastSequence: 6" in line for line in lines), lines
    assert "lastOffset: 3 offsetDelta: 1" in lines[1]
    assert not done.stderr.strip() and not parse_dump("").faults


def test_kafka_and_barnabas_never_take_the_same_producer_ids(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(tmp_path)
    server.start()
    try:
        found = asyncio.run(_take_in_turn(server.connect_string))
    finally:
        server.stop()
    assert found == [0, 1000, 1001, 2000, 3000, 3001]


async def _take_in_turn(connect_string: str) -> list[int]:
    """Two brokers of Barnabas and two of Kafka, one after the other."""
    found = []
    for number in range(2):
        session = await connect_kazoo(connect_string)(10_000, 10_000, None)
        store = Store(session)
        await store.create_persistent_paths()
        found.append(await ProducerIdManager(1, lambda store=store: store).generate())
        await session.close()
        command = ("TakeProducerIds", connect_string, str(5 + number), "2")
        done = await asyncio.to_thread(run_java, *command)
        assert done.returncode == 0, done.stderr
        found += [int(line) for line in done.stdout.split()]
    return found
