"""I14 to I17 and L10 on planted logs: what may be passes, and each thing that may not is found."""

from dataclasses import replace

import pytest
from barnabas_broker.coordinator.transaction.metadata import TransactionMetadata
from barnabas_broker.coordinator.transaction.states import TransactionState
from barnabas_broker.log.index.transaction_index import AbortedTxn
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk
from barnabas_simulator.invariants.logs.image import Batch, InTransaction, LogImage
from barnabas_simulator.invariants.transactions import rules
from barnabas_simulator.invariants.transactions.model import (
    Ended,
    PartitionTransactions,
    Producer,
    StateTruth,
)
from barnabas_simulator.invariants.view import Replica

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
PLAIN = None
Part = tuple[int, int, bool | None] | None
"""Producer id, epoch, and of a marker whether it commits; None is a batch of no transaction."""


def batches_of(*parts: Part) -> list[Batch]:
    """Batches of one record each."""
    return [
        Batch(n, n, 0, 0, 100, transaction=None if part is None else InTransaction(*part))
        for n, part in enumerate(parts)
    ]


def log_of(*parts: Part) -> PartitionTransactions:
    return PartitionTransactions(batches_of(*parts))


def replica_of(
    high_watermark: int = 10, last_stable: int = 10, led_epoch: int | None = 3, start: int = 0
) -> Replica:
    return Replica(
        1, "1/1", 3, 0, start, high_watermark, 10, (), led_epoch, None, last_stable=last_stable
    )


DECIDED = TransactionMetadata(
    "copy",
    producer_id=7,
    producer_epoch=1,
    state=TransactionState.PREPARE_COMMIT,
    partitions=frozenset({P0, P1}),
    timeout_ms=1000,
)


# ---- the model


def test_what_is_visible_follows_the_markers() -> None:
    log = log_of((7, 0, None), PLAIN, (8, 0, None), (7, 1, True), (8, 1, False), (7, 1, None))
    assert log.visible == {0: True, 1: True, 2: False, 5: None}
    assert log.visible_end == 2
    assert log.ended == [
        Ended(0, Producer(7, 1), True, 0, 3),
        Ended(0, Producer(8, 1), False, 2, 4),
    ]
    assert log.aborted == [AbortedTxn(8, 2, 4, 5)]
    assert list(log.open) == [7]


def test_an_aborted_transaction_names_the_first_that_is_open() -> None:
    log = log_of((8, 0, None), (7, 0, None), (7, 1, False), (8, 1, True))
    assert log.aborted == [AbortedTxn(7, 1, 2, 0)]


def test_a_later_producer_fences_the_earlier_ones() -> None:
    state = StateTruth(given_out=[Producer(7, 0), Producer(7, 4)])
    assert state.fences(Producer(7, 3))
    assert not state.fences(Producer(7, 4)) and not state.fences(Producer(7, 5))
    state.given_out.append(Producer(9, 0))
    assert state.fences(Producer(7, 32_000))
    assert not state.fences(Producer(8, 0)), "another id, given out at the end of a transaction"


# ---- I14


@pytest.mark.parametrize(
    ("commit", "partitions", "decision", "states"),
    [
        (True, [P0], DECIDED, None),
        (True, [P0, P1], DECIDED, None),
        (True, [P0], None, "nothing is decided"),
        (False, [P0], DECIDED, "says abort, decided is"),
        (True, [TopicPartition("orders", 2)], DECIDED, "is asked for in ['orders-2']"),
    ],
)
def test_a_marker_is_what_was_decided(
    commit: bool,
    partitions: list[TopicPartition],
    decision: TransactionMetadata | None,
    states: str | None,
) -> None:
    broken = rules.marker_is_decided.broken(Producer(7, 1), commit, partitions, decision)
    assert broken is None if states is None else states in str(broken)


def test_all_partitions_have_one_outcome() -> None:
    known = Ended(0, Producer(7, 1), True, 0, 3)
    assert rules.one_outcome.broken(P1, known, None) is None
    assert rules.one_outcome.broken(P1, known._replace(marker_offset=9), known) is None
    for other in (known._replace(commit=False), known._replace(marker=Producer(7, 2))):
        assert "another partition has" in str(rules.one_outcome.broken(P1, other, known))


def test_a_marker_ends_its_own_transaction() -> None:
    broken, own = rules.marker_is_of_its_transaction.broken, Ended(0, Producer(7, 1), True, 0, 3)
    next_one, of_kip_890 = own._replace(epoch=1), replace(DECIDED, client_version=2)
    assert broken(P0, own, of_kip_890) is None
    assert broken(P0, next_one, DECIDED) is None, "the epoch of a client of Kafka 3.9 stays"
    assert broken(P0, next_one, None) is None
    assert "of the transaction before" in str(broken(P0, next_one, of_kip_890))


def test_what_is_answered_is_in_the_log() -> None:
    assert rules.answered_is_written.broken("EndTxn", Producer(7, 0), True) is None
    assert "is not in the log" in str(
        rules.answered_is_written.broken("EndTxn", Producer(7, 0), False)
    )


