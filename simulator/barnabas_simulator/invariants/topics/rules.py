"""I26, of topics that are deleted and made again by the same name, and I27, of retention."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from barnabas_simulator.invariants.logs.image import Batch
from barnabas_simulator.invariants.rule import rule
from barnabas_simulator.invariants.view import Replica


@rule("I26 OneIncarnation")
def leads_the_present_one(replica: Replica, topic_id: str | None) -> str | None:
    """No broker leads a partition of an earlier incarnation of a topic once a later one exists: a
    deletion ends when every replica is gone."""
    if replica.led_epoch is None or topic_id is None or replica.topic_id in (None, topic_id):
        return None
    return f"the topic's id is {topic_id}, and {replica} has the log of {replica.topic_id}"


@rule("I26 OneIncarnation")
def nothing_comes_back(
    replica: Replica, committed: Mapping[int, bytes], gone: Collection[bytes]
) -> str | None:
    """No record that was acknowledged before its topic was deleted is in a later incarnation."""
    back = [(offset, label) for offset, label in committed.items() if label in gone]
    if not back:
        return None
    return f"{back[:3]} were acknowledged in an earlier incarnation of the topic; {replica}"


@rule("I26 OneIncarnation")
def reader_gets_the_present_one(offset: int, label: bytes, gone: Collection[bytes]) -> str | None:
    """No reader gets a record that was acknowledged in an incarnation which had gone when the
    reader began."""
    if label not in gone:
        return None
    return f"a reader got {label!r} at {offset}, of an incarnation that had gone when it began"


@dataclass(frozen=True)
class Retained:
    """A topic's settings; -1 is no limit."""

    retention_ms: int
    retention_bytes: int


@rule("I27 RetentionOnly")
def start_is_committed(replica: Replica, true_high_watermark: int) -> str | None:
    """No log starts above the high watermark: retention takes only what is committed."""
    if replica.log_start <= true_high_watermark:
        return None
    return f"the log starts above the true high watermark {true_high_watermark}; {replica}"


@rule("I27 RetentionOnly")
def may_start_there(
    replica: Replica,
    batches: Sequence[Batch],
    timestamps: Mapping[int, int],
    allowed: int,
    retained: Retained,
    latest_ms: int,
) -> str | None:
    """A log that is the first to start so late has deleted only records that are older than
    `retention.ms`, or that the rest of the log reaches `retention.bytes` without.

    Up to `allowed` another log has started rightly. `latest_ms`: the latest time that any broker's
    clock can show.
    """
    if replica.log_start <= allowed:
        return None
    first = max(allowed, _deletable_by_size(batches, retained.retention_bytes))
    young = [
        offset
        for offset in range(first, replica.log_start)
        if retained.retention_ms < 0
        or latest_ms - timestamps.get(offset, latest_ms) <= retained.retention_ms
    ]
    if not young:
        return None
    return (
        f"offsets {young[:5]} were deleted, sent {[timestamps.get(o) for o in young[:5]]}; it is"
        f" {latest_ms} at most, {sum(b.size for b in batches)} bytes are left; {retained};"
        f" {replica}"
    )


def _deletable_by_size(batches: Sequence[Batch], limit: int) -> int:
    """The offset below which everything may go because the rest reaches the limit."""
    size = 0
    for batch in reversed(batches):
        size += batch.size
        if limit >= 0 and size >= limit:
            return batch.base_offset
    return batches[0].base_offset if batches and limit == 0 else 0


@rule("I27 RetentionOnly")
def reader_skips_what_may_be_gone(
    expected: int, offset: int, allowed: int, to_the_end: bool
) -> str | None:
    """A reader misses nothing that is still there. It may go on where the log starts now if its
    position is below, and with the policy `latest` at the end of the log."""
    if offset <= expected or (expected < allowed and to_the_end) or offset <= allowed:
        return None
    return f"a reader at {expected} got {offset} next; retention has taken nothing above {allowed}"
