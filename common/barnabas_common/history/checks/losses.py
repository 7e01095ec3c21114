"""Records that must be there and are not."""

from collections.abc import Iterator

from barnabas_common.history.checks.finding import Anomaly, Finding
from barnabas_common.history.checks.seen import PartitionLog, Seen, Sent
from barnabas_common.history.operations import Stage


def lost_writes(seen: Seen) -> Iterator[Finding]:
    """Yield acknowledged records that were never read.

    Readers who went past their offset prove the loss. Otherwise a record is only unseen: it cannot
    be told from one that would still appear. What retention has removed is not missed.
    """
    for partition, log in seen.partitions.items():
        for value, sent in log.sent.items():
            if value in log.at or not _must_be_there(seen, sent):
                continue
            if 0 <= sent.offset < log.begin:
                continue
            if 0 <= sent.offset <= log.highest_read:
                past = log.read[log.highest_read].by
                what = f"{partition}@{sent.offset} {value!r}; read up to {log.highest_read}"
                yield Finding(Anomaly.LOST_WRITE, what, (sent.name, past))
            else:
                what = f"{partition}@{sent.offset} {value!r}; read up to {log.highest_read}"
                yield Finding(Anomaly.UNSEEN, what, (sent.name,))


def _must_be_there(seen: Seen, sent: Sent) -> bool:
    if sent.stage is not Stage.OK:
        return False
    return not sent.transaction or seen.transactions[sent.transaction].committed


def torn_transactions(seen: Seen) -> Iterator[Finding]:
    """Yield transactions of unknown outcome of which a part was read as committed, and not all.

    What was not read counts only where readers went past the highest offset of what was, because
    the rest may have come later.
    """
    for name, transaction in seen.transactions.items():
        if transaction.committed or transaction.aborted:
            continue
        there = [
            (partition, value)
            for partition, value in transaction.sends
            if value in seen.partitions[partition].committed_reads
        ]
        gone = [
            (partition, value)
            for partition, value in transaction.sends
            if _passed_over(seen.partitions[partition], value)
        ]
        if there and gone:
            partition, value = there[0]
            missing_in, missing = gone[0]
            what = f"{name}: {value!r} is in {partition}, {missing!r} is not in {missing_in}"
            read = seen.partitions[partition].committed_reads[value].by
            sent = seen.partitions[missing_in].sent[missing].name
            yield Finding(Anomaly.TORN_TRANSACTION, what, (sent, read))


def _passed_over(log: PartitionLog, value: str) -> bool:
    sent = log.sent[value]
    was_passed = log.begin <= sent.offset < log.highest_committed
    return sent.stage is Stage.OK and was_passed and value not in log.committed_reads


def vanished(seen: Seen) -> Iterator[Finding]:
    """Yield records that were read once and that the final read, which came to its end, lacks.

    Records of a transaction only if they were read as committed.
    """
    for partition, log in seen.partitions.items():
        for offset, read in log.read.items():
            if not log.has_vanished(offset):
                continue
            sent = log.sent.get(read.value)
            if sent is None or not sent.transaction or read.value in log.committed_reads:
                what = f"{partition}@{offset} {read.value!r}; the end is {log.end}"
                yield Finding(Anomaly.VANISHED, what, (read.by,))
