"""Records of one producer lie in the order in which it sent them."""

from collections.abc import Iterator

from barnabas_common.history.checks.finding import Anomaly, Finding
from barnabas_common.history.checks.seen import PartitionLog, Seen, Sent
from barnabas_common.history.operations import UNKNOWN


def nonmonotonic_sends(seen: Seen) -> Iterator[Finding]:
    """Yield records that lie before an earlier one of the same process.

    The first copy of each record counts, because a retry may have written more. Where records were
    read, only those count that are still there: an acknowledged offset may be one of a record that
    was lost, and so may an offset at which one was read.
    """
    for partition, log in seen.partitions.items():
        latest: dict[str, tuple[int, Sent]] = {}
        for value, sent in log.sent.items():
            offset = _place(log, value, sent)
            if offset == UNKNOWN:
                continue
            before = latest.get(sent.process)
            if before is None or before[0] < offset:
                latest[sent.process] = (offset, sent)
                continue
            same = sent.transaction and sent.transaction == before[1].transaction
            anomaly = Anomaly.INT_NONMONOTONIC_SEND if same else Anomaly.NONMONOTONIC_SEND
            what = f"{partition}@{offset} {value!r} was sent after {before[0]}"
            yield Finding(anomaly, what, (before[1].name, sent.name))


def send_skips(seen: Seen) -> Iterator[Finding]:
    """Yield records of others between two of a transaction, which Kafka allows."""
    for name, transaction in seen.transactions.items():
        places: dict[str, int] = {}
        for partition, value in transaction.sends:
            log = seen.partitions[partition]
            offset = _place(log, value, log.sent[value])
            if offset == UNKNOWN:
                continue
            for between in range(places.get(partition, offset) + 1, offset):
                if between in log.read:
                    what = f"{partition}@{between} lies between two records of {name}"
                    yield Finding(Anomaly.INT_SEND_SKIP, what, (log.sent[value].name,))
                    break
            places[partition] = offset


def _place(log: PartitionLog, value: str, sent: Sent) -> int:
    if not log.at:
        return sent.offset
    offset = log.at.get(value)
    if offset is None or log.lacks(offset, value):
        return UNKNOWN
    return offset
