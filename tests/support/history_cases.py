"""Small histories, each with planted anomalies, and the operations that prove them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas_common.history.checks.finding import Anomaly
from barnabas_common.history.operations import (
    Assign,
    Commit,
    Committed,
    End,
    FinalRead,
    Operation,
    Poll,
    Revoke,
    Send,
    Stage,
)

P, Q = "orders-0", "orders-1"
Records = Mapping[str, list[tuple[int, str]]]


class Story:
    """A history, told entry by entry; each takes place after the one before."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._number = 0

    def add(self, kind: Any, client: str, **fields: Any) -> Any:
        self._number += 1
        made = kind(time=len(self.operations), client=client, number=self._number, **fields)
        self.operations.append(made)
        return made

    def answer(self, operation: Operation, stage: Stage = Stage.OK, **told: Any) -> None:
        self.operations.append(replace(operation, time=len(self.operations), stage=stage, **told))

    def begin(self, kind: Any, client: str, **fields: Any) -> Any:
        return self.add(kind, client, stage=Stage.INVOKE, **fields)

    def send(self, value: str, offset: int | None, partition: str = P, **fields: Any) -> str:
        """Send a record: acknowledged at an offset, or never answered. Returns its name."""
        client = fields.pop("client", "producer")
        sent = self.begin(Send, client, partition=partition, value=value, **fields)
        if offset is not None:
            self.answer(sent, offset=offset)
        return str(sent.name)

    def sent(self, *values: str, partition: str = P) -> None:
        """Send these, acknowledged at 0, 1, …"""
        for offset, value in enumerate(values):
            self.send(value, offset, partition)

    def poll(self, *records: tuple[int, str], partition: str = P, **fields: Any) -> str:
        client = fields.pop("client", "reader")
        return str(self.add(Poll, client, records={partition: list(records)}, **fields).name)

    def final(self, *records: tuple[int, str], end: int, partition: str = P, begin: int = 0) -> str:
        bounds = {partition: (begin, end)}
        read = {partition: list(records)}
        made = self.add(FinalRead, "judge", records=read, bounds=bounds, read_committed=True)
        return str(made.name)

    def end(self, transaction: str, commit: bool, stage: Stage = Stage.OK) -> str:
        end = self.begin(End, "producer", transaction=transaction, commit=commit)
        if stage is not Stage.INVOKE:
            self.answer(end, stage)
        return str(end.name)

    def commit(self, offset: int, stage: Stage = Stage.OK, **fields: Any) -> str:
        commit = self.begin(Commit, "member", group="g", offsets={P: offset}, **fields)
        if stage is not Stage.INVOKE:
            self.answer(commit, stage)
        return str(commit.name)

    def committed(self, offset: int | None) -> str:
        asked = self.begin(Committed, "judge", group="g")
        self.answer(asked, offsets={} if offset is None else {P: offset})
        return str(asked.name)


@dataclass(frozen=True)
class Case:
    """`proof`: what the first example of each class must name, in any order."""

    operations: list[Operation]
    proof: dict[Anomaly, set[str]] = field(default_factory=dict)


CASES: dict[str, Callable[[], Case]] = {}


def case(tell: Callable[[Story], dict[Anomaly, set[str]]]) -> Callable[[], Case]:
    def made() -> Case:
        story = Story()
        proof = tell(story)
        return Case(story.operations, proof)

    CASES[tell.__name__] = made
    return made


# ---- offsets


@case
def one_offset_read_with_two_values(story: Story) -> dict[Anomaly, set[str]]:
    story.send("a", 0)
    story.send("b", 1, client="other")
    proof = {story.poll((0, "a")), story.poll((0, "b"), client="other")}
    story.final((0, "a"), (1, "b"), end=2)
    return {Anomaly.INCONSISTENT_OFFSETS: proof, Anomaly.DUPLICATE: set()}


@case
def an_acknowledged_offset_has_another_value(story: Story) -> dict[Anomaly, set[str]]:
    lost = story.send("a", 0)
    story.send("b", None)
    read = story.final((0, "b"), end=1)
    return {Anomaly.INCONSISTENT_OFFSETS: {lost, read}, Anomaly.LOST_WRITE: {lost, read}}


