"""Every lab is right on the real thing, and notices when what it teaches is broken.

A lab that would pass against the fault it is about teaches nothing. The fault is a setting where
there is one (`Lab.switch`), else a mistake planted into the lab's processes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from barnabas_broker.labs.catalog import LABS
from barnabas_broker.labs.lab import Lab

pytestmark = pytest.mark.integration

PLANTED = Path(__file__).parent / "planted"
LIMIT_SECONDS = 90

# The labs that no setting breaks, with the mistake that does.
MISTAKES = {
    "hw-advance": "leader_commits_alone",
    "acks": "acks_all_at_once",
    "broker-failover": "epoch_not_bumped",
    "leader-epoch": "epochs_never_differ",
    "split-brain": "acks_all_at_once",
    "controller-failover": "controller_not_watched",
    "create-delete-topic": "deletion_forgets_the_dead",
    "all-replicas-down": "always_unclean",
    "reassign": "moved_too_soon",
}


def play(lab: Lab, *options: str, mistake: str | None = None) -> tuple[int, dict[str, Any]]:
    """The exit code of `barnabas lab`, and its one line of JSON."""
    environment = dict(os.environ)
    if mistake is not None:
        before = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([str(PLANTED), *([before] if before else [])])
        environment["BARNABAS_PLANT"] = mistake
    command = [sys.executable, "-m", "barnabas.cli.main", "--output", "json", "lab", lab.name]
    done = subprocess.run(
        [*command, *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.stdout.count("\n") == 1, done.stdout + done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("lab", LABS.values(), ids=LABS)
def test_lab(lab: Lab) -> None:
    code, outcome = play(lab)
    assert outcome["passed"] and code == 0, outcome
    assert len(outcome["checks"]) >= 2


@pytest.mark.parametrize("lab", LABS.values(), ids=LABS)
def test_lab_against_the_fault_it_is_about(lab: Lab) -> None:
    if lab.switch:
        code, outcome = play(lab, "--switch")
    else:
        code, outcome = play(lab, mistake=MISTAKES[lab.name])
    assert not outcome["passed"] and code == 1, outcome


def test_each_prediction_has_one_right_answer() -> None:
    for lab in LABS.values():
        choices = lab.prediction.choices
        assert len(set(choices)) == len(choices) >= 3, lab.name
        assert 0 <= lab.prediction.answer < len(choices), lab.name


def test_a_mistake_is_planted_only_for_labs_without_a_switch() -> None:
    assert {name for name, lab in LABS.items() if not lab.switch} == set(MISTAKES)
