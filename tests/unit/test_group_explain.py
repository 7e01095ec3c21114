"""What is said about a group: each sentence from what was seen, and nothing from what was not."""

from dataclasses import replace

import pytest
from barnabas.group.explaining import About, GroupView, Progress, Reader, explain_group
from barnabas_common.events import Event
from barnabas_common.events.event import EventKind
from barnabas_common.topic_partition import TopicPartition

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
VIEW = GroupView(
    "shop",
    "Stable",
    "range",
    [Reader("a-1", "a", [A])],
    Progress({A: 10, B: 5}, {A: 20, B: 5}),
    Progress({A: 10, B: 5}, {A: 20, B: 5}),
    2.0,
)


def said(view: GroupView, about: About) -> list[str]:
    return [sentence.text for sentence in explain_group(view) if sentence.about is about]


def now(view: GroupView, committed: int, end: int) -> GroupView:
    return replace(view, now=Progress({A: committed, B: 5}, {A: end, B: 5}))


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (VIEW, "10 records behind: its member commits nothing"),
        (now(VIEW, 15, 40), "25 records behind: it grows, in 2 s 20 arrived and 5 were committed"),
        (now(VIEW, 19, 20), "1 records behind: it shrinks or stays"),
        (replace(VIEW, readers=[]), "10 records behind: no member reads it"),
        (replace(VIEW, state="PreparingRebalance"), "the group is PreparingRebalance"),
        (replace(VIEW, leaderless=[A]), "it has no leader"),
        (replace(VIEW, now=Progress({A: 10}, {})), "there is no such partition any more"),
        (replace(VIEW, now=Progress({}, {A: 3})), "nothing is committed yet"),
    ],
)
def test_the_reason_of_a_lag(view: GroupView, expected: str) -> None:
    (text,) = said(view, About.LAG)
    assert text.startswith("orders-0: ") and expected in text


def test_no_lag_is_not_mentioned() -> None:
    assert said(now(VIEW, 20, 20), About.LAG) == []


def test_rebalances_have_their_causes_and_only_this_groups() -> None:
    events = [
        Event(1, 5, 1, EventKind.GROUP_MEMBER_EXPIRED, "no heartbeat", None,
              {"group": "shop", "member": "b-2"}),
        Event(2, 6, 1, EventKind.GROUP_REBALANCING, "b-2 expired", None,
              {"group": "shop", "generation": 3}),
        Event(3, 7, 1, EventKind.GROUP_REBALANCING, "other", None, {"group": "else"}),
    ]  # fmt: skip
    assert said(replace(VIEW, events=events), About.REBALANCE) == [
        "member expired b-2: no heartbeat",
        "rebalancing 3: b-2 expired",
    ]
    assert "no broker remembers" in said(VIEW, About.REBALANCE)[0]


def test_owners_are_named_with_the_rule_that_chose_them() -> None:
    rule, reads = said(VIEW, About.OWNER)
    assert "range: gives each member consecutive partitions" in rule
    # `in_member_order`: a static member comes before others whose ids are lower.
    assert "first to static members by their instance ids" in rule
    assert reads == "a-1 (client a) reads orders-0"
    assert said(replace(VIEW, readers=[]), About.OWNER) == ["the group has no members"]


def test_brokers_that_did_not_answer_are_named() -> None:
    (doubt,) = said(replace(VIEW, unreachable={2: "down"}), About.DOUBT)
    assert "broker 2" in doubt
