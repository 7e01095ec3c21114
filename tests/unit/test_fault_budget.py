"""Which folders the campaign may take from a disk."""

import pytest
from barnabas_simulator.campaign.faults.budget import folders_to_lose
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
    assert folders_to_lose(disk) == ["old-0", "old-1"]


@pytest.mark.parametrize("checkpoint", [None, b"0\n9\n"], ids=["missing", "malformed"])
def test_without_a_checkpoint_no_folder_is_lost(checkpoint: bytes | None) -> None:
    assert folders_to_lose(_disk(checkpoint)) == []
