"""Anomalies of writes: their offsets, their losses, their order, and cycles of transactions."""

from barnabas_common.history.checks.finding import Anomaly
from barnabas_common.history.operations import Stage

from tests.support.history_cases.story import Q, Story, case

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
def what_has_taken_the_place_is_lost_too(story: Story) -> dict[Anomaly, set[str]]:
    story.sent("a")
    first = story.poll((0, "a"))
    story.send("b", 0)
    story.poll((0, "b"), client="other")
    story.send("c", 0)
    story.final((0, "c"), end=1)
    return {Anomaly.INCONSISTENT_OFFSETS: set(), Anomaly.VANISHED: {first}}


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
