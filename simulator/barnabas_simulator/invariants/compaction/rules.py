"""I25: what compaction takes, and what it leaves."""

from itertools import pairwise

from barnabas_simulator.invariants.logs.image import LogImage
from barnabas_simulator.invariants.logs.keyed import KeyedRecords
from barnabas_simulator.invariants.rule import rule
from barnabas_simulator.invariants.view import Replica
from barnabas_simulator.labels import key_of


@rule("I25 NewestOfEachKey")
def newest_stays(
    replica: Replica, image: LogImage, committed: KeyedRecords, bound: int
) -> str | None:
    """The newest committed record of each key is in every log that has reached its offset, and a
    tombstone until its delete horizon."""
    missing = committed.missing_from(image, replica.high_watermark, replica.log_end, bound)
    if missing is None:
        return None
    return (
        f"{committed.labels[missing]!r} at {missing} is the newest of its key, and the log has"
        f" {image.label_at(missing)!r}; its delete horizon is {committed.horizons.get(missing)}, it"
        f" is {committed.topic.latest_ms()} at most; {replica}"
    )


@rule("I25 NewestOfEachKey")
def nothing_older(replica: Replica, image: LogImage, clean_offset: int) -> str | None:
    """Below the clean offset a log has no record of a key that is older than another one which it
    has had there. So nothing older remains once a pass is over, and nothing comes back."""
    if image.held is None:
        return None
    for record in image.entries_between(replica.log_start, clean_offset):
        key = key_of(record.label)
        if key is not None:
            newest = image.held.newest_below(key, clean_offset)
            if newest > record.offset:
                return (
                    f"{record} is below the clean offset {clean_offset}, and the log has had a"
                    f" later one of its key at {newest}; {replica}"
                )
    return None


@rule("I25 NewestOfEachKey")
def no_early_horizon(image: LogImage, committed: KeyedRecords) -> str | None:
    """A tombstone's delete horizon is `delete.retention.ms` or more after it was sent."""
    fault = committed.see_horizons(image)
    return None if fault is None else f"{fault}; {image.path}"


@rule("I25 NewestOfEachKey")
def no_gap_above(replica: Replica, image: LogImage, bound: int) -> str | None:
    """No replica lacks an offset above the highest high watermark: what is not committed, no pass
    may look at."""
    first = max(0, image.index_of(bound) - 1)
    for before, after in pairwise(image.batches[first:]):
        if after.base_offset > max(before.last_offset + 1, bound):
            return (
                f"nothing is between {before.last_offset} and {after.base_offset}, above the"
                f" highest high watermark {bound}; {replica}"
            )
    return None
