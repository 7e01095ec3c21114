"""Files of saved runs: what was written is read again, and what is no such file is one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from barnabas_simulator.campaign.cli import app
from barnabas_simulator.campaign.faults.faults import Fault, FaultKind
from barnabas_simulator.campaign.options import Options
from barnabas_simulator.campaign.replay_file import VERSION, Replay
from typer.testing import CliRunner

REGRESSIONS = sorted((Path(__file__).parents[1] / "campaign" / "regressions").glob("*.json"))
OPTIONS = Options(seed=7, brokers=4)
FAULT = Fault(1.5, FaultKind.CUT, "1", "3", 2.0)
RUN = Replay(OPTIONS, [FAULT], "I6", "I6 LogMatching\nbefore")


def plain(**changes: Any) -> dict[str, Any]:
    return {**json.loads(RUN.text()), **changes}


def written(folder: Path, content: bytes | dict[str, Any]) -> Path:
    path = folder / "run.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def refusal(path: Path) -> str:
    """What `barnabas simulate replay` says about a file that it does not run: one line."""
    done = CliRunner().invoke(app, ["replay", str(path)])
    assert done.exit_code == 2 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("indent", [None, 1])
def test_a_run_is_read_as_it_was_written(indent: int | None, tmp_path: Path) -> None:
    assert Replay.load(written(tmp_path, RUN.text(indent).encode())) == RUN
    assert RUN.text(None).count("\n") == 1


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    RUN.save(tmp_path / "new" / "run.json")
    assert Replay.load(tmp_path / "new" / "run.json") == RUN
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["run.json"]


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_files_without_a_version_are_read(path: Path, tmp_path: Path) -> None:
    plain = json.loads(path.read_text())
    plain.pop("version", None)
    saved = Replay.load(written(tmp_path, plain))
    assert saved.faults and saved.kind and saved.violation
    assert saved == Replay.load(path)


def test_producers_of_old_files_are_not_idempotent(tmp_path: Path) -> None:
    old = {"options": {"seed": 7}, "faults": []}
    assert Replay.load(written(tmp_path, old)).options == Options(seed=7, idempotent=False)


@pytest.mark.parametrize("version", [VERSION + 1, 0, "1", None, True, 1.0, [1]])
def test_another_version_is_refused(version: object, tmp_path: Path) -> None:
    said = refusal(written(tmp_path, plain(version=version)))
    assert f"its version is {version!r}, and this program reads {VERSION}" in said


def test_a_newer_version_is_refused_whatever_else_it_has(tmp_path: Path) -> None:
    assert "its version is 2," in refusal(written(tmp_path, {"version": 2, "run": "..."}))


def test_a_file_that_is_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    whole = RUN.text().encode()
    for length in range(0, len(whole) - 2, 37):
        assert "is cut short or is not JSON" in refusal(written(tmp_path, whole[:length]))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"seed 7", "is not JSON"),
        (b"\xff\xfe\x00", "it is not text"),
        (b"[" * 100_000, "too deeply nested"),
        (b'{"options": ' + b"9" * 5_000 + b"}", "Exceeds the limit"),
        (b"[]", "it has no options or no faults"),
        (b"{}", "it has no options or no faults"),
        (b'{"options": {"seed": 1}}', "it has no options or no faults"),
    ],
)
def test_what_is_no_saved_run_is_refused(content: bytes, why: str, tmp_path: Path) -> None:
    assert why in refusal(written(tmp_path, content))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"seed": 7, "moons": 2}, "options: unknown: 'moons'"),
        ({"brokers": 3}, "options: missing: seed"),
        ({"seed": "7"}, "seed is no int: '7'"),
        ({"seed": 7, "brokers": True}, "brokers is no int: True"),
        ({"seed": 7, "mode": "despair"}, "unknown mode: 'despair'"),
        ([7], "options: no JSON object: [7]"),
    ],
)
def test_options_that_do_not_fit_are_named(options: object, why: str, tmp_path: Path) -> None:
    assert why in refusal(written(tmp_path, plain(options=options)))


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"at": 1.0, "kind": "meteor"}, "unknown kind: 'meteor'"),
        ({"at": 1.0, "kind": ["kill"]}, "unknown kind: ['kill']"),
        ({"at": 1.0}, "fault: missing: kind"),
        ({"at": "1", "kind": "kill"}, "at is no float: '1'"),
        ({"at": 1, "kind": "kill", "target": 3}, "target is no str: 3"),
        ({"at": 1, "kind": "kill", "size": 3}, "fault: unknown: 'size'"),
        ("kill", "fault: no JSON object: 'kill'"),
    ],
)
def test_faults_that_do_not_fit_are_named(fault: object, why: str, tmp_path: Path) -> None:
    assert why in refusal(written(tmp_path, plain(faults=[FAULT.to_json(), fault])))


def test_faults_that_are_no_list_are_refused(tmp_path: Path) -> None:
    assert "its faults are no list" in refusal(written(tmp_path, plain(faults={"at": 1})))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refusal(tmp_path / "none.json")
    assert "cannot be read: Is a directory" in refusal(tmp_path)
