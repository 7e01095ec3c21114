"""Checkpoint files: Kafka's text, and two writers, of which the one on the event loop wins."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from barnabas_broker.log.checkpoint.checkpoint_file import (
    CheckpointFile,
    decode_offsets,
    encode_offsets,
)
from barnabas_broker.log.epochs.leader_epoch_cache import LeaderEpochCache
from barnabas_broker.log.epochs.leader_epoch_file import LeaderEpochFile
from barnabas_broker.log.errors import MalformedCheckpoint
from barnabas_broker.log.manager.offset_checkpoints import CLEAN_OFFSETS, OffsetCheckpoints
from barnabas_common.runtime import InlineOffload
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.disk import MemoryDisk
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/d")
    return disk


def test_the_text_is_kafkas() -> None:
    offsets = {TopicPartition("flights", 1): 7, TopicPartition("a-b.c", 0): 0}
    assert encode_offsets(offsets) == b"0\n2\na-b.c 0 0\nflights 1 7\n"
    assert decode_offsets(b"0\n2\na-b.c 0 0\nflights 1 7\n") == offsets
    assert decode_offsets(b"") == {}


names = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True)


@given(
    st.dictionaries(
        st.builds(TopicPartition, names, st.integers(0, 2**31 - 1)), st.integers(0, 2**63 - 1)
    )
)
def test_offsets_come_back(offsets: dict[TopicPartition, int]) -> None:
    assert decode_offsets(encode_offsets(offsets)) == offsets


@pytest.mark.parametrize(
    "text", ["1\n0\n", "0\n1\n", "0\n1\nt 0\n", "0\n1\nt x 0\n", "0\n0\nt 0 0\n"]
)
def test_a_damaged_file_is_noticed(text: str) -> None:
    with pytest.raises(MalformedCheckpoint):
        decode_offsets(text.encode())


class HeldOffload(InlineOffload):
    """An offload whose work waits until the test releases it."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        await self.gate.wait()
        return function(*args, **kwargs)


async def test_a_write_in_the_background_is_durable(disk: MemoryDisk) -> None:
    file = CheckpointFile(disk, "/d/c")
    assert file.read() == b""
    await file.write_in_background(lambda: b"one", InlineOffload())
    disk.crash(keep_unflushed=False)
    assert file.read() == b"one"


async def test_a_background_write_never_replaces_what_is_newer(disk: MemoryDisk) -> None:
    file, offload, content = CheckpointFile(disk, "/d/c"), HeldOffload(), b"old"
    writing = asyncio.create_task(file.write_in_background(lambda: content, offload))
    await asyncio.sleep(0)
    content = b"newest"
    file.write(b"new")
    offload.gate.set()
    await writing
    assert file.read() == b"newest"


async def test_background_writers_take_turns(disk: MemoryDisk) -> None:
    file = CheckpointFile(disk, "/d/c")
    await asyncio.gather(
        *(file.write_in_background(lambda n=n: b"%d" % n, InlineOffload()) for n in range(5))
    )
    assert file.read() == b"4"
    assert disk.list("/d") == ["c"]


async def test_epochs_are_durable_up_to_a_version(disk: MemoryDisk) -> None:
    cache = LeaderEpochCache()
    file, offload = LeaderEpochFile(disk, "/d", cache), HeldOffload()
    assert file.is_durable
    cache.assign(0, 0)
    assert not file.is_durable
    writing = asyncio.create_task(file.write_in_background(offload))
    await asyncio.sleep(0)
    cache.assign(3, 57)
    offload.gate.set()
    await writing
    assert file.is_durable
    disk.crash(keep_unflushed=False)
    assert disk.read_file("/d/leader-epoch-checkpoint") == b"0\n2\n0 0\n3 57\n"


async def test_a_log_counts_as_compacted_only_once_the_file_says_so(disk: MemoryDisk) -> None:
    """A pass leaves gaps, which the next start would take for losses."""
    checkpoints, offload = OffsetCheckpoints(disk, "/d"), HeldOffload()
    checkpoints.clean_offsets[TopicPartition("a", 0)] = 3
    writing = asyncio.create_task(checkpoints.write_clean_offsets(offload))
    await asyncio.sleep(0)
    checkpoints.clean_offsets[TopicPartition("b", 0)] = 5
    offload.gate.set()
    await writing
    disk.crash(keep_unflushed=False)
    written = decode_offsets(disk.read_file(f"/d/{CLEAN_OFFSETS}"))
    for topic in ("a", "b"):
        name = TopicPartition(topic, 0)
        assert checkpoints.names_as_compacted(name) == (name in written)
    assert list(written) == [TopicPartition("a", 0)]


@pytest.mark.parametrize("is_named", [False, True])
def test_a_write_without_a_sync_leaves_the_old_content_or_the_new(is_named: bool) -> None:
    """Another sync of the directory may make the new name durable."""
    for seed in range(20):  # a power loss leaves any part of what was not flushed
        disk = MemoryDisk(seed)
        disk.make_directory("/data")
        file = CheckpointFile(disk, "/data/offsets")
        file.write(b"old")
        file.write_unsynced(b"new, and longer")
        if is_named:
            disk.sync_directory("/data")
        disk.crash(keep_unflushed=False)
        assert file.read() == (b"new, and longer" if is_named else b"old")
