"""Which folders the campaign may take from a disk."""

import pytest
from barnabas_simulator.campaign.faults.budget import disturbs, folders_to_lose
from barnabas_simulator.campaign.faults.faults import Fault, FaultKind
from barnabas_simulator.disk import MemoryDisk

CHECKPOINT = "/data/replication-offset-checkpoint"


def _disk(checkpoint: bytes | None) -> MemoryDisk:
    disk = MemoryDisk()
    for folder in ("old-0", "old-1", "new-0"):
        disk.make_directory(f"/data/{folder}")
    if checkpoint is not None:
        disk.write_file(CHECKPOINT, checkpoint)
    return disk


def test_only_a_folder_that_a_checkpoint_names_is_lost() -> None:
    disk = _disk(b"0\n3\nold 0 5\nold 1 0\ngone 0 7\n")
    assert folders_to_lose(disk) == ["/data/old-0", "/data/old-1"]


@pytest.mark.parametrize("checkpoint", [None, b"0\n9\n"], ids=["missing", "malformed"])
def test_without_a_checkpoint_no_folder_is_lost(checkpoint: bytes | None) -> None:
    assert folders_to_lose(_disk(checkpoint)) == []


def test_a_folder_is_named_by_the_checkpoint_of_its_own_directory() -> None:
    disk = _disk(b"0\n1\nold 0 5\n")
    disk.make_directory("/data-2/old-1")
    disk.make_directory("/data-2/new-0")
    disk.write_file("/data-2/replication-offset-checkpoint", b"0\n1\nnew 0 5\n")
    assert folders_to_lose(disk) == ["/data/old-0", "/data-2/new-0"]


WAIT = 8.0


@pytest.mark.parametrize(
    ("fault", "since", "is_to_wait"),
    [
        (Fault(0, FaultKind.SKEW, "1", seconds=60.0), 0.1, False),
        (Fault(0, FaultKind.KILL_CLIENT, "producer-0"), 5.0, False),
        (Fault(0, FaultKind.KILL, "2", seconds=2.0), 0.1, False),
        (Fault(0, FaultKind.KILL, "2", seconds=2.1), 0.1, True),
        (Fault(0, FaultKind.PAUSE, "2", seconds=0.5), 2.1, True),
        (Fault(0, FaultKind.LOSE_POWER, "2", seconds=0.1), 0.1, True),
        (Fault(0, FaultKind.CUT_POWER, seconds=0.1), 0.1, True),
    ],
)
def test_after_a_loss_no_fault_outlasts_what_an_election_waits(
    fault: Fault, since: float, is_to_wait: bool
) -> None:
    """All that begin early and are short end before half of the wait is over."""
    assert disturbs(fault, since, WAIT) is is_to_wait


def test_without_a_wait_no_broker_may_be_away_after_a_loss() -> None:
    assert disturbs(Fault(0, FaultKind.KILL, "2", seconds=0.1), 0.0, 0.0)
