"""The reasoning of `explain` about transactions, on plain data."""

from collections.abc import Sequence

from barnabas.explain import About, PartitionView, explain
from barnabas.explain.transactions import TransactionView, explain_transaction
from barnabas.explain.view import OpenTransactionView
from barnabas_common.events import Event, EventKind
from barnabas_common.messages.metadata import PartitionMetadata
from barnabas_common.messages.replicas import ReplicaDescription
from barnabas_common.topic_partition import TopicPartition

TP = TopicPartition("orders", 0)
NOW = 100_000
OPEN = OpenTransactionView(
    7, 3, 40, 80_000, "copy", True, 2, "Ongoing", start_ms=80_000, timeout_ms=60_000
)


def view_of(*opened: OpenTransactionView, lso: int = 40, **more: object) -> PartitionView:
    leader = ReplicaDescription(*TP, is_leader=True, leader_id=1, leader_epoch=1)
    leader.in_sync_replicas = [1]
    leader.log_end_offset, leader.high_watermark, leader.last_stable_offset = 120, 100, lso
    metadata = PartitionMetadata(0, leader_id=1, replicas=[1], in_sync_replicas=[1])
    return PartitionView(
        TP,
        metadata,
        9,
        [1],
        {1: leader},
        open_transactions=opened,
        now_ms=NOW,
        **more,  # type: ignore[arg-type]
    )


def stable(*opened: OpenTransactionView, lso: int = 40, **more: object) -> list[str]:
    return explain(view_of(*opened, lso=lso, **more)).of(About.LAST_STABLE_OFFSET)


def test_nothing_is_said_while_no_reader_waits() -> None:
    assert stable(lso=100) == []
    assert stable(lso=-1) == [], "the leader has not said where it is"


def test_an_open_transaction_is_named_with_its_coordinator_and_its_end() -> None:
    where, who = stable(OPEN)
    assert where.startswith("the last stable offset is 40, 60 below the high watermark 100")
    assert who == (
        "'copy' is open from offset 40 on (producer id 7, epoch 3): broker 2 coordinates it, and"
        " aborts it in 40.0 s unless its producer ends it before"
    )


def test_a_decided_transaction_waits_for_its_marker_here() -> None:
    decided = OpenTransactionView(7, 3, 40, 80_000, "copy", True, 2, "PrepareCommit")
    _, who = stable(decided)
    assert "has decided (PrepareCommit), and has the marker written here" in who


def test_a_hanging_transaction_is_told_with_the_command_that_ends_it() -> None:
    _, who = stable(OpenTransactionView(7, 3, 40, 80_000))
    assert "it hangs" in who
    command = "`barnabas transaction abort --topic orders --partition 0 --start-offset 40`"
    assert command in who


def test_a_transaction_whose_coordinator_is_silent_is_not_said_to_hang() -> None:
    _, who = stable(OpenTransactionView(7, 3, 40, 80_000), silent_coordinators={2: "no answer"})
    assert "it hangs" not in who
    assert who.endswith("its coordinator could not be asked")


def test_a_transaction_whose_coordinator_is_not_elected_is_not_said_to_hang() -> None:
    missing = TopicPartition("__transaction_state", 3)
    opened = OpenTransactionView(7, 3, 40, 80_000)
    told = explain(view_of(opened, without_coordinator=[missing]))
    assert told.of(About.LAST_STABLE_OFFSET)[1].endswith("its coordinator could not be asked")
    assert told.of(About.DOUBT) == [
        "__transaction_state-3 has no leader: what it says of transactions is missing"
    ]


def test_a_leader_that_was_not_asked_about_transactions_is_not_said_to_have_the_marker() -> None:
    (where,) = stable(errors={1: "no answer"})
    assert where.startswith("the last stable offset is 40")


def test_a_marker_that_is_not_committed_holds_the_offset_too() -> None:
    _, behind, marker = stable(OpenTransactionView(8, 0, 50, 0, "x", True, 1, "Ongoing"))
    assert "from offset 50 on" in behind
    assert marker.startswith("the transaction that begins at 40 has its marker")


def test_many_open_transactions_are_counted() -> None:
    opened = [OpenTransactionView(n, 0, 40 + n, 0, f"c{n}", True, 1, "Ongoing") for n in range(9)]
    *named, rest = stable(*opened)[1:]
    assert [text[:4] for text in named] == [f"'c{n}'" for n in range(6)]
    assert rest == "open transactions behind them: 3"


# ---- a transactional id


def transaction(
    state: str,
    *events: Event,
    partitions: Sequence[TopicPartition] = (TP, TopicPartition("orders", 1)),
    **more: object,
) -> dict[About, list[str]]:
    view = TransactionView(
        "copy", 2, state, 7, 4, 60_000, 80_000, partitions,
        {TP: 1, TopicPartition("orders", 1): -1}, NOW, events, **more,  # type: ignore[arg-type]
    )  # fmt: skip
    found: dict[About, list[str]] = {}
    for sentence in explain_transaction(view):
        found.setdefault(sentence.about, []).append(sentence.text)
    return found


def event(kind: EventKind, cause: str, name: str = "copy", epoch: int = 4) -> Event:
    details = {"transactional_id": name, "producer_epoch": epoch}
    return Event(1, 1, 2, kind, cause, TopicPartition("__transaction_state", 0), details)


def test_who_was_fenced_and_why() -> None:
    told = transaction(
        "Empty",
        event(EventKind.TRANSACTION_FENCED, "it was open for more than 5000 ms", epoch=3),
        event(EventKind.TRANSACTION_INITIALIZED, "a producer at 10.0.0.1:77 has initialized it"),
        event(EventKind.TRANSACTION_INITIALIZED, "a producer at 10.0.0.2:78", name="other"),
        event(EventKind.TRANSACTION_MARKERS_REFUSED, "a leader has newer markers"),
    )
    assert told[About.FENCED] == [
        "the open transaction was aborted and its producer fenced: it was open for more than"
        " 5000 ms",
        "every epoch below 4 was fenced: a producer at 10.0.0.1:77 has initialized it",
        "markers of epoch 4 were refused: a leader has newer markers",
    ]
    assert About.UNFINISHED not in told
    assert transaction("Empty")[About.FENCED] == ["no broker remembers that a producer was fenced"]


def test_an_open_transaction_says_where_and_for_how_long() -> None:
    told = transaction("Ongoing")[About.TRANSACTION]
    assert told[0].startswith("broker 2 coordinates it: Ongoing, producer id 7, epoch 4")
    assert told[1].startswith(
        "a transaction is open in orders-0, orders-1; it is aborted in 40.0 s"
    )


def test_what_a_coordinator_still_has_to_finish() -> None:
    told = transaction("PrepareAbort", unreachable={3: "refused"})
    assert told[About.UNFINISHED] == [
        "the abort is decided; markers are missing in 2 partitions",
        "orders-0: its leader is broker 1",
        "orders-1: it has no leader",
    ]
    assert transaction("PrepareCommit", partitions=[TP])[About.UNFINISHED] == [
        "the commit is decided; markers are missing in 1 partition",
        "orders-0: its leader is broker 1",
    ]
    (noted,) = transaction("PrepareCommit", partitions=[])[About.UNFINISHED]
    assert noted.startswith("the commit is decided and every marker is written")
    assert told[About.DOUBT] == ["broker 3 could not be asked for its events: refused"]
