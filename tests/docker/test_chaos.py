"""`make chaos`: under random faults the promise is kept, and each control shows what it must."""

import json
from pathlib import Path

import pytest
from barnabas_tools.chaos.run.__main__ import main
from barnabas_tools.chaos.run.profiles import PROFILES

from tests.support.compose import CHAOS_PROJECT, ROOT, require_docker

pytestmark = pytest.mark.docker

CONTROLS = [name for name, profile in PROFILES.items() if profile.shows]


def run(folder: Path, profile: str, minutes: float, seed: int) -> dict[str, object]:
    require_docker()
    folder = folder / "run"
    arguments = ["--profile", profile, "--minutes", f"{minutes}", "--seed", f"{seed}"]
    place = ["--folder", str(folder), "--checkout", str(ROOT), "--project", CHAOS_PROJECT]
    code = main([*arguments, *place])
    content: dict[str, object] = json.loads((folder / "report.json").read_text())
    assert code == 0, content["outcome"]
    return content


def count_of(content: dict[str, object]) -> tuple[int, int]:
    """Faults that took effect, and acknowledged records."""
    faults, workloads = content["faults"], content["workloads"]
    assert isinstance(faults, dict) and isinstance(workloads, dict)
    acknowledged = sum(each["acknowledged"] for each in workloads.values())
    return sum(faults["counts"].values()), acknowledged


def test_a_minute_of_faults_breaks_no_promise(tmp_path: Path) -> None:
    faults, acknowledged = count_of(run(tmp_path, "safe", minutes=1, seed=1))
    print(f"{faults} faults, {acknowledged} acknowledged records")
    assert faults > 0 and acknowledged > 1_000


@pytest.mark.slow
@pytest.mark.parametrize("profile", CONTROLS)
def test_a_control_shows_what_it_must(tmp_path: Path, profile: str) -> None:
    run(tmp_path, profile, minutes=1, seed=1)


@pytest.mark.slow
def test_thirty_minutes_of_faults_break_no_promise(tmp_path: Path) -> None:
    faults, acknowledged = count_of(run(tmp_path, "safe", minutes=30, seed=30))
    print(f"{faults} faults, {acknowledged} acknowledged records")
    assert faults >= 100 and acknowledged >= 500_000
