"""The short story of a failing run: a page about what was wrong, and how it ends."""

from collections.abc import Sequence

import pytest
from barnabas_common.events import Event, EventKind
from barnabas_common.topic_partition import TopicPartition
from barnabas_simulator.campaign.conclusion import Conclusion, conclude
from barnabas_simulator.campaign.story import MAX_LINES, Story
from barnabas_simulator.invariants import InvariantViolation
from barnabas_simulator.loop import run

Dated = tuple[float, Event]
ONE, TEN = TopicPartition("flights", 1), TopicPartition("flights", 10)
KNOWN = [ONE, TEN, TopicPartition("orders", 0)]
WRONG = Conclusion(100.0, "I6 LogMatching", (ONE,), "42.000 s", "two logs differ")


class Recorded:
    """As much of a cluster as a story reads at its end."""

    def __init__(self, events: Sequence[Dated] = ()) -> None:
        self._events = events

    def dated_events(self) -> Sequence[Dated]:
        return self._events


def event(
    at: float, kind: EventKind, partition: TopicPartition | None = None
) -> tuple[float, Event]:
    return at, Event(1, 0, 1, kind, "so it was", partition)


def story(*events: Dated) -> Story:
    return Story(Recorded(events), tell=True)  # type: ignore[arg-type]


def told(planted: Story, conclusion: Conclusion = WRONG) -> list[str]:
    """The short story without its first line and the conclusion."""
    lines = planted.short(conclusion)
    assert len(lines) <= MAX_LINES and lines[-4:] == conclusion.lines()
    return [line.split(maxsplit=1)[1] for line in lines[1:-4]]


async def note_states(planted: Story, count: int) -> None:
    for number in range(count):
        planted.checked(f"state {number}", ONE)


def test_a_short_story_is_about_the_broken_partition_and_what_concerns_all() -> None:
    planted = story(
        event(1, EventKind.BECAME_LEADER, ONE),
        event(2, EventKind.BECAME_LEADER, TEN),
        event(3, EventKind.SESSION_LOST),
    )

    async def happen() -> None:
        planted.fault("kill leader (broker 1)")
        planted.note("producer: TimeoutError")
        planted.note("admin: move flights-1 to [2]")
        planted.checked("flights-10: leader 3", TEN)

    run(happen())
    assert told(planted) == [
        "*** kill leader (broker 1)",
        "*** admin: move flights-1 to [2]",
        "broker 1 flights-1 became-leader: so it was",
        "broker 1 session-lost: so it was",
    ]
    assert len(planted.lines()) == 7


def test_what_tells_least_is_left_out_first_and_of_that_the_oldest() -> None:
    planted = story(
        *(event(1 + n, EventKind.BECAME_FOLLOWER, ONE) for n in range(10)),
        *(event(20 + n, EventKind.LOG_TRUNCATED, ONE) for n in range(10)),
    )
    run(note_states(planted, 30))
    lines = told(planted)
    assert len(planted.short(WRONG)) == MAX_LINES
    assert sum("log-truncated" in line for line in lines) == 10
    assert [line for line in lines if line.startswith("state")] == [
        f"state {number}" for number in range(5, 30)
    ]
    assert not any("became-follower" in line for line in lines)
    assert planted.short(WRONG)[0] == "(35 of 50 lines; --whole prints all)"


def test_what_happens_while_a_failed_run_is_ended_is_left_out() -> None:
    planted = story(
        event(99, EventKind.LOG_TRUNCATED, ONE), event(101, EventKind.LOG_TRUNCATED, ONE)
    )
    assert len(told(planted)) == 1


def test_without_a_partition_a_story_is_about_all_of_them() -> None:
    planted = story(event(1, EventKind.BECAME_LEADER, ONE), event(2, EventKind.BECAME_LEADER, TEN))
    assert len(told(planted, Conclusion(9.0, "Stuck", (), "9 s", "nothing can happen"))) == 2


def test_a_group_that_is_named_belongs_to_the_story() -> None:
    generation = Event(
        1, 0, 1, EventKind.GROUP_GENERATION, "all joined", None, {"group": "group-0"}
    )
    other = Event(2, 0, 1, EventKind.GROUP_GENERATION, "all joined", None, {"group": "group-01"})
    wrong = Conclusion(9.0, "I18", (ONE,), "9 s", "in generation 3 of group-0 two own flights-1")
    assert len(told(story((1.0, generation), (2.0, other)), wrong)) == 1


def test_a_story_that_is_not_told_is_empty() -> None:
    silent = Story(Recorded(), tell=False)  # type: ignore[arg-type]
    run(note_states(silent, 3))
    assert silent.short(WRONG) == [] and silent.lines() == []


# ---- the conclusion


def test_a_broken_invariant_is_concluded_with_its_partitions_and_since_when() -> None:
    states = "the offset of flights-10\nis older"
    error = InvariantViolation("I19 Offsets", 7.5, ONE, states, ["flights-2"], "7.500 s, this step")
    assert conclude(error, 60.0, KNOWN).lines() == [
        "rule         I19 Offsets",
        "partitions   flights-1, flights-10",
        "wrong since  7.500 s, this step",
        "states       the offset of flights-10 is older",
    ]


@pytest.mark.parametrize(
    ("error", "rule", "partitions", "since"),
    [
        (
            AssertionError("lost: orders-0@7, and flights-10"),
            "what is judged when everything has been read back",
            "flights-10, orders-0",
            "not known; no invariant was broken until then, 60.000 s",
        ),
        (RuntimeError("x"), "RuntimeError", "-", "60.000 s, when this error ended the run"),
    ],
)
def test_any_other_error_is_concluded_too(
    error: Exception, rule: str, partitions: str, since: str
) -> None:
    assert conclude(error, 60.0, KNOWN).lines()[:3] == [
        f"rule         {rule}",
        f"partitions   {partitions}",
        f"wrong since  {since}",
    ]


def test_states_of_many_lines_stay_one_line() -> None:
    lines = conclude(AssertionError("lost\n" * 5_000), 1.0, []).lines()
    assert len(lines) == 4 and len(lines[-1]) < 1_100 and lines[-1].endswith("...")
