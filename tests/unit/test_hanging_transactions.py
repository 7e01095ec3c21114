"""Which open transactions hang, by what leaders and coordinators report."""

import pytest
from barnabas.admin import OpenTransaction, TransactionDescription, TransactionListing
from barnabas.admin.transactions.hanging import candidates, hanging
from barnabas_common.messages.transactions import ActiveProducer
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.cli.admin.transaction import description_row

ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 0)
OPEN = ActiveProducer(7, 0, 3, last_timestamp=1_000, current_txn_start_offset=40)
FOUND = [OpenTransaction(ORDERS, OPEN)]
LISTED = [TransactionListing("copy", 1, 7, "Ongoing")]


def known(state: str, *partitions: TopicPartition) -> dict[str, TransactionDescription]:
    described = TransactionDescription("copy", 1, 7, 0, state, 60_000, 900, partitions)
    return {"copy": described}


def test_only_transactions_older_than_any_may_be_are_candidates() -> None:
    ended = ActiveProducer(8, 0, 3, last_timestamp=1_000)
    producers = {PAYMENTS: [ended], ORDERS: [OPEN, ended]}
    assert candidates(producers, 5_000, 6_001) == FOUND
    assert candidates(producers, 5_000, 6_000) == []


@pytest.mark.parametrize("state", ["Ongoing", "PrepareCommit", "PrepareAbort"])
def test_one_that_its_coordinator_knows_does_not_hang(state: str) -> None:
    assert hanging(FOUND, LISTED, known(state, PAYMENTS, ORDERS)) == []
    assert hanging(FOUND, LISTED, known(state, PAYMENTS)) == FOUND


@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "CompleteAbort"])
def test_one_whose_coordinator_is_done_hangs(state: str) -> None:
    assert hanging(FOUND, LISTED, known(state)) == FOUND


def test_one_of_an_unknown_producer_hangs() -> None:
    assert hanging(FOUND, [], {}) == FOUND
    assert hanging(FOUND, LISTED, {}) == FOUND, "the transactional id has expired meanwhile"
    other = [TransactionListing("other", 1, 8, "Ongoing")]
    assert hanging(FOUND, other, known("Ongoing", ORDERS)) == FOUND


def test_a_duration_is_that_of_an_open_transaction() -> None:
    row = description_row(known("Ongoing", ORDERS)["copy"], 2_000)
    assert row["transaction_duration_ms"] == 1_100
    assert row["current_transaction_start_time_ms"] == 900
    assert row["topic_partitions"] == ["orders-0"]
    row = description_row(known("CompleteCommit")["copy"], 2_000)
    assert row["transaction_duration_ms"] is row["current_transaction_start_time_ms"] is None