@case
def one_offset_acknowledged_twice(story: Story) -> dict[Anomaly, set[str]]:
    proof = {story.send("a", 0), story.send("b", 0)}
    story.final(end=0)
    return {
        Anomaly.INCONSISTENT_OFFSETS: proof,
        Anomaly.UNSEEN: set(),
        Anomaly.NONMONOTONIC_SEND: proof,
    }


@case
def a_record_written_twice(story: Story) -> dict[Anomaly, set[str]]:
    sent = story.send("a", 0)
    read = story.final((0, "a"), (1, "a"), end=2)
    return {Anomaly.DUPLICATE: {sent, read}}


@case
def a_record_written_twice_with_others_between(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b")
    story.final((0, "a"), (1, "b"), (2, "a"), end=3)
    return {Anomaly.DUPLICATE: {"producer/1#1", "judge/1#3"}}


@case
def a_record_of_which_only_another_copy_was_read(story: Story) -> dict[Anomaly, set[str]]:
    sent = story.send("a", 3)
    return {Anomaly.DUPLICATE: {sent, story.final((2, "a"), end=3)}}


# ---- losses


@case
def readers_went_past_a_record(story: Story) -> dict[Anomaly, set[str]]:
    lost = story.send("a", 0)
    story.send("b", 1)
    return {Anomaly.LOST_WRITE: {lost, story.final((1, "b"), end=2)}}


@case
def the_last_record_was_never_read(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a")
    lost = story.send("b", 1)
    story.final((0, "a"), end=1)
    return {Anomaly.UNSEEN: {lost}}


@case
def a_record_without_an_offset_was_never_read(story: Story) -> dict[Anomaly, set[str]]:
    lost = story.send("a", -1)
    story.final(end=0)
    return {Anomaly.UNSEEN: {lost}}


@case
def what_was_read_is_gone(story: Story) -> dict[Anomaly, set[str]]:
    story.send("a", None)
    story.send("b", 1)
    read = story.poll((0, "a"), (1, "b"))
    story.final((1, "b"), end=2)
    return {Anomaly.VANISHED: {read}}


@case
def a_record_amid_others_is_gone(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b", "c")
    read = story.poll((0, "a"), (1, "b"), (2, "c"))
    story.final((0, "a"), (2, "c"), end=3)
    return {Anomaly.VANISHED: {read}}


@case
def the_end_of_what_was_read_is_gone(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b")
    read = story.poll((0, "a"), (1, "b"))
    story.final((0, "a"), end=1)
    return {Anomaly.VANISHED: {read}}


@case
def others_have_taken_the_place_of_what_was_read(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b", "c")
    read = story.poll((0, "a"), (1, "b"), (2, "c"))
    story.send("d", 1)
    story.final((0, "a"), (1, "d"), end=2)
    return {Anomaly.INCONSISTENT_OFFSETS: set(), Anomaly.VANISHED: {read}}


@case
def what_has_taken_the_place_lies_in_reverse(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b")
    read = story.poll((0, "a"), (1, "b"))
    proof = {story.send("c", 1), story.send("d", 0)}
    story.final((0, "d"), (1, "c"), end=2)
    return {
        Anomaly.INCONSISTENT_OFFSETS: set(),
        Anomaly.VANISHED: {read},
        Anomaly.NONMONOTONIC_SEND: proof,
    }


@case
def nothing_has_vanished_before_the_final_read(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a")
    story.poll((0, "a"), (1, "a"))
    return {Anomaly.DUPLICATE: set()}


@case
def a_part_of_a_transaction_of_unknown_outcome(story: Story) -> dict[Anomaly, set[str]]:
    story.send("a", 0, transaction="t")
    torn = story.send("b", 0, partition=Q, transaction="t")
    story.send("c", 1, partition=Q, client="other")
    story.end("t", True, Stage.INFO)
    read = story.final((0, "a"), end=1)
    story.final((1, "c"), end=2, partition=Q)
    return {Anomaly.TORN_TRANSACTION: {torn, read}}


@case
def a_committed_transaction_lacks_a_record(story: Story) -> dict[Anomaly, set[str]]:
    lost = story.send("a", 0, transaction="t")
    story.send("b", 1, transaction="t")
    story.end("t", True)
    return {Anomaly.LOST_WRITE: {lost, story.final((1, "b"), end=3)}}


# ---- reads


@case
def it_was_never_sent(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a")
    return {Anomaly.PHANTOM: {story.final((0, "a"), (1, "ghost"), end=2)}}


@case
def it_was_sent_to_another_partition(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a")
    story.send("b", None, partition=Q)
    return {Anomaly.PHANTOM: {story.final((0, "a"), (1, "b"), end=2)}}


@case
def a_failed_send_was_read(story: Story) -> dict[Anomaly, set[str]]:
    sent = story.begin(Send, "producer", partition=P, value="a")
    story.answer(sent, Stage.FAIL)
    return {Anomaly.ABORTED_READ: {sent.name, story.final((0, "a"), end=1)}}


@case
def an_aborted_transaction_was_read(story: Story) -> dict[Anomaly, set[str]]:
    sent = story.send("a", 0, transaction="t")
    end = story.end("t", False)
    return {Anomaly.ABORTED_READ: {sent, end, story.final((0, "a"), end=2)}}


@case
def a_transaction_whose_commit_failed_was_read(story: Story) -> dict[Anomaly, set[str]]:
    sent = story.send("a", 0, transaction="t")
    end = story.end("t", True, Stage.FAIL)
    return {Anomaly.ABORTED_READ: {sent, end, story.final((0, "a"), end=2)}}


@case
def an_open_transaction_was_read(story: Story) -> dict[Anomaly, set[str]]:
    sent = story.send("a", 0, transaction="t")
    read = story.poll((0, "a"), read_committed=True)
    story.end("t", True)
    story.final((0, "a"), end=2)
    return {Anomaly.DIRTY_READ: {sent, read}}


@case
def a_transaction_that_never_ended_was_read(story: Story) -> dict[Anomaly, set[str]]:
    sent = story.send("a", 0, transaction="t")
    return {Anomaly.DIRTY_READ: {sent, story.final((0, "a"), end=1)}}


@case
def a_transaction_read_its_own_record(story: Story) -> dict[Anomaly, set[str]]:
    sent = story.send("a", 0, transaction="t")
    read = story.poll((0, "a"), client="producer", transaction="t")
    story.end("t", True)
    story.final((0, "a"), end=2)
    return {Anomaly.PRECOMMITTED_READ: {sent, read}}


# ---- polls


@case
def a_poll_leaves_a_record_out(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b", "c")
    proof = {story.poll((0, "a")), story.poll((2, "c"))}
    proof.add(story.final((0, "a"), (1, "b"), (2, "c"), end=3))
    return {Anomaly.POLL_SKIP: proof}


@case
def a_poll_goes_back(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b")
    proof = {story.poll((0, "a"), (1, "b")), story.poll((1, "b"))}
    story.final((0, "a"), (1, "b"), end=2)
    return {Anomaly.NONMONOTONIC_POLL: proof}


@case
def a_record_is_left_out_within_a_poll(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b", "c")
    read = story.poll((0, "a"), (2, "c"))
    return {Anomaly.INT_POLL_SKIP: {read, story.final((0, "a"), (1, "b"), (2, "c"), end=3)}}


@case
def a_poll_is_out_of_order(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b", "c")
    read = story.poll((0, "a"), (1, "b"), (1, "b"), (2, "c"))
    story.final((0, "a"), (1, "b"), (2, "c"), end=3)
    return {Anomaly.INT_NONMONOTONIC_POLL: {read}}


# ---- sends


@case
def records_lie_in_reverse(story: Story) -> dict[Anomaly, set[str]]:
    proof = {story.send("a", 1), story.send("b", 0)}
    story.final((0, "b"), (1, "a"), end=2)
    return {Anomaly.NONMONOTONIC_SEND: proof}


@case
def records_of_a_transaction_lie_in_reverse(story: Story) -> dict[Anomaly, set[str]]:
    proof = {story.send("a", 1, transaction="t"), story.send("b", 0, transaction="t")}
    story.end("t", True)
    story.final((0, "b"), (1, "a"), end=3)
    return {Anomaly.INT_NONMONOTONIC_SEND: proof}


@case
def a_record_between_those_of_a_transaction(story: Story) -> dict[Anomaly, set[str]]:
    story.send("a", 0, transaction="t")
    story.send("x", 1, client="other")
    second = story.send("b", 2, transaction="t")
    story.end("t", True)
    story.final((0, "a"), (1, "x"), (2, "b"), end=4)
    return {Anomaly.INT_SEND_SKIP: {second}}


# ---- cycles


@case
def two_transactions_wrote_between_each_other(story: Story) -> dict[Anomaly, set[str]]:
    story.send("a", 0, transaction="t")
    story.send("b", 1, transaction="u", client="other")
    story.send("c", 0, partition=Q, transaction="u", client="other")
    story.send("d", 1, partition=Q, transaction="t")
    proof = {story.end("t", True), story.end("u", True)}
    story.final((0, "a"), (1, "b"), end=4)
    story.final((0, "c"), (1, "d"), end=4, partition=Q)
    return {Anomaly.G0: proof}


@case
def two_transactions_read_each_other(story: Story) -> dict[Anomaly, set[str]]:
    story.send("a", 0, transaction="t")
    story.send("b", 0, partition=Q, transaction="u", client="other")
    story.poll((0, "b"), partition=Q, client="producer", transaction="t")
    story.poll((0, "a"), client="other", transaction="u")
    proof = {story.end("t", True), story.end("u", True)}
    story.final((0, "a"), end=2)
    story.final((0, "b"), end=2, partition=Q)
    return {Anomaly.G1C: proof}


# ---- groups


@case
def a_commit_before_the_work(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b")
    story.poll((0, "a"), client="member", group="g")
    commit = story.commit(2)
    story.poll((1, "b"), client="member", group="g")
    story.final((0, "a"), (1, "b"), end=2)
    return {Anomaly.COMMIT_AHEAD: {commit}}


@case
def a_group_never_got_a_record(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b")
    story.add(Assign, "member", partitions=[P], group="g")
    story.poll((1, "b"), client="member", group="g")
    proof = {story.commit(2), story.final((0, "a"), (1, "b"), end=2)}
    return {Anomaly.MISSED_BY_GROUP: proof}


@case
def an_acknowledged_commit_is_gone(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b")
    story.poll((0, "a"), (1, "b"), client="member", group="g")
    story.commit(1)
    proof = {story.commit(2), story.committed(1)}
    story.final((0, "a"), (1, "b"), end=2)
    return {Anomaly.LOST_COMMIT: proof}


@case
def no_commit_is_left(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a")
    story.poll((0, "a"), client="member", group="g")
    proof = {story.commit(1), story.committed(None)}
    story.final((0, "a"), end=1)
    return {Anomaly.LOST_COMMIT: proof}


@case
def a_commit_that_failed_stands(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b")
    story.poll((0, "a"), (1, "b"), client="member", group="g")
    proof = {story.commit(1)}
    story.commit(2, Stage.FAIL)
    proof.add(story.committed(2))
    story.final((0, "a"), (1, "b"), end=2)
    return {Anomaly.LOST_COMMIT: proof}


@case
def a_commit_of_an_aborted_transaction_stands(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a")
    story.poll((0, "a"), client="producer", group="g", transaction="t")
    story.commit(1, transaction="t")
    story.end("t", False)
    asked = story.committed(1)
    story.final((0, "a"), end=1)
    return {Anomaly.LOST_COMMIT: {asked}}


@case
def a_commit_stands_before_it_was_sent(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a")
    story.poll((0, "a"), client="member", group="g")
    asked = story.committed(1)
    story.commit(1)
    story.final((0, "a"), end=1)
    return {Anomaly.LOST_COMMIT: {asked}}


@case
def a_commit_of_an_open_transaction_stands(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a")
    story.poll((0, "a"), client="producer", group="g", transaction="t")
    story.commit(1, transaction="t")
    asked = story.committed(1)
    story.end("t", True)
    story.final((0, "a"), end=1)
    return {Anomaly.LOST_COMMIT: {asked}}


# ---- nothing: what could be taken for an anomaly


@case
def commits_without_an_answer(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b")
    story.poll((0, "a"), (1, "b"), client="member", group="g")
    story.commit(2, Stage.INFO)
    story.commit(1)
    story.committed(2)
    story.final((0, "a"), (1, "b"), end=2)
    return {}


@case
def a_commit_and_a_question_at_once(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b")
    story.poll((0, "a"), (1, "b"), client="member", group="g")
    story.commit(1)
    commit = story.begin(Commit, "member", group="g", offsets={P: 2})
    story.committed(1)
    story.committed(2)
    story.answer(commit)
    story.committed(2)
    story.final((0, "a"), (1, "b"), end=2)
    return {}


@case
def members_that_polled_the_same(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b", "c")
    story.poll((0, "a"), (1, "b"), (2, "c"), client="member", group="g")
    story.poll((1, "b"), client="another", group="g")
    story.commit(3)
    story.final((0, "a"), (1, "b"), (2, "c"), end=3)
    return {}


@case
def new_starts_of_consumers(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b", "c")
    story.poll((0, "a"), (1, "b"))
    story.add(Assign, "reader", partitions=[P])
    story.poll((0, "a"))
    story.add(Revoke, "reader", partitions=[P])
    story.poll((2, "c"))
    story.final((0, "a"), (1, "b"), (2, "c"), end=3)
    return {}


@case
def markers_and_aborted_records_are_no_gap(story: Story) -> dict[Anomaly, set[str]]:
    story.send("a", 0)
    story.send("b", 1, transaction="t")
    story.end("t", False)
    story.send("c", 3)
    story.poll((0, "a"), (1, "b"), (3, "c"), client="uncommitted")
    story.poll((0, "a"), (3, "c"), read_committed=True)
    story.poll((0, "a"), (3, "c"), client="member", group="g", read_committed=True)
    story.commit(4)
    story.final((0, "a"), (3, "c"), end=4)
    return {}


@case
def retention_has_removed_the_beginning(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a", "b", "c", "d")
    story.poll((1, "b"))
    story.poll((3, "d"))
    story.poll((2, "c"), client="other")
    story.poll((3, "d"), client="member", group="g")
    story.commit(4)
    story.final((3, "d"), end=4, begin=3)
    return {}


@case
def unknown_outcomes(story: Story) -> dict[Anomaly, set[str]]:
    story.send("gone", None)
    story.send("there", None)
    story.send("half", 1, transaction="t")
    story.send("open", 0, partition=Q, transaction="t")
    story.end("t", True, Stage.INFO)
    story.final((0, "there"), end=3)
    story.final(end=2, partition=Q)
    return {}


@case
def the_rest_of_a_transaction_may_be_read_later(story: Story) -> dict[Anomaly, set[str]]:
    story.send("a", 0, transaction="t")
    story.send("b", 0, partition=Q, transaction="t")
    story.end("t", True, Stage.INFO)
    story.final((0, "a"), end=2)
    return {}


@case
def a_transaction_read_once_it_was_told_to_commit(story: Story) -> dict[Anomaly, set[str]]:
    story.send("a", 0, transaction="t")
    end = story.begin(End, "producer", transaction="t", commit=True)
    story.poll((0, "a"), read_committed=True)
    story.answer(end)
    story.final((0, "a"), end=2)
    return {}


@case
def a_chain_of_transactions(story: Story) -> dict[Anomaly, set[str]]:
    story.send("a", 0, transaction="t")
    story.end("t", True)
    story.poll((0, "a"), client="other", transaction="u", read_committed=True)
    story.send("b", 0, partition=Q, transaction="u", client="other")
    story.end("u", True)
    story.final((0, "a"), end=2)
    story.final((0, "b"), end=2, partition=Q)
    return {}
