"""`make soak`: it goes on after failures, survives Ctrl-C, keeps what failed, and reports it."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from barnabas_simulator.campaign.faults.faults import Fault, FaultKind
from barnabas_simulator.campaign.options import Options
from barnabas_simulator.campaign.replay_file import Replay

from tests.support import soak
from tests.support.soak import KILL_TESTS, SCHEDULES, Soak, campaign_command, kill_command, main
from tests.support.soak_step import interrupts, run_step

ROOT = Path(__file__).parents[2]
FIRST = 100
GOOD = "print('50 runs, 600 acknowledged records, 0 violations, 9 s, 20000 runs an hour')"
GOOD_TESTS = "print('12 passed')"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def in_turn(*codes: str) -> Callable[..., list[str]]:
    """A command that is the first code, then the next, and the last for all that follow."""
    left = list(codes)
    return lambda *_: python(left.pop(0) if len(left) > 1 else left[0])


def clock(steps: int) -> Callable[[], float]:
    """A clock by which an hour is over after so many steps."""
    times = iter([0.0] * (steps + 1) + [3600.0] * 2)
    return lambda: next(times)


def soaked(root: Path, steps: int, campaign: Sequence[str], tests: Sequence[str]) -> int:
    return main(
        ["1", "--seed", str(FIRST)],
        root,
        campaign=in_turn(*campaign),
        kill_tests=in_turn(*tests),
        clock=clock(steps),
    )


def report(root: Path) -> str:
    (found,) = root.glob("*/report.txt")
    return found.read_text()


def test_campaigns_on_new_seeds_and_kill_tests_take_turns_until_the_time_is_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert soaked(tmp_path, 5, [GOOD], [GOOD_TESTS]) == 0
    said = capsys.readouterr().out
    steps = [line.partition(":")[0] for line in said.splitlines() if ": passed after" in line]
    assert steps == [
        "campaign of seeds 100 to 149",
        "kill tests, round 1",
        "campaign of seeds 150 to 199",
        "kill tests, round 2",
        "campaign of seeds 200 to 249",
    ]
    assert report(tmp_path).splitlines() == [
        "1.00 of 1 hours",
        "150 schedules (seeds 100 to 249), 1800 acknowledged records, 0 violations",
        "2 rounds of kill tests, 24 tests passed",
        "0 failed campaigns and rounds",
    ]
    assert said.endswith(report(tmp_path))
    assert len(list(tmp_path.glob("*/*"))) == 1  # what passed leaves nothing


def test_a_campaign_that_fails_is_kept_with_its_replay_and_the_soak_goes_on(tmp_path: Path) -> None:
    replay = Replay(Options(seed=117), [Fault(1.0, FaultKind.KILL, "1")], "I6", "I6 LogMatching")
    saving = f"""
import glob, pathlib, sys
folder = pathlib.Path(max(glob.glob({str(tmp_path / "*")!r})))
(folder / "seed-117.json").write_text({replay.text()!r})
(folder / "seed-117-shrunk.json").write_text({replay.text()!r})
print("seed 117: I6 LogMatching")
print("50 runs, 500 acknowledged records, 1 violations, 9 s, 20000 runs an hour")
sys.exit(1)
"""
    assert soaked(tmp_path, 3, [saving, GOOD], [GOOD_TESTS]) == 1
    (folder,) = tmp_path.iterdir()
    assert (folder / "seeds-100.log").read_text().startswith("seed 117: I6")
    assert report(tmp_path).splitlines()[1:] == [
        "100 schedules (seeds 100 to 199), 1100 acknowledged records, 1 violations",
        f"  seed 117: I6: barnabas simulate replay {folder}/seed-117-shrunk.json",
        "1 rounds of kill tests, 12 tests passed",
        "1 failed campaigns and rounds",
        f"  campaign of seeds 100 to 149: failed with exit code 1; output: {folder}/seeds-100.log",
    ]


def test_violations_that_could_not_be_saved_count(tmp_path: Path) -> None:
    printed = "print('50 runs, 500 acknowledged records, 2 violations, 9 s'); exit(1)"
    assert soaked(tmp_path, 1, [printed], [GOOD_TESTS]) == 1
    assert "500 acknowledged records, 2 violations" in report(tmp_path)


def test_a_campaign_that_dies_counts_as_far_as_it_came(tmp_path: Path) -> None:
    dying = """
