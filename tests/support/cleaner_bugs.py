"""Bugs of the log cleaner, put back in the same way as `seeded_bugs`."""

from hashlib import md5
from typing import Any

from barnabas_broker.log.compaction import batch_filter, cleanable, offset_map
from barnabas_broker.log.compaction.cleanable import LogFacts
from barnabas_broker.log.compaction.cleaner import Cleaner
from barnabas_broker.log.compaction.offset_map import NOT_FOUND, OffsetMap
from barnabas_broker.log.compaction.what_stays import PassRules
from barnabas_broker.log.recovery import log_loader

from tests.support.seeded_bugs import Patch, SeededBug


def _map_keeps_the_older_record() -> list[Patch]:
    """C1: of two records of a key the offset map has the first."""
    put = OffsetMap.put

    def put_once(self: OffsetMap, key: bytes, offset: int) -> None:
        if self.get(key) == NOT_FOUND:
            put(self, key, offset)

    return [(OffsetMap, "put", put_once)]


def _drop_tombstones_at_once() -> list[Patch]:
    """C2: a pass removes a tombstone that has no delete horizon yet (KIP-534)."""
    return [(PassRules, "horizon_has_passed", lambda _rules, _header: True)]


def _horizon_without_retention() -> list[Patch]:
    """C3: the delete horizon is when the pass runs, not `delete.retention.ms` later."""
    return [(PassRules, "new_delete_horizon_ms", property(lambda rules: rules.now_ms))]


def _compact_what_is_not_committed() -> list[Patch]:
    """C4: a pass goes up to the active segment, whatever the high watermark."""
    first_uncleanable = cleanable._first_uncleanable

    def beyond(log: LogFacts, *rest: Any) -> int:
        return first_uncleanable(log._replace(stable_offset=log.log_end_offset), *rest)

    return [(cleanable, "_first_uncleanable", beyond)]


def _leave_out_a_segment() -> list[Patch]:
    """C5: a pass does not rewrite its last segments, but counts them as clean."""
    groups = Cleaner.groups
    return [(Cleaner, "groups", lambda cleaner, end: groups(cleaner, end)[:-1])]


def _keep_deltas_under_a_horizon() -> list[Patch]:
    """C6: the delete horizon takes the place of the base timestamp, and the records keep their
    deltas."""

    def moved(body: bytes, content: int, end: int, *_: Any) -> bytes:
        return batch_filter._number(end - content) + body[content:end]

    return [(batch_filter, "_moved", moved)]


def _confuse_keys() -> list[Patch]:
    """C7: two keys have the same hash, and count as one."""
    return [(offset_map, "md5", lambda key, **_: md5(b"%d" % len(key), usedforsecurity=False))]


def _forget_swap_files() -> list[Patch]:
    """C8: a start that finds `.swap` files leaves them alone."""
    return [(log_loader, "settle_compaction", lambda *_: False)]


CLEANER_BUGS = {
    bug.name: bug
    for bug in (
        SeededBug("C1", "the newest of each key stays", _map_keeps_the_older_record),
        SeededBug("C2", "KIP-534", _drop_tombstones_at_once),
        SeededBug("C3", "delete.retention.ms", _horizon_without_retention),
        SeededBug("C4", "below the high watermark only", _compact_what_is_not_committed),
        SeededBug("C5", "the clean offset", _leave_out_a_segment),
        SeededBug("C6", "the delete horizon", _keep_deltas_under_a_horizon),
        SeededBug("C7", "a hash that tells keys apart", _confuse_keys),
        SeededBug("C8", "safe at a crash", _forget_swap_files),
    )
}
