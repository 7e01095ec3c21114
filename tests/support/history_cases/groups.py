"""Anomalies of groups: their commits, and records that they missed."""

from barnabas_common.history.checks.finding import Anomaly
from barnabas_common.history.operations import Assign, Stage

from tests.support.history_cases.story import P, Story, case


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
