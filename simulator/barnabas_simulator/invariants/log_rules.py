"""Invariants between two logs: I5 and I6. Sampled, and checked when the cluster is at rest."""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas_controller.store.leader_and_isr import LeaderAndIsr

from barnabas_simulator.invariants.logs.image import Batch, LogImage
from barnabas_simulator.invariants.rule import rule
from barnabas_simulator.invariants.view import Replica


class Held(NamedTuple):
    """A replica and the image of its log."""

    replica: Replica
    image: LogImage


@rule("I5 StrongIsr")
def strong_isr(leader: Held, member: Held, state: LeaderAndIsr) -> str | None:
    """Below the high watermark of any acting leader, all running members of ZooKeeper's ISR have
    the same bytes. (Gustafson, StrongIsr: the property that means "no loss".) Those of a compacted
    partition have the same records at the offsets that both have; I25 judges what is gone."""
    if member.replica.broker_id not in state.isr or leader.replica.led_epoch is None:
        return None
    high_watermark = leader.replica.high_watermark
    start = _common_start(leader, member)
    ours = leader.image.between(start, high_watermark)
    theirs = member.image.between(start, high_watermark)
    if leader.image.held is not None:
        ours, theirs = _from_contradiction(leader.image, member.image, start)
        ends = [batches[0].base_offset for batches in (ours, theirs) if batches]
        if not ours or not theirs or min(ends) >= high_watermark:
            return None
    if ours == theirs:
        return None
    return (
        f"below the leader's high watermark {_difference(ours, theirs)}; {state};"
        f" {leader.replica}; {member.replica}"
    )


@rule("I6 LogMatching")
def log_matching(one: Held, other: Held, below_high_watermark: bool = True) -> str | None:
    """Two logs that agree on the offset and epoch of a record agree on all records before it. They
    also agree below both high watermarks, unless an unclean election has forked them. (Vanlightly,
    LogMatching; KIP-101, KIP-279.) Logs of a compacted partition agree where both have a record."""
    start = _common_start(one, other)
    if one.image.held is not None:
        ours, theirs = _from_contradiction(one.image, other.image, start)
    else:
        ours = one.image.batches[one.image.index_of(start) :]
        theirs = other.image.batches[other.image.index_of(start) :]
        common = _common_length(ours, theirs)
        ours, theirs = ours[common:], theirs[common:]
    if not ours or not theirs:
        return None
    where = min(ours[0].base_offset, theirs[0].base_offset)
    known = min(one.replica.high_watermark, other.replica.high_watermark)
    if below_high_watermark and where < known:
        return (
            f"{_difference(ours, theirs)}, below both high watermarks;"
            f" {one.replica}; {other.replica}"
        )
    shared = _shared_epoch(ours, theirs)
    if shared is not None:
        return (
            f"{_difference(ours, theirs)}, yet both have records of epoch {shared} at the same"
            f" offset after that; {one.replica}; {other.replica}"
        )
    return None


def _from_contradiction(
    one: LogImage, other: LogImage, start: int
) -> tuple[list[Batch], list[Batch]]:
    """The batches of each log from the first on that contradict each other; empty if none do."""
    mine, its = one.index_of(start), other.index_of(start)
    while mine < len(one.batches) and its < len(other.batches):
        ours, theirs = one.batches[mine], other.batches[its]
        if ours.last_offset < theirs.base_offset:
            mine += 1
        elif theirs.last_offset < ours.base_offset:
            its += 1
        elif ours == theirs or (ours[:3] == theirs[:3] and _agree(one, mine, other, its)):
            mine += 1
            its += 1
        else:
            return one.batches[mine:], other.batches[its:]
    return [], []


def _agree(one: LogImage, mine: int, other: LogImage, its: int) -> bool:
    """Whether two batches, each of which compaction may have made smaller, were the same once."""
    ours = {record.offset: record for record in one.entries(mine)}
    return all(ours.get(record.offset, record) == record for record in other.entries(its))


def _common_start(one: Held, other: Held) -> int:
    return max(one.replica.log_start, other.replica.log_start)


def _common_length(ours: Sequence[Batch], theirs: Sequence[Batch]) -> int:
    length = min(len(ours), len(theirs))
    if ours[:length] == theirs[:length]:
        return length
    return next(index for index in range(length) if ours[index] != theirs[index])


def _difference(ours: Sequence[Batch], theirs: Sequence[Batch]) -> str:
    common = _common_length(ours, theirs)
    one = ours[common] if common < len(ours) else "nothing"
    other = theirs[common] if common < len(theirs) else "nothing"
    return f"one log has {one}, the other {other}"


def _shared_epoch(ours: Sequence[Batch], theirs: Sequence[Batch]) -> int | None:
    """Return an epoch of which both have a record at the same offset."""
    ranges: dict[int, tuple[int, int]] = {}
    for batch in ours:
        first, _ = ranges.get(batch.epoch, (batch.base_offset, 0))
        ranges[batch.epoch] = (first, batch.last_offset)
    for batch in theirs:
        first, last = ranges.get(batch.epoch, (0, -1))
        if batch.base_offset <= last and batch.last_offset >= first:
            return batch.epoch
    return None
