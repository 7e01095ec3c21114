"""Anomalies of reads: what may not be read, and the order of polls."""

from barnabas_common.history.checks.finding import Anomaly
from barnabas_common.history.operations import Send, Stage

from tests.support.history_cases.story import P, Q, Story, case

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
