"""Why the last stable offset is where it is, and what is known of one transactional id."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas_common.events import Event, EventKind
from barnabas_common.prepared_transaction import NO_TIMEOUT_MS
from barnabas_common.topic_partition import TopicPartition

from barnabas.explain.explanation import About, Sentence
from barnabas.explain.view import OpenTransactionView, PartitionView

LATEST = 6
_PREPARED = "no timeout ends it (two-phase commit), only its producer or a program that knows it"
_FENCING = (
    EventKind.TRANSACTION_INITIALIZED,
    EventKind.TRANSACTION_FENCED,
    EventKind.TRANSACTION_MARKERS_REFUSED,
    EventKind.TRANSACTION_RESUMED,
)


# ---- a partition


def last_stable_offset(view: PartitionView) -> list[Sentence]:
    """Nothing unless read_committed readers are held back."""
    leader = view.leader
    if leader is None or not view.holds_readers_back:
        return []
    stable, committed = leader.last_stable_offset, leader.high_watermark
    text = (
        f"the last stable offset is {stable}, {committed - stable} below the high watermark"
        f" {committed}: read_committed readers wait there"
    )
    sentences = [Sentence(About.LAST_STABLE_OFFSET, text)]
    opened = sorted(view.open_transactions, key=lambda one: one.start_offset)
    for one in opened[:LATEST]:
        sentences.append(Sentence(About.LAST_STABLE_OFFSET, _of_open(view, one), one.since_ms))
    if len(opened) > LATEST:
        text = f"open transactions behind them: {len(opened) - LATEST}"
        sentences.append(Sentence(About.LAST_STABLE_OFFSET, text))
    if view.leader_id not in view.errors and not any(one.start_offset == stable for one in opened):
        text = f"the transaction that begins at {stable} has its marker, which is not committed yet"
        sentences.append(Sentence(About.LAST_STABLE_OFFSET, text))
    sentences += [
        Sentence(About.DOUBT, f"transactions that broker {broker} coordinates are missing: {why}")
        for broker, why in view.silent_coordinators.items()
    ]
    sentences += [
        Sentence(About.DOUBT, f"{partition} has no leader: what it says of transactions is missing")
        for partition in view.without_coordinator
    ]
    return sentences


def _of_open(view: PartitionView, one: OpenTransactionView) -> str:
    name = repr(one.transactional_id) if one.transactional_id else "a transaction"
    text = (
        f"{name} is open from offset {one.start_offset} on"
        f" (producer id {one.producer_id}, epoch {one.producer_epoch}): "
    )
    if not one.will_end:
        if view.silent_coordinators or view.without_coordinator:
            return text + "its coordinator could not be asked"
        topic, partition = view.topic_partition
        return text + (
            "no coordinator will end it, it hangs; `barnabas transaction abort"
            f" --topic {topic} --partition {partition} --start-offset {one.start_offset}` does"
        )
    if one.state == "Ongoing":
        if one.timeout_ms == NO_TIMEOUT_MS:
            return text + f"broker {one.coordinator} coordinates it; {_PREPARED}"
        when = _when(one.start_ms + one.timeout_ms - view.now_ms)
        return text + (
            f"broker {one.coordinator} coordinates it, and aborts it {when} unless its producer"
            " ends it before"
        )
    return text + (
        f"broker {one.coordinator} coordinates it, has decided ({one.state}), and has the marker"
        " written here"
    )


# ---- a transactional id


@dataclass(frozen=True)
class TransactionView:
    """A transactional id at its coordinator, and the events that the brokers still remember.

    `partitions` are those of the open transaction, or those without their marker; `leaders` has
    their leaders, -1 for none. Times are in ms.
    """

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int
    partitions: Sequence[TopicPartition]
    leaders: Mapping[TopicPartition, int]
    now_ms: int
    events: Sequence[Event] = ()
    unreachable: Mapping[int, str] = field(default_factory=dict)


def explain_transaction(view: TransactionView) -> list[Sentence]:
    """Its state, who was fenced and why, and what its coordinator still has to do."""
    text = (
        f"broker {view.coordinator} coordinates it: {view.state}, producer id {view.producer_id},"
        f" epoch {view.producer_epoch}"
    )
    return [
        Sentence(About.TRANSACTION, text),
        *_open_since(view),
        *_fenced(view),
        *_unfinished(view),
        *(
            Sentence(About.DOUBT, f"broker {broker} could not be asked for its events: {why}")
            for broker, why in view.unreachable.items()
        ),
    ]


def _open_since(view: TransactionView) -> list[Sentence]:
    if view.state != "Ongoing":
        return []
    text = f"a transaction is open in {_named(view.partitions)}; "
    if view.timeout_ms == NO_TIMEOUT_MS:
        return [Sentence(About.TRANSACTION, text + _PREPARED, view.start_ms)]
    when = _when(view.start_ms + view.timeout_ms - view.now_ms)
    text += f"it is aborted {when} unless its producer ends it before"
    return [Sentence(About.TRANSACTION, text, view.start_ms)]


def _fenced(view: TransactionView) -> list[Sentence]:
    about = [
        event
        for event in view.events
        if event.kind in _FENCING and event.details.get("transactional_id") == view.transactional_id
    ]
    if not about:
        return [Sentence(About.FENCED, "no broker remembers that a producer was fenced")]
    return [Sentence(About.FENCED, _of_event(event), event.time_ms) for event in about[-LATEST:]]


def _of_event(event: Event) -> str:
    epoch = event.details.get("producer_epoch")
    match event.kind:
        case EventKind.TRANSACTION_INITIALIZED:
            if epoch == 0:
                return f"its first producer has epoch 0, so none was fenced: {event.cause}"
            return f"every epoch below {epoch} was fenced: {event.cause}"
        case EventKind.TRANSACTION_FENCED:
            return f"the open transaction was aborted and its producer fenced: {event.cause}"
        case EventKind.TRANSACTION_RESUMED:
            return f"broker {event.broker_id} took it over: {event.cause}"
        case _:
            return f"markers of epoch {epoch} were refused: {event.cause}"


def _unfinished(view: TransactionView) -> list[Sentence]:
    if not view.state.startswith("Prepare"):
        return []
    outcome = "commit" if view.state == "PrepareCommit" else "abort"
    if not view.partitions:
        text = (
            f"the {outcome} is decided and every marker is written; __transaction_state does not"
            " say so yet"
        )
        return [Sentence(About.UNFINISHED, text)]
    number = len(view.partitions)
    where = "1 partition" if number == 1 else f"{number} partitions"
    text = f"the {outcome} is decided; markers are missing in {where}"
    sentences = [Sentence(About.UNFINISHED, text, view.start_ms)]
    for partition in view.partitions:
        leader = view.leaders.get(partition, -1)
        why = "it has no leader" if leader < 0 else f"its leader is broker {leader}"
        sentences.append(Sentence(About.UNFINISHED, f"{partition}: {why}"))
    return sentences


def _named(partitions: Sequence[TopicPartition]) -> str:
    return ", ".join(map(str, partitions)) or "no partition"


def _when(left_ms: int) -> str:
    return "at the next check of timeouts" if left_ms <= 0 else f"in {left_ms / 1000:.1f} s"
