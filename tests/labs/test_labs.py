"""Every lab passes on a real cluster, and fails when the mechanism that it teaches is broken.

A lab that passes despite the fault that it is about teaches nothing. The fault is a setting if
there is one (`Lab.switch`), and otherwise a mistake planted into the lab's processes.
"""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from barnabas_tools.labs.catalog import LABS
from barnabas_tools.labs.framework.lab import Lab

pytestmark = pytest.mark.integration

PLANTED = Path(__file__).parent / "planted"
LIMIT_SECONDS = 90
BARNABAS = [sys.executable, "-m", "barnabas_tools.cli.main"]

# What fails in each lab with its fault: a claim, or a condition that never came (patterns).
FAILS = {
    "hw-advance": "its high watermark is 2",
    "isr-shrink": "acks=all still works with two replicas",
    "acks": "acks=all was not: no follower has the record",
    "idempotence": "the record is there once",
    "broker-failover": "in vain until the producer goes on",
    "leader-epoch": "broker 1 has the leader's log",
    "data-loss": "the acknowledged record is there",
    "divergence": "both logs hold the same",
    "split-brain": "the late record was acknowledged only where it now stands",
    "last-replica-standing": "everything acknowledged by all is there",
    "controller-failover": "in vain until the brokers agree on a controller",
    "create-delete-topic": "the deletion is not done",
    "preferred-leader": "the controller has moved leadership back",
    "unclean-election": "no acknowledged record is lost",
    "all-replicas-down": "the patient topic has none",
    "compaction": "it has learned that pear is deleted",
    "reassign": "in vain until only the new brokers have it|the ISR was never smaller than before",
    "at-most-once": "no record is worked on twice",
    "at-least-once": "every record is worked on",
    "rebalance": "a partition that keeps its reader is read all the time",
    "coordinator-failover": "both members commit again",
    "aborted-transaction": "the reader never sees what was aborted",
    "exactly-once": "no record is copied twice",
    "zombie-fencing": "the payment is there once",
    "hanging-transaction": "readers are not blocked",
    "transaction-coordinator-failover": "the producer's commit succeeds",
}
# How many seconds to wait for a condition that never comes with the fault.
PATIENCE = "8"
# A new group needs its time on a busy machine; only in one of these a condition never comes.
PATIENCE_OF_GROUPS = {
    "at-most-once": "30",
    "at-least-once": "30",
    "rebalance": "30",
    "coordinator-failover": "15",
    "exactly-once": "30",
}

# The labs that no setting breaks, each with the mistake that does.
MISTAKES = {
    "hw-advance": "leader_commits_alone",
    "acks": "acks_all_at_once",
    "idempotence": "producers_not_idempotent",
    "broker-failover": "epoch_not_bumped",
    "leader-epoch": "epochs_never_differ",
    "split-brain": "acks_all_at_once",
    "controller-failover": "controller_not_watched",
    "create-delete-topic": "deletion_forgets_the_dead",
    "all-replicas-down": "always_unclean",
    "reassign": "moved_too_soon",
    "compaction": "tombstones_go_at_once",
}


def play(lab: Lab, *options: str, mistake: str | None = None) -> tuple[int, dict[str, Any]]:
    """Run `barnabas lab`; returns its exit code and its one line of JSON."""
    environment = dict(os.environ)
    if mistake is not None:
        before = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([str(PLANTED), *([before] if before else [])])
        environment["BARNABAS_PLANT"] = mistake
    command = [*BARNABAS, "--output", "json", "lab", lab.name]
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
    assert outcome["passed"] and code == 0, json.dumps(outcome, indent=1)
    assert len(outcome["checks"]) >= 2


@pytest.mark.parametrize("lab", LABS.values(), ids=LABS)
def test_lab_against_the_fault_it_is_about(lab: Lab) -> None:
    patience = ("--patience", PATIENCE_OF_GROUPS.get(lab.name, PATIENCE))
    if lab.switch:
        code, outcome = play(lab, "--switch", *patience)
    else:
        code, outcome = play(lab, *patience, mistake=MISTAKES[lab.name])
    assert not outcome["passed"] and code == 1, json.dumps(outcome, indent=1)
    assert not (lab.switch and outcome["broken"]), "a lab shows the harm of its switch to the end"
    failed = [check["claim"] for check in outcome["checks"] if not check["holds"]]
    told = [*failed, outcome["broken"] or ""]
    assert any(re.search(FAILS[lab.name], what) for what in told), json.dumps(outcome, indent=1)


def test_a_returning_follower_is_seen_to_cut_its_log() -> None:
    done = subprocess.run(
        [*BARNABAS, "lab", "leader-epoch", "--yes"],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=True,
    )
    assert "broker 1 letters-0 log-truncated" in done.stderr
    assert "rule=leader-epoch from_offset=5 to_offset=2" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_lab_that_is_ended_leaves_nothing_behind(number: signal.Signals, tmp_path: Path) -> None:
    with subprocess.Popen(
        [*BARNABAS, "lab", "reassign", "--yes"],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    ) as playing:
        assert playing.stderr is not None
        for line in playing.stderr:
            if "leader-elected" in line:
                break
        playing.send_signal(number)
        playing.stderr.read()
        assert playing.wait(LIMIT_SECONDS) == 130
    assert list(tmp_path.iterdir()) == []
    assert not [
        entry.name
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and str(tmp_path) in _command_line(entry)
    ]


def _command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_text()
    except OSError:  # it has just ended
        return ""


@pytest.mark.parametrize(("typed", "asked"), [("", 1), ("both\n7\n0\n", 4)])
def test_a_prediction_is_one_of_the_choices(typed: str, asked: int) -> None:
    done = subprocess.run(
        [*BARNABAS, "lab", "hw-advance"],
        input=typed,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("Your prediction (1 to 3)") == asked
    assert done.stderr.endswith("--yes plays without one\n")


def test_each_prediction_has_one_right_answer() -> None:
    for lab in LABS.values():
        choices = lab.prediction.choices
        assert len(set(choices)) == len(choices) >= 3, lab.name
        assert 0 <= lab.prediction.answer < len(choices), lab.name


def test_a_mistake_is_planted_only_for_labs_without_a_switch() -> None:
    assert {name for name, lab in LABS.items() if not lab.switch} == set(MISTAKES)
