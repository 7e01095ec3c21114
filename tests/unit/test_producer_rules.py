"""I13 on planted logs and states: what may be passes, and each thing that must not is found."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from barnabas_broker.log.producers.producer_state import after_batch
from barnabas_common.record.batch import batches
from barnabas_common.record.sequence import MAX_SEQUENCE
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk
from barnabas_simulator.invariants.logs.image import LogImage
from barnabas_simulator.invariants.producer_rules import (
    ProducerSamples,
    sequences_follow,
    state_is_the_logs,
)
from barnabas_simulator.invariants.view import Replica

from tests.support.idempotent import sent

PATH = "/data/t-0"
Sent = tuple[int, int, int]
"""Producer id, epoch and first sequence of a batch of two records."""


def written(*parts: Sent, start: int = 0) -> bytes:
    data = b""
    for number, (producer_id, epoch, sequence) in enumerate(parts):
        batch = sent(b"a", b"b", producer_id=producer_id, epoch=epoch, sequence=sequence)
        data += (start + number * 2).to_bytes(8, "big") + batch[8:]
    return data


def image_of(data: bytes, is_compacted: bool = False) -> LogImage:
    disk = MemoryDisk()
    disk.make_directory(PATH)
    disk.open(f"{PATH}/{0:020d}.log", create=True).append([data])
    image = LogImage(disk, PATH, is_compacted)
    image.update()
    return image


def partition_of(entries: Mapping[int, bytes], txn_index: list[object]) -> Any:
    segments = [SimpleNamespace(path=f"{PATH}/{0:020d}.log", txn_index=txn_index)]
    producers = SimpleNamespace(entries=entries, transactions=object())
    log = SimpleNamespace(producers=producers, segments=lambda: segments)
    return SimpleNamespace(topic_partition=TopicPartition("t", 0), log=log)


def state_of(data: bytes) -> dict[int, bytes]:
    entries: dict[int, bytes] = {}
    for _, header in batches(data):
        entries[header.producer_id] = after_batch(entries.get(header.producer_id), header)
    return entries


def replica_of(image: LogImage) -> Replica:
    return Replica(1, "1/1", 0, 0, 0, image.end, image.end, (), None, None)


def follows(*parts: Sent, is_compacted: bool = False) -> bool:
    image = image_of(written(*parts), is_compacted)
    return sequences_follow.broken(replica_of(image), image) is None


def agrees(data: bytes, entries: Mapping[int, bytes], is_compacted: bool = False) -> bool:
    image = image_of(data, is_compacted)
    return state_is_the_logs.broken(replica_of(image), image, entries) is None


@pytest.mark.parametrize(
    ("parts", "follow", "follow_compacted"),
    [
        ([(1, 0, 0), (2, 0, 0), (1, 0, 2), (2, 0, 2)], True, True),
        ([(1, 0, 40), (1, 0, 42)], True, True),
        ([(1, 0, 0), (1, 0, 0)], False, False),
        ([(1, 0, 0), (1, 0, 2), (1, 0, 0)], False, False),
        ([(1, 0, 0), (1, 0, 1)], False, False),
        ([(1, 0, 0), (1, 0, 4)], False, True),
        ([(1, 0, 0), (1, 1, 0)], True, True),
        ([(1, 0, 0), (1, 1, 2)], False, True),
        ([(1, 1, 0), (1, 0, 0)], False, False),
        ([(1, 0, MAX_SEQUENCE), (1, 0, 1)], True, True),
        ([(1, 0, MAX_SEQUENCE - 1), (1, 0, 0)], True, True),
        ([(1, 0, MAX_SEQUENCE - 1), (1, 0, MAX_SEQUENCE - 1)], False, False),
    ],
)
def test_sequences_follow(parts: list[Sent], follow: bool, follow_compacted: bool) -> None:
    assert follows(*parts) is follow
    assert follows(*parts, is_compacted=True) is follow_compacted


LOG = written((1, 0, 0), (2, 0, 0), (1, 0, 2), (1, 0, 4))


def test_a_replica_knows_what_its_log_has() -> None:
    state = state_of(LOG)
    assert agrees(LOG, state)
    assert not agrees(LOG, {}), "nothing was read at a start"
    assert not agrees(LOG, {1: state[1]}), "one is missing"
    assert not agrees(LOG, state_of(LOG[: 3 * len(LOG) // 4])), "it is behind its log"
    ahead = state_of(LOG + written((2, 0, 2), start=8))
    assert not agrees(LOG, ahead), "a truncation was forgotten"


def test_a_batch_that_is_not_in_the_log_is_found_in_the_window_too() -> None:
    other = state_of(written((1, 0, 0), (2, 0, 0), (2, 0, 2), (1, 0, 2)))
    same_end = state_of(written((1, 0, 0), (2, 0, 0), (3, 0, 0), (1, 0, 2)))
    log = written((1, 0, 0), (2, 0, 0), (3, 0, 0), (1, 0, 2))
    assert agrees(log, same_end)
    entries = {**same_end, 2: other[2]}
    assert not agrees(log, entries)


def test_what_retention_deleted_may_be_known() -> None:
    whole = written((1, 0, 0), (2, 0, 0), (1, 0, 2))
    rest = whole[2 * len(whole) // 3 :]
    assert agrees(rest, state_of(whole))
    assert agrees(rest, state_of(rest))


def test_compaction_may_take_older_batches_but_not_the_last() -> None:
    size = len(LOG) // 4
    compacted = LOG[size:]  # the first batch of producer 1 went
    state = state_of(LOG)
    assert agrees(compacted, state, is_compacted=True)
    assert not agrees(LOG[: 3 * size], state, is_compacted=True)


def test_a_replica_is_asked_again_when_it_or_its_log_has_changed() -> None:
    samples, image = ProducerSamples(), image_of(LOG)
    replica, entries, aborted = replica_of(image), state_of(LOG), list[object]()
    partition = partition_of(entries, aborted)
    assert samples.is_new(replica, partition, image)
    assert not samples.is_new(replica, partition, image)
    assert samples.is_new(replica._replace(incarnation="1/2"), partition, image)
    assert samples.is_new(replica, partition, image)
    del entries[2]
    assert samples.is_new(replica, partition, image), "a producer was forgotten"
    aborted.append("transaction")
    assert samples.is_new(replica, partition, image), "the transaction index has grown"
    partition.log.producers.transactions = object()
    assert samples.is_new(replica, partition, image), "the transactions were read again"
    assert samples.is_new(replica, partition, image_of(LOG)), "another log"
    samples.forget()
    assert samples.is_new(replica, partition, image)


def test_each_change_of_an_image_makes_a_new_version() -> None:
    image = image_of(LOG)
    versions = [image.version]
    file = image._disk.open(f"{PATH}/{0:020d}.log")
    file.append([written((1, 0, 6), start=8)])
    image.update()
    versions.append(image.version)
    file.truncate(len(LOG))
    image.update()
    versions.append(image.version)
    assert sorted(set(versions)) == versions
    image.update()
    assert image.version == versions[-1]
