"""Which markers go to which leader, and what their outcomes mean."""

import asyncio
import gc
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from barnabas_broker.coordinator.transaction.marker_channel import MarkerChannel
from barnabas_broker.coordinator.transaction.markers import (
    Errand,
    Outcome,
    PendingMarkers,
    outcome_of,
    plan,
    request_of,
    settle,
)
from barnabas_broker.coordinator.transaction.metadata import TransactionMetadata
from barnabas_broker.coordinator.transaction.states import TransactionState
from barnabas_common.errors.error_code import ErrorCode
from barnabas_common.messages.transactions import (
    TransactionPartition,
    TransactionPartitionResult,
    WritableTxnMarker,
    WritableTxnMarkerResult,
    WriteTxnMarkersResponse,
)
from barnabas_common.runtime import Address, SystemClock
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.loop import VirtualClock

A, B, C = (TopicPartition("t", number) for number in range(3))


def pending(name: str = "copy", *partitions: TopicPartition, commit: bool = True) -> PendingMarkers:
    state = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
    keys = frozenset(partitions or (A, B, C))
    return PendingMarkers.of(TransactionMetadata(name, 7, 3, 1000, state, keys), lambda: 5)


def test_markers_go_to_the_leaders_one_request_for_each() -> None:
    one, two = pending("one"), pending("two", C)
    leaders = {A: 1, B: 2, C: 1}
    todo = plan([one, two], leaders.__getitem__, 0.0)
    assert todo.errands == {1: [Errand(one, [A, C]), Errand(two, [C])], 2: [Errand(one, [B])]}
    assert not todo.waiting


def test_a_partition_without_a_leader_waits() -> None:
    item = pending()
    todo = plan([item], lambda key: -1 if key == A else 1, 0.0)
    assert todo.errands == {1: [Errand(item, [B, C])]} and todo.waiting
    assert item.missing == {A, B, C}


def test_a_partition_is_taken_for_deleted_only_after_a_while() -> None:
    """A broker that has just taken over may not know the topic yet."""
    item = pending("copy", A)
    for now in (100.0, 109.9):
        assert plan([item], lambda _: None, now) == ({}, True, [])
    assert plan([item], lambda _: 1, 109.95).errands, "it is known now"
    assert plan([item], lambda _: None, 110.0).doubtful == [], "counted anew"
    assert plan([item], lambda _: None, 120.0) == ({}, True, [A])
    item.looked_for(A, exists=True)
    assert plan([item], lambda _: None, 120.1).doubtful == [], "counted anew"
    assert plan([item], lambda _: None, 130.1) == ({}, True, [A])
    item.looked_for(A, exists=False)
    assert plan([item], lambda _: None, 130.2) == ({}, False, [])
    assert not item.missing


@pytest.mark.parametrize("commit", [True, False])
def test_a_request_carries_producer_outcome_and_coordinator_epoch(commit: bool) -> None:
    item = pending(commit=commit)
    item.decided = replace(item.decided, client_version=2)
    request = request_of([Errand(item, [A, C])])
    partitions = [TransactionPartition("t", 0), TransactionPartition("t", 2)]
    assert request.markers == [WritableTxnMarker(7, 3, commit, partitions, 5, 2)]


@pytest.mark.parametrize("error", list(ErrorCode))
def test_what_an_outcome_means(error: ErrorCode) -> None:
    outcome = outcome_of(error)
    if error in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT):
        assert outcome is Outcome.WRITTEN
    elif error in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        assert outcome is Outcome.FENCED
    else:
        assert outcome is Outcome.AGAIN


def result(item: PendingMarkers, **errors: ErrorCode) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        item.decided.producer_id,
        [TransactionPartitionResult("t", int(name[1:]), code) for name, code in errors.items()],
    )


def test_what_is_written_is_not_sent_again() -> None:
    one, two = pending("one"), pending("two")
    errands = [Errand(one, [A, B]), Errand(two, [A])]
    answer = WriteTxnMarkersResponse(
        [
            result(one, p0=ErrorCode.NONE, p1=ErrorCode.NOT_LEADER_OR_FOLLOWER),
            result(two, p0=ErrorCode.NONE),
        ]
    )
    assert settle(errands, answer) == ([], True)
    assert (one.missing, two.missing) == ({B, C}, {B, C})


def test_a_fenced_transaction_is_given_up() -> None:
    one = pending("one")
    answer = WriteTxnMarkersResponse([result(one, p0=ErrorCode.TRANSACTION_COORDINATOR_FENCED)])
    assert settle([Errand(one, [A])], answer) == ([one], False)


def test_a_partition_that_the_answer_leaves_out_is_sent_again() -> None:
    one = pending("one")
    assert settle([Errand(one, [A])], WriteTxnMarkersResponse()) == ([], True)
    assert settle([Errand(one, [A])], WriteTxnMarkersResponse([result(one)])) == ([], True)
    assert one.missing == {A, B, C}


class SilentLeader:
    """Leads every partition, and answers nothing."""

    def __init__(self) -> None:
        self.address = Address("broker-1", 9092)
        self.asked = self.looked_up = 0

    def partition(self, *_: object) -> SimpleNamespace:
        self.looked_up += 1
        return SimpleNamespace(leader=1)

    def address_of(self, *_: object) -> Address:
        return self.address

    def connect(self, *_: object) -> "SilentLeader":
        return self

    async def may_exist(self, _: object) -> bool:
        return True

    async def close(self) -> None: ...

    async def call(self, *_: object) -> None:
        self.asked += 1
        await asyncio.get_running_loop().create_future()


async def test_many_transactions_that_are_added_at_once_are_planned_once() -> None:
    """A coordinator that takes over may have thousands: none may be looked at for each of them."""
    leader, count = cast(Any, SilentLeader()), 500
    told: list[PendingMarkers] = []
    channel = MarkerChannel(
        leader, SystemClock(), leader, "INTERNAL", leader.may_exist, told.append, told.append
    )
    for number in range(count):
        channel.add(pending(str(number), A))
    while not leader.asked:
        await asyncio.sleep(0)
    assert leader.looked_up == count
    await channel.close()


def test_what_is_on_its_way_when_the_loop_is_gone_is_dropped_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when a run of the simulator ends with a violation."""
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    leader = cast(Any, SilentLeader())

    async def send() -> None:
        told: list[PendingMarkers] = []
        clock, tell = VirtualClock(), told.append
        channel = MarkerChannel(leader, clock, leader, "INTERNAL", leader.may_exist, tell, tell)
        channel.add(pending())
        while not leader.asked:
            await asyncio.sleep(0)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(send())
    loop.close()
    gc.collect()
    assert not unraisable
