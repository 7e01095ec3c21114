"""A simulated run is judged by the checker of histories: clean, and with what is planted in it."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from barnabas_common.history.checker import check
from barnabas_common.history.checks.finding import Anomaly
from barnabas_common.history.lines import from_line, to_line
from barnabas_common.history.operations import (
    Assign,
    Commit,
    FinalRead,
    Operation,
    Poll,
    Send,
    Stage,
)
from barnabas_simulator.campaign import schedule
from barnabas_simulator.campaign.faults.faults import Fault, FaultKind
from barnabas_simulator.campaign.judge.verdict import assert_promise_kept
from barnabas_simulator.campaign.options import Options

OPTIONS = Options(seed=11, chaos_seconds=25.0, consumers=2, groups=1, has_admin=False)
FAULTS = [
    Fault(2.0, FaultKind.KILL_CLIENT, "producer-0", seconds=2.0),
    Fault(8.0, FaultKind.KILL, "leader", seconds=4.0),
]


@pytest.fixture(scope="module")
def recorded() -> list[Operation]:
    """The history of a run with a producer and a broker that are killed."""
    found: list[Operation] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            schedule, "assert_promise_kept", lambda operations, promise: found.extend(operations)
        )
        assert schedule.run_schedule(OPTIONS, FAULTS).violation is None
    return found


def test_every_client_is_in_the_history(recorded: list[Operation]) -> None:
    clients = {(type(operation), operation.process) for operation in recorded}
    assert {(Send, "producer-0/1"), (Send, "producer-0/2")} <= clients
    assert {(Poll, "consumer-0/1"), (Assign, "consumer-1/1"), (FinalRead, "judge/1")} <= clients
    assert any(isinstance(operation, Commit) for operation in recorded)
    judged = check(recorded)
    assert judged.good
    assert judged.acknowledged > 50


def test_it_is_the_same_as_lines(recorded: list[Operation]) -> None:
    assert [from_line(to_line(operation)) for operation in recorded] == recorded


def without(recorded: list[Operation], value: str) -> list[Operation]:
    """Remove a value from everything that was read."""
    changed: list[Operation] = []
    for operation in recorded:
        if isinstance(operation, Poll | FinalRead):
            read = {
                partition: [(offset, found) for offset, found in records if found != value]
                for partition, records in operation.records.items()
            }
            operation = replace(operation, records=read)
        changed.append(operation)
    return changed


def an_acknowledged(recorded: list[Operation]) -> Send:
    """Return one amid others that were acknowledged."""
    return [o for o in recorded if isinstance(o, Send) and o.stage is Stage.OK][30]


def lose_a_record(recorded: list[Operation]) -> list[Operation]:
    return without(recorded, an_acknowledged(recorded).value)


def skip_a_record(recorded: list[Operation]) -> list[Operation]:
    """Each consumer skips a record that only the last reader gets."""
    changed = without(recorded, an_acknowledged(recorded).value)
    return [*changed[:-1], recorded[-1]]


def refuse_a_record(recorded: list[Operation]) -> list[Operation]:
    acked = an_acknowledged(recorded)
    failed = replace(acked, stage=Stage.FAIL, offset=-1)
    return [failed if operation is acked else operation for operation in recorded]


def commit_ahead(recorded: list[Operation]) -> list[Operation]:
    commit = next(o for o in recorded if isinstance(o, Commit))
    offsets = {partition: offset + 10_000 for partition, offset in commit.offsets.items()}
    ahead = replace(commit, offsets=offsets)
    return [ahead if operation is commit else operation for operation in recorded]


@pytest.mark.parametrize(
    ("plant", "anomaly"),
    [
        (lose_a_record, Anomaly.LOST_WRITE),
        (skip_a_record, Anomaly.POLL_SKIP),
        (refuse_a_record, Anomaly.ABORTED_READ),
        (commit_ahead, Anomaly.COMMIT_AHEAD),
    ],
)
def test_what_is_planted_is_found(
    recorded: list[Operation],
    plant: Callable[[list[Operation]], list[Operation]],
    anomaly: Anomaly,
) -> None:
    planted = plant(recorded)
    assert anomaly in check(planted).broken
    with pytest.raises(AssertionError, match=anomaly):
        assert_promise_kept(planted, check(recorded).promise)
