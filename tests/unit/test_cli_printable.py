"""Nothing that others have named or written acts on the terminal that it is shown on."""

import io
import json
import logging
import sys

import pytest
from barnabas.admin import GroupDescription, GroupMemberDescription, Interruption
from barnabas.group.awaiting import Awaiting
from barnabas.group.explaining import GroupSentence
from barnabas_common.events import Event, EventKind
from barnabas_common.printable import printable
from barnabas_common.topic_partition import TopicPartition
from barnabas_tools.cli.observe.event_lines import event_line, interruption_line
from barnabas_tools.cli.observe.explain import sentence_lines
from barnabas_tools.cli.observe.group_look import GroupLook
from barnabas_tools.cli.observe.group_screen import GroupScreen
from barnabas_tools.cli.observe.watch_group import Lines
from barnabas_tools.cli.output import note, print_message, print_rows
from barnabas_tools.cli.printable import PrintableFormatter
from barnabas_tools.cli.records.consume import for_terminal
from barnabas_tools.cli.settings import Output, Settings
from rich.console import Console

# Clears the screen, sets the title, starts a C1 sequence, turns the text round, breaks the line.
NASTY = "g\x1b[2J\x1b]0;t\x07\x9b1m\u202e\r\nx\udc80"
ESCAPED = r"g\x1b[2J\x1b]0;t\x07\x9b1m\u202e\r\nx\udc80"


def test_what_acts_on_a_terminal_becomes_an_escape_and_text_stays() -> None:
    assert printable(NASTY) == ESCAPED
    assert printable("Zürich 東京 👩‍🚀 a\\b") == "Zürich 東京 👩‍🚀 a\\b"
    assert printable("a\tb\nc", keep="\n\t") == "a\tb\nc"


def test_a_cell_a_message_and_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(Settings(), ("group", "topics"), [{"group": NASTY, "topics": [NASTY, NASTY]}])
    print_message(Settings(), f"deleted {NASTY}", {})
    note(f"group {NASTY}")
    out, err = capsys.readouterr()
    assert out.count(ESCAPED) == 4
    assert err == f"group {ESCAPED}\n"
    assert out.replace("\n", "").isprintable() and out.count("\n") == 3


def test_a_table_on_a_narrow_terminal_is_not_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    row = {"topic": "flights-of-the-year", "current_offset": 17, "member": "m" * 60}
    print_rows(Settings(), tuple(row), [row])
    out = capsys.readouterr().out
    assert "CURRENT OFFSET" in out and all(str(cell) in out for cell in row.values())


def test_json_has_every_character_and_a_terminal_none_of_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_rows(Settings(output=Output.JSON), ("group",), [{"group": NASTY}])
    (line,) = capsys.readouterr().out.split("\n")[:-1]
    assert line.isprintable() and json.loads(line) == {"group": NASTY}


def test_events_and_explanations() -> None:
    event = Event(7, 0, 2, EventKind.GROUP_GONE, NASTY, None, {"group": NASTY})
    said = sentence_lines({"lag": "Why"}, [GroupSentence("lag", NASTY)])
    for line in (event_line(event), interruption_line(Interruption(7, 1, NASTY, 1)), said[-1]):
        assert ESCAPED in line and line.isprintable()


def look() -> GroupLook:
    partition = TopicPartition("orders", 0)
    member = GroupMemberDescription(NASTY, "", NASTY, NASTY, ("orders",), (partition,))
    described = GroupDescription(
        NASTY, "Stable", "range", "consumer", 2, (member,), 5, Awaiting("Stable")
    )
    return GroupLook(described, [])


def test_a_watched_group(capsys: pytest.CaptureFixture[str]) -> None:
    Lines(False, NASTY).show_state(look())
    assert ESCAPED in capsys.readouterr().out
    console = Console(file=io.StringIO(), width=200, height=20, force_terminal=True)
    screen = GroupScreen(NASTY, console)
    screen.show_state(look())
    with console.capture() as captured:
        console.print(screen.draw())
    drawn = captured.get()
    assert ESCAPED in drawn and "\x1b[2J" not in drawn and "\x9b" not in drawn


def test_a_warning_of_the_client() -> None:
    record = logging.LogRecord("barnabas", logging.WARNING, "", 0, "%s", (NASTY,), None)
    assert PrintableFormatter().format(record) == ESCAPED
    try:
        raise ValueError(NASTY)
    except ValueError:
        record.exc_info = sys.exc_info()
    lines = PrintableFormatter().format(record).split("\n")
    assert len(lines) > 3 and all(map(str.isprintable, lines))


def test_a_record_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert for_terminal(b"a\x1b[2J\xff\tb\n{\xc3\xbc}") == rb"a\x1b[2J\xff" + b"\tb\n{\xc3\xbc}"
