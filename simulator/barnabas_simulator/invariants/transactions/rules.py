"""I14 to I17, and L10 at rest: what becomes of a transaction in each log, and for readers.

A transaction is decided from the moment its PrepareCommit or PrepareAbort is committed in
`__transaction_state`. With clients of KIP-890 each has an epoch of its own, and its markers have
the next one.
"""

from collections.abc import Mapping, Sequence

from barnabas_broker.coordinator.transaction.metadata import (
    TransactionMetadata,
    bump_supported,
)
from barnabas_broker.log.index.transaction_index import AbortedTxn
from barnabas_common.topic_partition import TopicPartition

from barnabas_simulator.invariants.logs.image import LogImage
from barnabas_simulator.invariants.rule import rule
from barnabas_simulator.invariants.transactions.model import (
    Ended,
    PartitionTransactions,
    Producer,
)
from barnabas_simulator.invariants.view import Replica

# ---- I14


@rule("I14 TransactionsAreAtomic")
def marker_is_decided(
    marker: Producer,
    commit: bool,
    partitions: Sequence[TopicPartition],
    decision: TransactionMetadata | None,
) -> str | None:
    """A marker is asked for once its outcome is committed in `__transaction_state`, and only where
    the transaction has records."""
    if decision is None:
        return f"a marker of {marker} is asked for in {list(partitions)}, and nothing is decided"
    if decision.is_commit is not commit:
        return f"a marker of {marker} says {_outcome(commit)}, decided is {decision}"
    others = [str(tp) for tp in partitions if tp not in decision.partitions]
    if not others:
        return None
    return f"a marker of {marker} is asked for in {others}, decided is {decision}"


@rule("I14 TransactionsAreAtomic")
def one_outcome(partition: TopicPartition, ended: Ended, known: Ended | None) -> str | None:
    """All partitions of a transaction get the same marker."""
    if known is None or (known.marker, known.commit) == (ended.marker, ended.commit):
        return None
    return f"{partition} has {ended}, another partition has {known}"


@rule("I14 TransactionsAreAtomic")
def marker_is_of_its_transaction(
    partition: TopicPartition, ended: Ended, decision: TransactionMetadata | None
) -> str | None:
    """A marker never ends the transaction after its own, whose epoch is that of the marker where
    each transaction has one."""
    has_own_epoch = decision is not None and bump_supported(decision.client_version)
    if not has_own_epoch or ended.marker.epoch > ended.epoch:
        return None
    return f"{partition} has {ended}: its marker is of the transaction before"


@rule("I14 TransactionsAreAtomic")
def answered_is_written(what: str, producer: Producer, is_written: bool) -> str | None:
    """A coordinator answers when its record is committed: the next one would not know of it."""
    return None if is_written else f"{what} of {producer} was answered, and is not in the log"


@rule("I14 TransactionsAreAtomic")
def every_partition_has_its_marker(
    decision: TransactionMetadata, markers: Mapping[TopicPartition, PartitionTransactions]
) -> str | None:
    """A transaction that is complete has its marker in each of its partitions."""
    marker = Producer(decision.producer_id, decision.producer_epoch)
    missing = [
        str(tp)
        for tp in sorted(decision.partitions)
        if tp in markers and markers[tp].markers.get(marker) is not decision.is_commit
    ]
    return f"{missing} have no marker of {marker}; {decision}" if missing else None


# ---- I15


@rule("I15 TransactionsAreIsolated")
def read_is_committed(
    partition: TopicPartition, offset: int, is_visible: bool | None
) -> str | None:
    """A reader of committed records gets none of a transaction that is aborted, or will be."""
    return None if is_visible else f"{partition}@{offset} was read, its transaction is aborted"


@rule("I15 TransactionsAreIsolated")
def index_is_the_logs(
    replica: Replica, found: PartitionTransactions, start: int, index: Sequence[AbortedTxn]
) -> str | None:
    """A replica's transaction index lists exactly the aborted transactions of its log. From it
    readers learn what to leave out. Transactions that began below `start` are not compared."""
    wanted = [entry for entry in found.aborted if entry.first_offset >= start]
    listed = [entry for entry in index if entry.first_offset >= start]
    if wanted == listed:
        return None
    wrong = [*sorted({*wanted} ^ {*listed})[:3]]
    return f"{wrong} are in the log or in its transaction index, not in both; {replica}"


# ---- I16


@rule("I16 LastStableOffset")
def stable_offset_is_the_logs(
    replica: Replica, found: PartitionTransactions, last_stable_offset: int, known_to: int
) -> str | None:
    """The last stable offset is the high watermark, or the first record below it of a transaction
    whose marker is not committed. A replica may not know this of markers below `known_to`: a
    snapshot of producers does not say it, and its high watermark may have been higher, as in Kafka.
    Their outcome is decided, so no reader is misled."""
    place = replica.high_watermark, replica.log_start
    lowest, highest = found.stable_offset(*place), found.stable_offset(*place, known_to)
    if lowest <= last_stable_offset <= highest:
        return None
    return f"the last stable offset is {last_stable_offset}, by the log {lowest}; {replica}"


@rule("I16 LastStableOffset")
def stable_offset_rises(before: Replica, after: Replica) -> str | None:
    """It is no higher than the high watermark, and never falls while one leader leads."""
    if after.last_stable > after.high_watermark:
        return f"the last stable offset {after.last_stable} is above the high watermark; {after}"
    same = before.led_epoch is not None and before.led_epoch == after.led_epoch
    if same and after.last_stable < before.last_stable:
        fell = f"from {before.last_stable} to {after.last_stable}"
        return f"the last stable offset fell {fell}; {after}"
    return None


# ---- I17


@rule("I17 ProducersAreFenced")
def no_older_epoch(replica: Replica, image: LogImage) -> str | None:
    """Nothing of a producer follows a marker, or a record, of a higher epoch in a log."""
    latest: dict[int, int] = {}
    for batch in image.batches:
        part = batch.transaction
        if part is None:
            continue
        known = latest.get(part.producer_id, -1)
        if part.producer_epoch < known:
            return f"{batch} follows epoch {known} of its producer; {replica}"
        latest[part.producer_id] = part.producer_epoch
    return None


@rule("I17 ProducersAreFenced")
def fenced_is_refused(what: str, producer: Producer, is_fenced: bool) -> str | None:
    """What a producer asks for is refused once another one has initialized its transactional id."""
    return f"{what} of {producer} succeeded, and a later epoch was given out" if is_fenced else None


# ---- at rest


@rule("L10 NothingHangs")
def nothing_hangs(replica: Replica) -> str | None:
    """The last stable offset of every leader reaches its high watermark."""
    if replica.last_stable >= replica.high_watermark:
        return None
    return f"the last stable offset stays at {replica.last_stable}; {replica}"


def _outcome(commit: bool) -> str:
    return "commit" if commit else "abort"
