"""Transactions as a campaign runs them: under each of its faults, and against the seeded bugs."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
from barnabas_common.history.checker import check
from barnabas_common.history.checks.finding import Anomaly
from barnabas_common.history.operations import End, FinalRead, Operation, Send, Stage
from barnabas_common.history.promise import Promise
from barnabas_common.history.recorder import Recorder
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.campaign import schedule
from barnabas_simulator.campaign.clients.transactions.recording import TakeOver
from barnabas_simulator.campaign.faults.faults import OF_TRANSACTIONS, Fault, FaultKind
from barnabas_simulator.campaign.judge.verdict import (
    ABORTED,
    COMMITTED,
    assert_copied,
    assert_fenced,
    wrong_copies,
)
from barnabas_simulator.campaign.options import Mode, Options
from barnabas_simulator.campaign.plans.plan import plan
from barnabas_simulator.campaign.schedule import Outcome, run_schedule
from barnabas_simulator.labels import copy_of

from tests.support.transaction_bugs import TRANSACTION_BUGS

COPYING = Options(
    seed=7,
    chaos_seconds=12.0,
    partitions=1,
    has_admin=False,
    pause=1.0,
    session_timeout_ms=2_000,
    order_producers=1,
    copiers=2,
    order_partitions=2,
    abort_chance=0.3,
    transaction_pause=0.1,
)


def every(seconds: float, kind: FaultKind, *targets: str, lasting: float = 1.0) -> list[Fault]:
    count = int(COPYING.chaos_seconds / seconds)
    return [
        Fault(1.0 + seconds * n, kind, targets[n % len(targets)], seconds=lasting)
        for n in range(count)
    ]


CLIENTS = ["order-producer-0", "copier-0", "copier-1"]


def test_half_of_the_runs_have_transactional_clients() -> None:
    drawn = [Options.draw(seed, Mode.SAFETY) for seed in range(300)]
    transactional = [options for options in drawn if options.has_transactions]
    assert 100 < len(transactional) < 200
    assert {options.copiers for options in transactional} == {0, 1, 2}
    kinds = {fault.kind for options in transactional[:20] for fault in plan(options)}
    assert kinds >= {*OF_TRANSACTIONS}
    targets = {fault.target for options in transactional[:20] for fault in plan(options)}
    assert targets >= {"transactions", "copier-0", "order-producer-0"}


def test_without_faults_everything_is_copied_once() -> None:
    outcome = run_schedule(COPYING, [])
    assert outcome.violation is None
    assert outcome.counts[COMMITTED] > 20
    assert outcome.counts[ABORTED] > 5


@pytest.mark.parametrize("target", ["leader", "transactions", "coordinator"])
@pytest.mark.parametrize("kind", [FaultKind.KILL, FaultKind.PAUSE])
def test_a_copy_outlives_leaders_and_coordinators(kind: FaultKind, target: str) -> None:
    outcome = run_schedule(COPYING, every(4.0, kind, target, lasting=3.0))
    assert outcome.violation is None
    assert outcome.counts[f"fault: {kind}"] > 1
    assert outcome.counts[COMMITTED] > 10


@pytest.mark.parametrize("kind", OF_TRANSACTIONS)
def test_a_copy_outlives_what_befalls_its_clients(kind: FaultKind) -> None:
    outcome = run_schedule(COPYING, every(2.0, kind, *CLIENTS, lasting=3.5))
    assert outcome.violation is None
    assert outcome.counts[f"fault: {kind}"] > 2
    assert outcome.counts[COMMITTED] > 10


# ---- what is judged


@pytest.fixture(scope="module")
def recorded() -> list[Operation]:
    """The transactional history of a run."""
    found: list[list[Operation]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            schedule,
            "assert_promise_kept",
            lambda operations, promise: found.append(list(operations)),
        )
        assert run_schedule(replace(COPYING, chaos_seconds=6.0), []).violation is None
    return found[-1]


def as_aborted(recorded: list[Operation]) -> list[Operation]:
    """A transaction that was committed is said to be aborted."""
    end = next(o for o in recorded if isinstance(o, End) and o.commit and o.stage is Stage.OK)
    return [
        replace(o, commit=False) if isinstance(o, End) and o.transaction == end.transaction else o
        for o in recorded
    ]


def without_one(recorded: list[Operation]) -> list[Operation]:
    """A record of a transaction that was committed is not there in the end."""
    ends = {
        o.transaction for o in recorded if isinstance(o, End) and o.commit and o.stage is Stage.OK
    }
    gone = next(
        o for o in recorded if isinstance(o, Send) and o.offset > 2 and o.transaction in ends
    )
    changed = list[Operation]()
    for operation in recorded:
        records = getattr(operation, "records", None)
        if records is not None:
            left = {p: [r for r in found if r[1] != gone.value] for p, found in records.items()}
            operation = replace(operation, records=left)  # type: ignore[call-arg]
        changed.append(operation)
    return changed


def test_the_history_has_every_transactional_client(recorded: list[Operation]) -> None:
    judged = check(recorded, Promise(idempotent=True))
    assert judged.good
    assert {o.client for o in recorded if isinstance(o, End)} == {*CLIENTS}
    assert {o.read_committed for o in recorded if isinstance(o, FinalRead)} == {True, False}


def test_what_is_planted_in_the_history_is_found(recorded: list[Operation]) -> None:
    promise = Promise(idempotent=True)
    assert Anomaly.ABORTED_READ in check(as_aborted(recorded), promise).broken
    assert Anomaly.LOST_WRITE in check(without_one(recorded), promise).broken


def test_a_zombie_that_writes_is_found() -> None:
    written: list[Operation] = []
    tell = partial(Recorder, written.append, lambda: len(written), "copier-0")
    zombie, heir = tell(1), tell(2)
    takeovers = [TakeOver(-1, "copier-0/1", 0), TakeOver(1, "copier-0/2", 4)]
    send = {"partition": "copies-0", "value": "one", "transaction": "1:1"}
    early = zombie.begin(Send, **send)
    heir.end(heir.begin(Send, partition="copies-0", value="heir", transaction="2:1"), offset=7)
    late = zombie.begin(Send, **{**send, "value": "late"})
    zombie.end(early, offset=6)
    zombie.end(zombie.begin(End, transaction="1:1", commit=True), Stage.INFO)
    zombie.end(zombie.begin(End, transaction="1:2", commit=False))
    assert_fenced(written, takeovers)
    zombie.end(late, offset=8)
    with pytest.raises(AssertionError, match="I17"):
        assert_fenced(written, takeovers)
    assert_fenced(written, [*takeovers, TakeOver(2, "copier-0/1", 8)])


@pytest.mark.parametrize(
    ("copies", "wrong"),
    [
        ([b"a", b"b", b"c"], []),
        ([b"a", b"c"], ["lost: [b'b']"]),
        ([b"a", b"b", b"a", b"c"], ["duplicated: [b'a']"]),
        ([b"a", b"b", b"c", b"d"], ["of unknown origin: [b'd']"]),
        ([b"b", b"a", b"c"], ["not in the order of the originals"]),
    ],
)
def test_copies_are_compared_with_their_originals(copies: list[bytes], wrong: list[str]) -> None:
    assert wrong_copies([b"a", b"b", b"c"], copies) == wrong


def test_a_copy_is_judged_by_the_record_it_is_a_copy_of() -> None:
    orders, copies = TopicPartition("orders", 0), TopicPartition("copies", 0)
    records = {orders: [(0, b"a"), (1, b"b")], copies: [(0, copy_of("copier-0.1:1", b"a"))]}
    with pytest.raises(AssertionError, match=r"copies-0: \[\"lost: \[b'b'\]"):
        assert_copied(records, "orders", "copies")
    assert_copied(records, "orders", "")
    with pytest.raises(AssertionError, match="no transaction was committed"):
        assert_copied({orders: []}, "orders", "")


# ---- seeded bugs


def found(outcome: Outcome, *clauses: str) -> bool:
    return outcome.violation is not None and all(one in outcome.violation for one in clauses)


CAUGHT: list[tuple[str, Sequence[Fault], list[str]]] = [
    ("M9", [], ["I16", "above the high watermark"]),
    ("M14", [], ["I14", "was answered, and is not in the log"]),
    ("T2", [], ["I19", "its transaction is not committed"]),
]
ELSEWHERE = {"M10", "T1", "T3"}
"""In `tests/simulation/test_transaction_schedules.py`."""


def test_every_bug_of_transactions_has_a_schedule_that_always_catches_it() -> None:
    assert {bug for bug, *_ in CAUGHT} | ELSEWHERE == set(TRANSACTION_BUGS)


@pytest.mark.parametrize(("bug", "faults", "clauses"), CAUGHT, ids=[bug for bug, *_ in CAUGHT])
def test_a_bug_of_transactions_is_found_at_once(
    bug: str, faults: Sequence[Fault], clauses: list[str]
) -> None:
    with TRANSACTION_BUGS[bug].planted():
        outcome = run_schedule(COPYING, faults)
    assert found(outcome, *clauses), outcome.violation