def test_a_complete_transaction_has_all_its_markers() -> None:
    broken = rules.every_partition_has_its_marker.broken
    committed, aborted = log_of((7, 0, None), (7, 1, True)), log_of((7, 1, False))
    assert broken(DECIDED, {P0: committed, P1: committed}) is None
    assert broken(DECIDED, {P0: committed}) is None, "the other topic is gone"
    for wrong in (PartitionTransactions(), aborted, log_of((7, 0, True))):
        assert "['orders-1'] have no marker" in str(broken(DECIDED, {P0: committed, P1: wrong}))


def test_only_what_was_completed_needs_markers() -> None:
    state = StateTruth()
    state.take(DECIDED)
    assert state.completed == [] and state.decisions == {Producer(7, 1): DECIDED}
    state.take(replace(DECIDED, state=TransactionState.COMPLETE_COMMIT, partitions=frozenset()))
    assert state.completed == [DECIDED]


# ---- I15


def test_what_is_read_is_committed() -> None:
    assert rules.read_is_committed.broken(P0, 4, True) is None
    assert "orders-0@4 was read" in str(rules.read_is_committed.broken(P0, 4, False))


def test_the_index_lists_what_the_log_has_aborted() -> None:
    log = log_of((8, 0, None), (8, 1, False), (7, 0, None), (7, 1, False))
    broken, (first, second) = rules.index_is_the_logs.broken, log.aborted
    assert broken(replica_of(), log, 0, [first, second]) is None
    assert broken(replica_of(), log, 1, [second]) is None, "retention has deleted the first"
    assert broken(replica_of(), log, 1, [first, second]) is None
    of_truncated = AbortedTxn(7, 4, 5, 6)
    for index in (
        [first],
        [first, second, of_truncated],
        [first, second._replace(first_offset=3)],
        [first, second._replace(last_stable_offset=0)],
        [second, first],
    ):
        assert "not in both" in str(broken(replica_of(), log, 0, index))


# ---- I16


@pytest.mark.parametrize(
    ("parts", "high_watermark", "start", "stable"),
    [
        ([PLAIN, PLAIN], 2, 0, 2),
        ([PLAIN, (7, 0, None), PLAIN], 3, 0, 1),
        ([PLAIN, (7, 0, None), PLAIN], 1, 0, 1),
        ([(7, 0, None), PLAIN, (7, 1, True)], 3, 0, 3),
        ([(7, 0, None), PLAIN, (7, 1, True)], 2, 0, 0),
        ([(7, 0, None), (8, 0, None), (7, 1, True)], 3, 0, 1),
        ([(7, 0, None), PLAIN, PLAIN], 3, 2, 2),
    ],
)
def test_the_last_stable_offset_is_the_first_undecided_record(
    parts: list[Part], high_watermark: int, start: int, stable: int
) -> None:
    log, replica = log_of(*parts), replica_of(high_watermark, start=start)
    broken = rules.stable_offset_is_the_logs.broken
    assert broken(replica, log, stable, 0) is None
    for wrong in (stable - 1, stable + 1):
        assert "by the log" in str(broken(replica, log, wrong, 0))


def test_a_snapshot_does_not_say_which_markers_are_committed() -> None:
    log = log_of((7, 0, None), PLAIN, (7, 1, True), (8, 0, None), PLAIN, (8, 1, True))
    broken, replica = rules.stable_offset_is_the_logs.broken, replica_of(2)
    assert broken(replica, log, 0, 3) is None
    assert broken(replica, log, 2, 3) is None
    assert "by the log 0" in str(broken(replica, log, 2, 2))
    assert "by the log 3" in str(broken(replica_of(5), log, 5, 3)), "the second came later"


def test_the_last_stable_offset_of_a_leader_rises() -> None:
    broken, before = rules.stable_offset_rises.broken, replica_of(8, 6)
    assert broken(before, replica_of(9, 6)) is None
    assert broken(before, replica_of(9, 5, led_epoch=4)) is None, "another leader"
    assert broken(before, replica_of(9, 5, led_epoch=None)) is None, "a follower that truncates"
    assert "fell from 6 to 5" in str(broken(before, replica_of(9, 5)))
    assert "above the high watermark" in str(broken(before, replica_of(9, 10)))


# ---- I17


def test_no_older_epoch_is_in_a_log() -> None:
    image = LogImage(MemoryDisk(), "/data/orders-0")
    for parts, found in (
        ([(7, 0, None), (7, 1, True), (7, 1, None), (8, 0, None)], False),
        ([(7, 0, None), (7, 0, True), (7, 0, None)], False),
        ([(7, 0, None), (7, 1, False), (7, 0, None)], True),
        ([(7, 1, None), (7, 0, None)], True),
        ([(7, 3, False), (7, 2, True)], True),
    ):
        image.batches = batches_of(*parts)
        assert (rules.no_older_epoch.broken(replica_of(), image) is not None) is found, parts


def test_a_fenced_producer_gets_nothing() -> None:
    assert rules.fenced_is_refused.broken("EndTxn", Producer(7, 0), False) is None
    assert "succeeded" in str(rules.fenced_is_refused.broken("EndTxn", Producer(7, 0), True))


# ---- L10


def test_nothing_hangs_at_rest() -> None:
    assert rules.nothing_hangs.broken(replica_of(8, 8)) is None
    assert "stays at 6" in str(rules.nothing_hangs.broken(replica_of(8, 6)))
