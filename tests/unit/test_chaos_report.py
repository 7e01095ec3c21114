"""Reports: figures of a history, JSON and HTML, and the command that writes them."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from barnabas_common.history.files import HistoryWriter
from barnabas_common.history.operations import Fault, PartitionState, Poll, Stage
from barnabas_common.history.promise import PROFILES
from barnabas_tools.chaos.clients.__main__ import settings
from barnabas_tools.chaos.report.__main__ import main
from barnabas_tools.chaos.report.report import Report, report

from tests.support.history_cases import P, Story

SECOND = 10**9


def told(*, lose: bool = False) -> Story:
    """A run of ten seconds with a fault, two leaders, a gap of four seconds, and a group."""
    story = Story()
    story.add(PartitionState, "observer", partition=P, leader=1, in_sync_replicas=[1, 2, 3])
    for offset in range(3):
        story.send(f"v{offset}", offset)
    fault = story.begin(Fault, "nemesis", fault="kill", target="<broker 1>")
    story.add(PartitionState, "observer", partition=P, leader=-1, in_sync_replicas=[1])
    story.add(PartitionState, "observer", partition=P, leader=2, in_sync_replicas=[2, 3])
    story.answer(fault)
    story.send("v3", None if lose else 3)
    story.poll((0, "v0"), (1, "v1"), group="g", client="member")
    story.poll((0, "v0"), group="g", client="other")
    gone = 1 if lose else 0
    story.final(*((n, f"v{n}") for n in range(gone, 4)), end=4)
    return story


def made(story: Story, profile: str = "safe") -> Report:
    for operation in story.operations:
        object.__setattr__(operation, "time", operation.time * SECOND)
    return report("seed 7 & <safe>", story.operations, PROFILES[profile])


def test_figures_say_when_what_happened() -> None:
    figures = made(told()).figures
    assert figures.sends == {"invoke": 4, "ok": 4}
    assert [(f.fault, f.begin, f.end) for f in figures.faults] == [("kill", 7.0, 10.0)]
    assert [(s.at, s.leader) for s in figures.states[P]] == [(0.0, 1), (8.0, -1), (9.0, 2)]
    assert figures.longest_gap[P].seconds == 6.0
    assert figures.longest_gap[P].begin == 6.0
    assert figures.acknowledged_by_second == {2: 1, 4: 1, 6: 1, 12: 1}
    assert (figures.deliveries["g"], figures.distinct["g"]) == (3, 2)
    assert figures.lag == {"member/1": 7.0, "other/1": 10.0}


class Tags(HTMLParser):
    """Checks that every tag is closed, and that nothing is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not {"src", "href"} & {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("lose", [False, True])
def test_a_report_is_one_file_of_html_and_one_of_json(tmp_path: Path, lose: bool) -> None:
    made(told(lose=lose)).write(tmp_path)
    html = (tmp_path / "report.html").read_text()
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert "seed 7 &amp; &lt;safe&gt;" in html
    assert "&lt;broker 1&gt;" in html
    assert ("The promise was broken" in html) == lose
    assert "leader 2, ISR [2, 3], from 9.0 s" in html
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["good"] is not lose
    assert content["acknowledged"] == (3 if lose else 4)
    if lose:
        assert content["anomalies"]["vanished"]["count"] == 1
        assert re.search(r"vanished: \d+ \(ruled out\)", html)


def test_a_run_without_acknowledgements_proves_nothing(tmp_path: Path) -> None:
    empty = report("empty", [Poll(time=1, client="r", records={})], PROFILES["safe"])
    empty.write(tmp_path)
    assert "The run proves nothing" in (tmp_path / "report.html").read_text()


def write(folder: Path, story: Story) -> None:
    with HistoryWriter(folder / "all.1.jsonl") as writer:
        for operation in story.operations:
            writer.write(operation)


@pytest.mark.parametrize(("lose", "code"), [(False, 0), (True, 1)])
def test_the_command_judges_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lose: bool, code: int
) -> None:
    write(tmp_path, told(lose=lose))
    assert main([str(tmp_path), "--profile", "safe"]) == code
    assert (tmp_path / "report.html").exists()
    assert ("vanished: orders-0@0" in capsys.readouterr().out) == lose


def test_the_command_says_if_there_is_no_history(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 2
    assert "no history" in capsys.readouterr().err


def test_settings_of_a_client_are_those_that_it_has() -> None:
    known = {"acks": str, "linger_ms": int}
    assert settings(["acks=all", "linger_ms=5"], known) == {"acks": "all", "linger_ms": 5}
    assert settings(["acks=1"], known) == {"acks": 1}
    with pytest.raises(ValueError, match="enable_idempotence=true: not one of acks, linger_ms"):
        settings(["enable_idempotence=true"], known)


def test_an_open_fault_is_shown_to_the_end() -> None:
    story = told()
    story.add(Fault, "nemesis", stage=Stage.INVOKE, fault="pause", target="2")
    assert made(story).figures.faults[-1].end is None
