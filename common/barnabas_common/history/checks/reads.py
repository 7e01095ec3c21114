"""Records that should not have been read."""

from collections.abc import Iterator

from barnabas_common.history.checks.finding import Anomaly, Finding
from barnabas_common.history.checks.seen import Seen
from barnabas_common.history.operations import Stage


def phantoms(seen: Seen) -> Iterator[Finding]:
    """Yield values that were never sent to the partition in which they were read."""
    for partition, log in seen.partitions.items():
        for value, offset in log.at.items():
            if value not in log.sent:
                by = log.read[offset].by
                what = f"{partition}@{offset} {value!r} was never sent to it"
                yield Finding(Anomaly.PHANTOM, what, (by,))


def aborted_reads(seen: Seen) -> Iterator[Finding]:
    """Yield values whose send failed, or whose transaction was aborted (Adya's G1a).

    A transaction hides its records from readers of committed records only.
    """
    for partition, log in seen.partitions.items():
        for value, offset in log.at.items():
            sent = log.sent.get(value)
            if sent is not None and sent.stage is Stage.FAIL:
                what = f"{partition}@{offset} {value!r}, whose send failed"
                yield Finding(Anomaly.ABORTED_READ, what, (sent.name, log.read[offset].by))
        for value, read in log.committed_reads.items():
            sent = log.sent.get(value)
            if sent is None or not sent.transaction:
                continue
            transaction = seen.transactions[sent.transaction]
            if transaction.aborted:
                what = f"{partition} {value!r} of {sent.transaction}, which was aborted"
                names = (sent.name, transaction.end_name, read.by)
                yield Finding(Anomaly.ABORTED_READ, what, names)


def dirty_reads(seen: Seen) -> Iterator[Finding]:
    """Yield values that were read as committed before their transaction was told to commit."""
    for partition, log in seen.partitions.items():
        for value, read in log.committed_reads.items():
            sent = log.sent.get(value)
            if sent is None or not sent.transaction:
                continue
            transaction = seen.transactions[sent.transaction]
            if transaction.ended is None or read.time < transaction.ended:
                what = f"{partition} {value!r} of {sent.transaction}, which was open"
                yield Finding(Anomaly.DIRTY_READ, what, (sent.name, read.by))


def precommitted_reads(seen: Seen) -> Iterator[Finding]:
    """Yield what transactions read of their own: Kafka has no such reads."""
    for name, transaction in seen.transactions.items():
        for partition, value, by in transaction.own_reads:
            sent = seen.partitions[partition].sent[value].name
            what = f"{name} read its own {value!r} in {partition}"
            yield Finding(Anomaly.PRECOMMITTED_READ, what, (sent, by))