import os, sys
print("25 of 50 runs, 0 violations", file=sys.stderr, flush=True)
os.kill(os.getpid(), 9)
"""
    assert soaked(tmp_path, 2, [dying], [GOOD_TESTS]) == 1
    said = report(tmp_path)
    assert "25 schedules" in said and "1 rounds of kill tests" in said
    assert "campaign of seeds 100 to 149: died of signal 9; output: " in said


def test_kill_tests_that_fail_are_named_and_their_output_is_kept(tmp_path: Path) -> None:
    failing = "print('E  lost: 7\\nFAILED tests/x.py::test_kill\\n1 failed, 11 passed'); exit(1)"
    assert soaked(tmp_path, 4, [GOOD], [failing, GOOD_TESTS]) == 1
    said = report(tmp_path)
    (kept,) = tmp_path.glob("*/kill-tests-1.log")
    assert kept.read_text().startswith("E  lost: 7")
    assert f"kill tests, round 1: failed with exit code 1; output: {kept}" in said
    assert "    FAILED tests/x.py::test_kill\n" in f"{said}\n"
    assert "2 rounds of kill tests, 23 tests passed" in said


def test_output_that_cannot_be_kept_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert soaked(tmp_path, 1, ["print('the replay'); exit(1)"], [GOOD_TESTS]) == 1
    said = capsys.readouterr().out
    assert "the replay\n" in said and "cannot be written: No space left on device" in said


# ---- Ctrl-C

WAITING = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # none is missed before the wait for it
open({ready!r}, "w").close()
signal.sigwait([signal.SIGINT])
"""


def interrupt_when(ready: Path) -> None:
    """Send this process SIGINT once a command has opened the pipe, and so is at work."""
    os.mkfifo(ready)

    def wait() -> None:
        ready.read_bytes()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()


@pytest.mark.parametrize(("violations", "code"), [(0, 130), (1, 1)])
def test_ctrl_c_ends_what_runs_and_reports(violations: int, code: int, tmp_path: Path) -> None:
    ready, root = tmp_path / "ready", tmp_path / "soak"
    interrupt_when(ready)
    waiting = WAITING.format(ready=str(ready))
    told = f"interrupted after 12 of 50 runs, 130 acknowledged records, {violations} violations"
    waiting += f"print({told!r}); exit(130)"
    assert soaked(root, 9, [GOOD, waiting], [GOOD_TESTS]) == code
    said = report(root)
    assert ", interrupted\n" in said and "0 failed campaigns and rounds" in said
    assert f"62 schedules (seeds 100 to 199), 730 acknowledged records, {violations}" in said


def test_a_test_that_had_failed_before_ctrl_c_counts(tmp_path: Path) -> None:
    ready, root = tmp_path / "ready", tmp_path / "soak"
    interrupt_when(ready)
    waiting = WAITING.format(ready=str(ready)) + "print('FAILED tests/x.py::test_kill'); exit(2)"
    assert soaked(root, 9, [GOOD], [waiting]) == 1
    assert "kill tests, round 1: interrupted; output: " in report(root)


def test_ctrl_c_while_a_command_starts_ends_that_command(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(subprocess.Popen[str]):
        def __init__(self, *args: Any, **settings: Any) -> None:
            super().__init__(*args, **settings)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    began = time.monotonic()
    with interrupts():
        step = run_step(["sleep", "60"])
    assert step.was_interrupted
    assert time.monotonic() - began < 30


def test_what_does_not_end_in_time_is_stopped_with_all_it_has_started() -> None:
    began = time.monotonic()
    step = run_step(["sh", "-c", "sleep 60 & sleep 60"], limit=0.2)
    assert (step.how, step.passed, step.was_interrupted) == ("stopped after 0 s", False, False)
    dying = "import os, subprocess; subprocess.Popen(['sleep', '60']); os.kill(os.getpid(), 9)"
    assert run_step(python(dying)).how == "died of signal 9"
    assert time.monotonic() - began < 30


# ---- what is asked for


@pytest.mark.parametrize("hours", ["0", "abc", "", "-1", "nan", "inf"])
def test_hours_that_are_no_positive_number_are_refused(
    hours: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([hours], tmp_path) == 2
    assert capsys.readouterr().err == f"HOURS must be a number above 0, not {hours!r}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", ["abc", "", "-1", "1.5", "²", "1" * 19])
def test_seeds_that_are_no_whole_number_are_refused(
    seed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["1", "--seed", seed], tmp_path) == 2
    said = capsys.readouterr().err
    assert said.startswith("SEED must be a whole number") and said.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["1", "--seed"], ["1", "2", "3"]])
def test_other_arguments_are_refused(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments, tmp_path) == 2
    assert capsys.readouterr().err.startswith("usage: ")


def test_a_folder_that_cannot_be_made_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "soak").write_text("")
    assert main(["1"], tmp_path / "soak") == 2
    assert "soak cannot be written: Not a directory\n" in capsys.readouterr().err


def test_without_a_seed_the_clock_gives_one_and_it_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = time.time_ns() // 1_000_000
    fakes = {"campaign": in_turn(GOOD), "kill_tests": in_turn(GOOD_TESTS), "clock": clock(1)}
    assert main(["0.5"], tmp_path, **fakes) == 0
    seed = int(capsys.readouterr().out.split("from seed ")[1].split()[0])
    assert before <= seed <= before + 60_000


def test_the_commands_are_those_of_this_tree(tmp_path: Path) -> None:
    assert campaign_command(FIRST, tmp_path)[3:] == [
        "run", str(SCHEDULES), "--seed", str(FIRST), "--out", str(tmp_path)
    ]  # fmt: skip
    assert all((ROOT / file).is_file() for file in KILL_TESTS)
    assert list(KILL_TESTS) == kill_command()[-len(KILL_TESTS) :]
    assert Soak(tmp_path, 1.0, FIRST).campaign is soak.campaign_command
