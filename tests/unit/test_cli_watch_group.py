"""What `watch --group` draws and prints."""

import io
import json

import pytest
from barnabas.admin import GroupDescription, GroupMemberDescription, Interruption
from barnabas.group.awaiting import Awaiting
from barnabas_common.events import Event, EventKind
from barnabas_common.messages.groups import AwaitedMember
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.cli.observe.group_look import GroupLook, PartitionLook, Watched
from barnabas_tools.cli.observe.group_screen import GroupScreen
from barnabas_tools.cli.observe.watch_group import Lines
from rich.console import Console

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
OFFSETS = TopicPartition("__consumer_offsets", 3)
EXPIRED = Event(
    7,
    0,
    2,
    EventKind.GROUP_MEMBER_EXPIRED,
    "no heartbeat",
    None,
    {"group": "shop", "member": "b-2"},
)


def described(state: str = "Stable", members: int = 1, **changes: object) -> GroupDescription:
    found = tuple(
        GroupMemberDescription(f"a-{n}", "", f"a{n}", "/10.0.0.7", ("orders",), (A,))
        for n in range(members)
    )
    return GroupDescription(
        "shop", state, "range", "consumer", 2, found, 5, changes.get("awaiting", Awaiting(state))
    )  # type: ignore[arg-type]


STABLE = GroupLook(described(), [PartitionLook(A, 10, 25, "a0"), PartitionLook(B, None, None, "")])
NOTHING = GroupLook(GroupDescription("shop", "Dead", "", "", 2, (), 0, Awaiting("Dead")), [])
WAITING = GroupLook(
    described(
        "PreparingRebalance",
        awaiting=Awaiting(
            "PreparingRebalance", [AwaitedMember("b-2", "till", "b", "/10.0.0.8", 4000)], 9.0
        ),
    ),
    [],
)


def drawn(screen_of: GroupScreen, console: Console) -> list[str]:
    with console.capture() as captured:
        console.print(screen_of.draw())
    return [line.rstrip() for line in captured.get().splitlines()]


def screen(width: int = 100, height: int = 24, **options: object) -> tuple[GroupScreen, Console]:
    console = Console(
        file=io.StringIO(), width=width, height=height, force_terminal=True, **options
    )  # type: ignore[arg-type]
    return GroupScreen("shop", console), console


def test_the_screen_shows_state_members_lag_and_events() -> None:
    shown, console = screen(color_system=None)
    shown.show_state(STABLE)
    shown.show_news(EXPIRED)
    lines = drawn(shown, console)
    assert lines[0].startswith("group shop: Stable, generation 5, 1 member, range, coordinator 2")
    assert "lag 15. Ctrl-C ends it." in lines[0]
    assert any(line.split() == ["a0", "a-0", "/10.0.0.7", "-", "orders-0"] for line in lines)
    assert any(line.split() == ["orders-0", "10", "25", "15", "a0"] for line in lines)
    assert any(line.split() == ["orders-1", "-", "-", "-"] for line in lines)
    assert "group-member-expired: no heartbeat" in lines[-1]


def test_it_names_the_members_that_a_rebalance_waits_for() -> None:
    shown, console = screen(150, color_system=None)
    shown.show_state(WAITING)
    assert drawn(shown, console)[1].startswith(
        "it waits at most 9 s more for b-2 (client b, host /10.0.0.8, instance till) to join"
    )


def test_a_group_that_does_not_exist_and_one_that_was_not_asked_yet() -> None:
    shown, console = screen(color_system=None)
    assert "asking its coordinator" in drawn(shown, console)[0]
    shown.show_state(NOTHING)
    assert "there is no such group yet" in drawn(shown, console)[0]


def test_without_an_answer_the_last_state_stays_and_its_age_is_told() -> None:
    shown, console = screen(color_system=None)
    shown.show_state(STABLE)
    shown.show_trouble("broker 2 does not answer")
    lines = drawn(shown, console)
    assert "Stable" in lines[0]
    assert lines[1].startswith("no answer (above: as of ")
    assert lines[1].endswith("broker 2 does not answer")
    shown.show_state(STABLE)
    assert not any("no answer" in line for line in drawn(shown, console))


@pytest.mark.parametrize("height", [6, 10, 24, 50])
@pytest.mark.parametrize("count", [1, 5, 60])
def test_it_fits_the_terminal(height: int, count: int) -> None:
    shown, console = screen(60, height, color_system=None)
    looks = [PartitionLook(TopicPartition("orders", n), n, 100, "a") for n in range(count)]
    shown.show_state(GroupLook(described(members=count), looks))
    for _ in range(30):
        shown.show_news(EXPIRED)
    shown.show_news(Interruption(2, 7, "broker 2 has restarted"))
    lines = drawn(shown, console)
    assert all(len(line) <= 60 for line in lines)
    if height >= 10:
        assert len(lines) <= height
        assert "broker 2 has restarted" in lines[-1]
    if count == 60 and height < 50:
        assert sum("do not fit" in line for line in lines) == 2


@pytest.mark.parametrize("colours", [True, False])
def test_nothing_is_coloured_where_no_colour_is_wanted(colours: bool) -> None:
    shown, console = screen(no_color=not colours, color_system="standard")
    shown.show_state(WAITING)
    shown.show_news(EXPIRED)
    text = "\n".join(drawn(shown, console))
    assert ("\x1b[33m" in text) is colours


# ---- lines


def test_lines_repeat_no_state(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(False, "shop")
    lines.show_state(STABLE)
    lines.show_state(STABLE)
    lines.show_trouble("no answer from 2")
    lines.show_trouble("no answer from 3")
    lines.show_state(STABLE)
    lines.show_state(WAITING)
    lines.show_news(EXPIRED)
    printed = [line.split(" ", 1)[1] for line in capsys.readouterr().out.splitlines()]
    assert printed == [
        STABLE.words(),
        "group shop: no answer: no answer from 2",
        STABLE.words(),
        WAITING.words(),
        *WAITING.waits(),
        "broker 2 group shop group-member-expired: no heartbeat  [member=b-2]",
    ]


def test_json_has_the_same_fields_for_every_state(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(True, "shop")
    for look in (STABLE, NOTHING, WAITING):
        lines.show_state(look)
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len({tuple(row) for row in rows}) == 1
    assert [row["state"] for row in rows] == ["Stable", "Dead", "PreparingRebalance"]
    assert rows[0]["generation"] == 5 and rows[0]["lag"] == 15
    assert rows[2]["waits_for"] == ["b-2 (client b, host /10.0.0.8, instance till)"]


@pytest.mark.parametrize(
    ("event", "concerned"),
    [
        (EXPIRED, True),
        (Event(1, 0, 1, EventKind.GROUP_STABLE, "x", None, {"group": "other"}), False),
        (Event(1, 0, 1, EventKind.COORDINATOR_LOADED, "x", OFFSETS, {}), True),
        (Event(1, 0, 1, EventKind.COORDINATOR_LOADED, "x", A, {}), False),
        (Event(1, 0, 1, EventKind.LEADER_ELECTED, "x", OFFSETS, {}), False),
    ],
)
def test_which_events_concern_a_group(event: Event, concerned: bool) -> None:
    assert Watched("shop", OFFSETS).concerns(event) is concerned
