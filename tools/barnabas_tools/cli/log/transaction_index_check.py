"""Checks whether a broker can have written a segment's `.txnindex`; faults are text.

Reads Kafka's format directly, as `segment_check.py` does. A marker without an entry is no fault: it
may have ended a transaction that has no records in the partition.
"""

import struct
from collections.abc import Mapping

_ENTRY = struct.Struct(">hqqqq")  # version, producer id, first and last offset, last stable offset
_VERSION = 0


def check_transaction_index(
    data: bytes, aborted: Mapping[int, int], is_compacted: bool
) -> list[str]:
    """Return the faults: an entry is an aborted transaction, up to its marker.

    `aborted` has the producer id of each abort marker in the segment, by offset. Compaction may
    have removed a marker.
    """
    faults: list[str] = []
    whole = len(data) - len(data) % _ENTRY.size
    if whole < len(data):
        faults.append(f"{len(data)} bytes are not a whole number of entries")
    previous = -1
    for number, entry in enumerate(_ENTRY.iter_unpack(data[:whole])):
        version, producer_id, first, last, stable = entry
        if version != _VERSION:
            faults.append(f"entry {number}: version {version} is not {_VERSION}")
        if last <= previous:
            faults.append(f"entry {number} ends at {last}, the one before it at {previous}")
        if not first <= last:
            faults.append(f"entry {number}: a transaction from {first} to {last}")
        if stable > last + 1:
            faults.append(f"entry {number}: last stable offset {stable} after the marker at {last}")
        if last in aborted:
            if aborted[last] != producer_id:
                faults.append(
                    f"entry {number}: producer id {producer_id}, but the marker at offset {last} is"
                    f" of {aborted[last]}"
                )
        elif not is_compacted:
            faults.append(f"entry {number}: there is no abort marker at offset {last}")
        previous = last
    return faults
