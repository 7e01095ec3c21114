"""A changed bit in a transaction index: a start sees it, and readers learn of the same aborted
transactions as before. An index has no checksum, so an entry counts only where its batches are."""

import pytest
from barnabas_broker.log.index.transaction_index import AbortedTxn
from barnabas_broker.log.recovery.log_checkpoint import LogCheckpoint
from barnabas_broker.log.unified_log import UnifiedLog
from barnabas_simulator.disk import MemoryDisk

from tests.support.log_transactions import Writer, commit_all, indexed
from tests.support.log_world import FOLDER, LogWorld

END = 12
ENTRY_BYTES = 34
STOPPED = LogCheckpoint(END, 0, END, is_clean=True)
KILLED = LogCheckpoint(END, 0, END, is_unbroken=True)


def written(in_segments: bool) -> tuple[LogWorld, MemoryDisk, list[str]]:
    """Return a closed log and the names of its transaction indexes. Three producers, whose
    transactions overlap."""
    disk = MemoryDisk()
    world = LogWorld(disk=disk)
    log = world.open()
    one, two, three = Writer(log, 1), Writer(log, 2), Writer(log, 3)
    one.send(b"a")  # 0
    two.send(b"b")  # 1
    one.end(commit=False)  # 2
    if in_segments:
        log.roll()
    three.send(b"c")  # 3
    two.end(commit=False)  # 4
    three.end(commit=True)  # 5
    if in_segments:
        log.roll()
    one.send(b"d")  # 6
    two.send(b"e")  # 7
    three.send(b"f")  # 8
    three.end(commit=False)  # 9
    two.end(commit=True)  # 10
    one.end(commit=False)  # 11
    commit_all(log)
    log.roll()
    log.flush()
    log.close()
    return world, disk, [name for name in world.names() if name.endswith(".txnindex")]


EXPECTED = [
    AbortedTxn(1, 0, 2, 1),
    AbortedTxn(2, 1, 4, 3),
    AbortedTxn(3, 8, 9, 6),
    AbortedTxn(1, 6, 11, 12),
]


def told(log: UnifiedLog) -> list[list[tuple[int, int]]]:
    """What readers from each offset to each later one learn."""
    batches = [log.read(offset, 1, END) for offset in range(END)]
    return [
        [
            (one.producer_id, one.first_offset)
            for one in log.aborted_transactions(start, b"".join(batches[start:end]))
        ]
        for start in range(END)
        for end in range(start + 1, END + 1)
    ]


@pytest.mark.parametrize("checkpoint", [STOPPED, KILLED], ids=["stopped", "killed"])
@pytest.mark.parametrize("in_segments", [False, True])
def test_readers_learn_of_the_same_transactions(
    in_segments: bool, checkpoint: LogCheckpoint
) -> None:
    world, disk, names = written(in_segments)
    log = world.open(checkpoint)
    before, wrong = told(log), []
    assert indexed(log) == EXPECTED
    for path in [f"{FOLDER}/{name}" for name in names]:
        content = disk.read_file(path)
        assert content and len(content) % ENTRY_BYTES == 0
        for byte, bit in [(byte, bit) for byte in range(len(content)) for bit in range(8)]:
            disk.flip(path, byte, bit)
            if told(world.open(checkpoint)) != before:
                wrong.append((path, byte, bit))
            disk.write_file(path, content)
    assert not wrong


def test_a_damaged_marker_does_not_make_its_index_wrong() -> None:
    """Nothing could be rebuilt from it."""
    world, disk, _ = written(in_segments=True)
    path = f"{FOLDER}/{0:020}.log"
    disk.flip(path, len(disk.read_file(path)) - 1, 0)
    assert indexed(world.open(STOPPED)) == EXPECTED
