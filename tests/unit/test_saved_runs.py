"""What a campaign finds is saved before it is shrunk, and printed if it cannot be saved."""

import errno
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from barnabas_simulator.campaign import many
from barnabas_simulator.campaign.cli import app
from barnabas_simulator.campaign.faults.faults import Fault
from barnabas_simulator.campaign.options import Options
from barnabas_simulator.campaign.plans.plan import plan
from barnabas_simulator.campaign.replay_file import Replay
from barnabas_simulator.campaign.saved_runs import SavedRuns
from barnabas_simulator.campaign.schedule import Outcome
from click.testing import Result
from typer.testing import CliRunner

BAD_SEEDS = (3, 5)
NEEDED = 2  # the faults without which no run fails


def fake_run(options: Options, faults: Sequence[Fault], tell: bool = False) -> Outcome:
    """A run of a bad seed fails as long as it has its first faults."""
    outcome = Outcome(options.seed, acked=10, trace=f"{options.seed}")
    first = plan(Options.draw(options.seed))[:NEEDED]
    if options.seed in BAD_SEEDS and set(first) <= set(faults):
        outcome.kind, outcome.violation = "I6", "I6 LogMatching\nbefore"
        outcome.short_story = ["what happened", "rule  I6"] if tell else []
    return outcome


@pytest.fixture(autouse=True)
def fake_schedules(monkeypatch: pytest.MonkeyPatch) -> None:
    def shrinks_with_it(kind: str) -> Callable[[Options, Sequence[Fault]], bool]:
        return lambda options, faults: fake_run(options, faults).kind == kind

    monkeypatch.setattr(many, "run_schedule", fake_run)
    monkeypatch.setattr(many, "fails_alike", shrinks_with_it)


def campaign(out: Path, count: int = 8) -> Result:
    return CliRunner().invoke(
        app, ["run", str(count), "--jobs", "1", "--mode", "safety", "--out", str(out)]
    )


def whole(seed: int) -> list[Fault]:
    return plan(Options.draw(seed))


def printed(output: str) -> list[Replay]:
    """The replays in an output, read as a user does who saves their lines as files."""
    found = []
    for number, line in enumerate(output.splitlines()):
        if line.startswith("{"):
            path = Path(f"line-{number}.json")
            path.write_text(line)
            found.append(Replay.load(path))
    return found


def test_each_failing_run_is_saved_whole_and_shrunk(tmp_path: Path) -> None:
    done = campaign(tmp_path)
    assert done.exit_code == 1
    for seed in BAD_SEEDS:
        saved = Replay.load(tmp_path / f"seed-{seed}.json")
        assert (list(saved.faults), saved.kind) == (whole(seed), "I6")
        shrunk = Replay.load(tmp_path / f"seed-{seed}-shrunk.json")
        assert list(shrunk.faults) == whole(seed)[:NEEDED] and shrunk.kind == "I6"
        assert (tmp_path / f"seed-{seed}-shrunk.story").read_text() == "what happened\nrule  I6\n"
    assert len(list(tmp_path.iterdir())) == 3 * len(BAD_SEEDS)


def test_a_death_while_shrinking_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(many, "shrink", die)
    done = campaign(tmp_path)
    assert isinstance(done.exception, MemoryError)
    for seed in BAD_SEEDS:
        assert list(Replay.load(tmp_path / f"seed-{seed}.json").faults) == whole(seed)


def test_a_run_that_does_not_fail_again_is_kept_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []

    def fails_once(options: Options, faults: Sequence[Fault], tell: bool = False) -> Outcome:
        runs.append(options.seed)
        outcome = fake_run(options, faults, tell)
        return outcome if runs.count(options.seed) == 1 else Outcome(options.seed)

    monkeypatch.setattr(many, "run_schedule", fails_once)
    done = campaign(tmp_path)
    assert done.exit_code == 1 and "NOT the same again" in done.output
    assert {path.name for path in tmp_path.iterdir()} == {"seed-3.json", "seed-5.json"}


def test_another_run_of_the_seed_has_a_name_of_its_own(tmp_path: Path) -> None:
    """The schedule of a seed changes with the plan, and what was found before stays."""
    saved = SavedRuns(tmp_path, print)
    first, second = Replay(Options(seed=3), []), Replay(Options(seed=3, brokers=5), [])
    (tmp_path / "seed-3-2.json").write_text("notes of a user")
    names = [saved.keep(one) for one in (first, second, first, second)]
    assert [path and path.name for path in names] == [
        "seed-3.json", "seed-3-3.json", "seed-3.json", "seed-3-3.json",
    ]  # fmt: skip
    assert (tmp_path / "seed-3-2.json").read_text() == "notes of a user"


# ---- the folder cannot be written


def a_file_in_its_place(folder: Path, _: pytest.MonkeyPatch) -> str:
    folder.write_text("")
    return "File exists"


def a_full_disk(_: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return failing_with(errno.ENOSPC, monkeypatch)


def a_read_only_disk(_: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return failing_with(errno.EROFS, monkeypatch)


def failing_with(number: int, monkeypatch: pytest.MonkeyPatch) -> str:
    write = Path.write_text

    def fail(path: Path, text: str, **options: str) -> int:
        if path.suffix != ".part":
            return write(path, text, **options)
        path.touch()
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr(Path, "write_text", fail)
    return os.strerror(number)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "simulations"


@pytest.mark.parametrize("plant", [a_file_in_its_place, a_full_disk, a_read_only_disk])
def test_what_cannot_be_saved_is_printed_and_the_campaign_goes_on(
    plant: Callable[[Path, pytest.MonkeyPatch], str],
    elsewhere: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    why = plant(elsewhere, monkeypatch)
    done = campaign(elsewhere)
    assert done.exit_code == 1 and "8 runs, 80 acknowledged records, 2 violations" in done.output
    assert done.stdout.count(f"cannot be written: {why}; to replay the run, save the next") == 4
    found = printed(done.stdout)
    assert [(one.options.seed, list(one.faults)) for one in found] == [
        (3, whole(3)), (5, whole(5)), (3, whole(3)[:NEEDED]), (5, whole(5)[:NEEDED]),
    ]  # fmt: skip
    assert {one.kind for one in found} == {"I6"}
    assert not elsewhere.is_dir() or list(elsewhere.iterdir()) == []


# ---- the campaign ends early


def test_an_interrupted_campaign_says_what_it_has_found_and_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ended(BaseException):
        pass

    def end(code: int) -> None:
        raise Ended(code)

    said: list[bytes] = []

    def interrupted(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(os, "write", lambda _, text: said.append(text))
    monkeypatch.setattr(many, "shrink", interrupted)
    with pytest.raises(Ended, match="130"):
        campaign(tmp_path)
    files = f"{tmp_path}/seed-3.json, {tmp_path}/seed-5.json"
    line = f"interrupted after 8 of 8 runs, 80 acknowledged records, 2 violations: {files}\n"
    assert said == [line.encode()]


def test_a_campaign_whose_process_dies_says_what_it_has_found_and_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(options: Options, faults: Sequence[Fault], tell: bool = False) -> Outcome:
        if options.seed == 4:
            raise EOFError
        return fake_run(options, faults, tell)

    monkeypatch.setattr(many, "run_schedule", dies)
    done = campaign(tmp_path)
    assert done.exit_code == 1
    said = "died after 4 of 8 runs, 40 acknowledged records, 1 violations: "
    assert f"{said}{tmp_path}/seed-3.json" in done.stderr
