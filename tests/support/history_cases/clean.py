"""Histories without an anomaly: what could be taken for one."""

from barnabas_common.history.checks.finding import Anomaly
from barnabas_common.history.operations import Assign, Commit, End, Revoke, Stage

from tests.support.history_cases.story import P, Q, Story, case


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
