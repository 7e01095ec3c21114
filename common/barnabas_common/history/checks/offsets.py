"""One value at each offset, and one offset for each value."""

from collections.abc import Iterator

from barnabas_common.history.checks.finding import Anomaly, Finding
from barnabas_common.history.checks.seen import Seen
from barnabas_common.history.operations import UNKNOWN


def inconsistent_offsets(seen: Seen) -> Iterator[Finding]:
    """Yield the offsets at which two values were read, or acknowledged, or one of each."""
    for partition, log in seen.partitions.items():
        claimed: dict[int, str] = {}
        for offset, other in log.conflicts:
            first = log.read[offset]
            what = f"{partition}@{offset} was read as {first.value!r} and as {other.value!r}"
            yield Finding(Anomaly.INCONSISTENT_OFFSETS, what, (first.by, other.by))
        for value, sent in log.sent.items():
            offset = sent.offset
            if offset == UNKNOWN:
                continue
            read = log.read.get(offset)
            if read is not None and read.value != value:
                what = f"{partition}@{offset} was acknowledged for {value!r}, read {read.value!r}"
                yield Finding(Anomaly.INCONSISTENT_OFFSETS, what, (sent.name, read.by))
            first_value = claimed.setdefault(offset, value)
            if first_value != value:
                what = f"{partition}@{offset} was acknowledged for {first_value!r} and {value!r}"
                names = (log.sent[first_value].name, sent.name)
                yield Finding(Anomaly.INCONSISTENT_OFFSETS, what, names)


def duplicates(seen: Seen) -> Iterator[Finding]:
    """Yield the values that have a second offset."""
    for partition, log in seen.partitions.items():
        for first, offset, again in log.repeats:
            what = f"{partition}: {again.value!r} at {first} and at {offset}"
            sent = log.sent.get(again.value)
            names = (log.read[first].by, again.by)
            yield Finding(Anomaly.DUPLICATE, what, names if sent is None else (sent.name, *names))
        repeated = {again.value for _, _, again in log.repeats}
        for value, sent in log.sent.items():
            found = log.at.get(value)
            if sent.offset == UNKNOWN or found in (None, sent.offset) or value in repeated:
                continue
            what = f"{partition}: {value!r} acknowledged at {sent.offset}, read at {found}"
            yield Finding(Anomaly.DUPLICATE, what, (sent.name, log.read[found].by))
