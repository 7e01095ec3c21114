"""A read_committed reader drops aborted batches, keeps the others, and passes both."""

import random

import pytest
from barnabas.consumer.completed_fetch import CompletedFetch
from barnabas.consumer.subscription_state import TopicPartitionState
from barnabas_broker.log.append_origin import AppendOrigin
from barnabas_broker.log.producers.verification import NOT_NEEDED
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_common.messages.offsets import EARLIEST_TIMESTAMP
from barnabas_common.record.aborted import AbortedBatches
from barnabas_common.record.batch import TRANSACTIONAL, batches
from barnabas_common.record.transactional import marker_batch
from barnabas_common.topic_partition import TopicPartition

from tests.support.idempotent import sent
from tests.support.log_transactions import commit_all
from tests.support.log_world import NOW, LogWorld, read_all

TP = TopicPartition("t", 0)


def random_log(seed: int) -> tuple[UnifiedLog, list[bytes]]:
    """A log of four producers, three of them with transactions, and the values that count."""
    chance = random.Random(seed)
    log = LogWorld().open(segment_bytes=chance.choice([500, 1500, 1 << 20]))
    sequences = dict.fromkeys(range(4), 0)
    pending: dict[int, list[tuple[int, bytes]]] = {}
    committed: list[tuple[int, bytes]] = []
    for number in range(150):
        producer = chance.randrange(4)
        if chance.random() < 0.65 or producer == 3:
            value = b"%d" % number
            attributes = TRANSACTIONAL if producer < 3 else 0
            batch = sent(
                value,
                producer_id=producer,
                sequence=sequences[producer],
                attributes=attributes,
            )
            sequences[producer] += 1
            at = log.append_as_leader(batch, 0, NOW, guard=NOT_NEEDED).first_offset
            (pending.setdefault(producer, []) if producer < 3 else committed).append((at, value))
        else:
            commit = chance.random() < 0.5
            marker = marker_batch(producer, 0, commit, 0, NOW)
            log.append_as_leader(marker, 0, NOW, AppendOrigin.COORDINATOR)
            ended = pending.pop(producer, [])
            committed += ended if commit else []
    commit_all(log)
    stable = log.last_stable_offset
    return log, [value for at, value in sorted(committed) if at < stable]


def fetched(log: UnifiedLog, offset: int, max_bytes: int) -> tuple[bytes, list[tuple[int, int]]]:
    data = log.read(offset, max_bytes, log.last_stable_offset)
    found = log.aborted_transactions(offset, data)
    return data, [(one.producer_id, one.first_offset) for one in found]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("max_bytes", [1, 400, 1 << 20])
def test_a_reader_gets_what_is_committed_however_its_fetches_fall(
    seed: int, max_bytes: int
) -> None:
    log, expected = random_log(seed)
    state = TopicPartitionState(TP, EARLIEST_TIMESTAMP)
    state.position = 0
    values: list[bytes] = []
    as_columns: list[bytes | None] = []
    while state.position < log.last_stable_offset:
        before = state.position
        data, aborted = fetched(log, before, max_bytes)
        columns = CompletedFetch(state, 0, data, True, 1, 0, aborted)
        as_columns += columns.take_columns().values
        after_columns, state.position = state.position, before
        chunk = CompletedFetch(state, 0, data, True, 1, 0, aborted)
        while not chunk.exhausted:
            values += [record.value for record in chunk.take(1)]
        assert state.position == after_columns > before
    assert values == as_columns == expected


def test_the_same_producers_next_transaction_is_kept() -> None:
    log = LogWorld().open()
    for sequence, (value, commit) in enumerate([(b"a", False), (b"b", True), (b"c", False)]):
        batch = sent(value, sequence=sequence, attributes=TRANSACTIONAL)
        log.append_as_leader(batch, 0, NOW, guard=NOT_NEEDED)
        marker = marker_batch(1, 0, commit, 0, NOW)
        log.append_as_leader(marker, 0, NOW, AppendOrigin.COORDINATOR)
    data = read_all(log)
    filtered = AbortedBatches([(1, 4), (1, 0)])
    kept = [h.base_offset for at, h in batches(data) if not filtered.leaves_out(h, data, at)]
    assert kept == [2]
    everything = AbortedBatches()
    kept = [h.base_offset for at, h in batches(data) if not everything.leaves_out(h, data, at)]
    assert kept == [0, 2, 4], "a read_uncommitted reader leaves out the markers only"
