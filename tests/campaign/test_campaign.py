"""Campaigns: schedules pass, one seed gives one run, a planted fault is found and shrunk."""

import os
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from barnabas_broker.replica.leader import leadership
from barnabas_broker.replica.leader.high_watermark import Progress
from barnabas_common.events import EventKind
from barnabas_common.topic_partition import TopicPartition
from barnabas_controller.store.leader_and_isr import LeaderAndIsr
from barnabas_simulator.campaign.cli import app
from barnabas_simulator.campaign.faults.faults import Fault, FaultKind
from barnabas_simulator.campaign.judge import states
from barnabas_simulator.campaign.judge.core import can_progress, choose_core
from barnabas_simulator.campaign.judge.coverage import MANY_RUNS, missing, wanted
from barnabas_simulator.campaign.judge.verdict import assert_delivered
from barnabas_simulator.campaign.many import Campaign, mode_of, run_many, run_seed
from barnabas_simulator.campaign.options import Mode, Options
from barnabas_simulator.campaign.plans.plan import plan
from barnabas_simulator.campaign.replay_file import Replay
from barnabas_simulator.campaign.schedule import run_schedule
from barnabas_simulator.campaign.shrink import fails_alike, shrink
from barnabas_simulator.campaign.state import PartitionState
from barnabas_simulator.campaign.worker import Worker
from barnabas_simulator.delivery import History
from typer.testing import CliRunner

REGRESSIONS = sorted((Path(__file__).parent / "regressions").glob("*.json"))


def test_ten_schedules_hold() -> None:
    campaign = Campaign()
    for outcome in run_many(range(1, 11), jobs=2):
        campaign.add(outcome)
    assert [(one.seed, one.violation) for one in campaign.failed] == []
    assert all(outcome.acked > 50 for outcome in campaign.outcomes)
    reached = [name for name in states.wanted() if campaign.counts[name]]
    assert len(reached) > len(states.wanted()) / 2


def three_times(number: int) -> int:
    if number == 7:
        raise ValueError("seven")
    if number == 8:
        os._exit(1)
    return 3 * number


def test_a_worker_has_the_results_in_order_whatever_its_process_has_done() -> None:
    worker = Worker(three_times, range(6), per_process=2)
    assert [worker.next() for _ in range(6)] == [0, 3, 6, 9, 12, 15]
    worker.end()


def test_a_worker_tells_what_its_process_has_raised_and_that_it_has_died() -> None:
    worker = Worker(three_times, [7, 8], per_process=2)
    with pytest.raises(ValueError, match="seven"):
        worker.next()
    with pytest.raises(EOFError):
        worker.next()
    worker.end()


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_what_once_failed_holds(path: Path) -> None:
    saved = Replay.load(path)
    assert run_schedule(saved.options, saved.faults).violation is None


# ---- one seed, one run


def traces(first: int, count: int, hash_seed: str) -> list[str]:
    result = subprocess.run(
        [sys.executable, "-m", "barnabas_simulator.campaign", "trace", str(first), str(count)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()[1::2]


def test_one_seed_is_one_run_under_any_hash_seed() -> None:
    seeds = (8, 9, 10)
    assert {mode_of(seed, None) for seed in seeds} == set(Mode)
    here = [run_seed(seed).trace for seed in seeds]
    assert traces(8, 3, "12345") == here
    assert len(set(here)) == 3


@pytest.mark.slow
def test_fifty_seeds_are_fifty_runs_under_any_hash_seed() -> None:
    assert traces(500, 50, "1") == traces(500, 50, "2")


# ---- a failed run is shrunk and saved


def test_delta_debugging_finds_the_few_faults_that_matter() -> None:
    faults = [Fault(float(n), FaultKind.KILL, str(n)) for n in range(30)]
    needed = {faults[4], faults[17], faults[29]}
    tried: list[int] = []

    def fails(_: Options, some: object) -> bool:
        tried.append(1)
        return needed <= set(some)  # type: ignore[call-overload]

    options, few = shrink(Options(seed=1, consumers=2), faults, fails)
    assert set(few) == needed
    assert (options.consumers, options.has_admin) == (1, False)
    assert len(tried) <= 150


def _commit_alone(patch: pytest.MonkeyPatch) -> None:
    """Plant the fault that the high watermark follows the leader's own log end."""

    def wrong(progress: Progress) -> int:
        return max(progress.high_watermark, progress.end_offset)

    patch.setattr(leadership, "next_high_watermark", wrong)


def test_a_planted_fault_is_found_and_shrinks_to_the_fault_that_shows_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Records are acknowledged too early, which shows only when the leader loses its log's end."""
    options = Options(seed=3, chaos_seconds=20.0, producers=1, has_admin=False, pause=0.1)
    quiet = [Fault(n * 0.5, FaultKind.LOSE_ANSWER, "follower") for n in range(10)]
    quiet += [Fault(5 + n * 0.5, FaultKind.RESET, "2", "3") for n in range(9)]
    telling = [Fault(10 + n * 0.2, FaultKind.SLOW, "leader", seconds=2.0) for n in range(5)]
    telling += [Fault(11.5 + n, FaultKind.KILL, "leader", seconds=3.0) for n in range(6)]
    faults = quiet + telling
    assert len(faults) == 30
    assert run_schedule(options, faults).violation is None
    _commit_alone(monkeypatch)
    outcome = run_schedule(options, faults)
    assert outcome.violation is not None
    small, few = shrink(options, faults, fails_alike(outcome.kind), max_runs=60)
    assert len(few) <= 3
    shown = run_schedule(small, few, tell=True)
    assert shown.kind == outcome.kind
    assert any("became-leader" in line for line in shown.story)
    assert len(shown.short_story) <= 40
    assert any(line.startswith(f"rule         {shown.kind} ") for line in shown.short_story)
    path = tmp_path / "found.json"
    Replay(small, few, shown.kind, shown.violation or "").save(path)
    again = Replay.load(path)
    assert (again.options, list(again.faults)) == (small, few)
    assert run_schedule(again.options, again.faults).trace == shown.trace


def test_a_killed_producer_owes_what_it_was_told_and_its_next_incarnation_goes_on() -> None:
    faults = [
        Fault(2.0 * n, FaultKind.KILL_CLIENT, f"producer-{n % 2}", seconds=1.5) for n in range(8)
    ]
    faults.insert(4, Fault(6.5, FaultKind.SLOW, "leader", seconds=8.0))
    options = Options(seed=2, chaos_seconds=20.0, producers=2, has_admin=False, pause=0.05)
    outcome = run_schedule(options, faults, tell=True)
    assert outcome.violation is None
    assert outcome.counts["fault: kill-client"] == 8
    assert outcome.counts["fault: slow"] == 1


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        (FaultKind.REJECT, [EventKind.BROKER_SUSPECTED, EventKind.REGISTERED_ANEW]),
        (FaultKind.LOSE_FOLDER, [EventKind.REPLICA_LOST]),
        (FaultKind.SPOIL_CHECKPOINT, [EventKind.CHECKPOINT_DAMAGED]),
        (FaultKind.SPOIL_SETTINGS, [EventKind.ZNODE_MALFORMED, EventKind.CONFIG_REFUSED]),
    ],
)
def test_a_fault_shows_in_what_the_brokers_tell(kind: FaultKind, seen: list[EventKind]) -> None:
    faults = [Fault(4.0 * n, kind, "follower", seconds=2.0) for n in range(5)]
    outcome = run_schedule(Options(seed=4, chaos_seconds=20.0, has_admin=False), faults)
    assert outcome.violation is None
    assert [event for event in seen if not outcome.counts[f"event: {event}"]] == []


def test_every_life_of_a_producer_is_judged() -> None:
    """Unacknowledged records may be there or not; acknowledged ones must be."""
    tp = TopicPartition("flights", 0)
    dead = History(sent=[b"p/0", b"p/1", b"p/2"], acked={b"p/0": 0})
    histories = {"p": {tp: dead}, "p.2": {tp: History(sent=[b"p.2/0"])}}
    for rest in ([b"p/1", b"p.2/0"], [b"p.2/0", b"p/1"], [b"p/2"], []):
        records = list(enumerate([b"p/0", *rest]))
        assert_delivered(histories, {tp: {}}, {tp: records})
    with pytest.raises(AssertionError, match="lost"):
        assert_delivered(histories, {tp: {}}, {tp: [(0, b"p/1"), (1, b"p.2/0")]})
    with pytest.raises(AssertionError, match="nothing of .'q'. was acknowledged"):
        silent = {"q": {tp: History(sent=[b"q/0"])}, "q.2": {tp: History()}}
        assert_delivered(histories | silent, {tp: {}}, {tp: [(0, b"p/0")]})
    with pytest.raises(AssertionError, match="reordered"):
        assert_delivered(histories, {tp: {}}, {tp: list(enumerate([b"p/0", b"p/2", b"p/1"]))})
    twice = {tp: list(enumerate([b"p/0", b"p/1", b"p/1"]))}
    assert_delivered(histories, {tp: {}}, twice, once=False)
    with pytest.raises(AssertionError, match="repeated"):
        assert_delivered(histories, {tp: {}}, twice)


def test_a_replay_tells_its_story(tmp_path: Path) -> None:
    path = tmp_path / "calm.json"
    options = Options(seed=1, chaos_seconds=5.0, has_admin=False)
    Replay(options, [Fault(1.0, FaultKind.KILL, "leader", seconds=1.0)]).save(path)
    result = CliRunner().invoke(app, ["replay", str(path)])
    assert result.exit_code == 0, result.output
    for expected in ("*** kill leader", "flights-0 leader-elected", "no violation"):
        assert expected in result.output


# ---- plain functions


@pytest.mark.parametrize("mode", Mode)
def test_options_and_faults_travel_as_json(mode: Mode) -> None:
    for seed in range(50):
        options = Options.draw(seed, mode)
        assert Options.from_json(options.to_json()) == options
        for fault in plan(options):
            assert 0 <= fault.at <= options.chaos_seconds
            assert Fault.from_json(fault.to_json()) == fault


def test_a_campaign_tells_what_never_happened() -> None:
    counts = Counter(dict.fromkeys(wanted(MANY_RUNS), 3))
    assert missing(counts, MANY_RUNS) == []
    absent = ["fault: ring", "event: log-not-compacted", "event: transaction-markers-refused"]
    for name in absent:
        del counts[name]
    assert missing(counts) == ["fault: ring"]
    assert missing(counts, MANY_RUNS) == absent


def found(isr: tuple[int, ...], replicas: tuple[int, ...]) -> PartitionState:
    return PartitionState(LeaderAndIsr(isr[0], 1, isr, 1), replicas)


def test_a_core_has_enough_answers_where_the_state_is_older_than_the_replicas() -> None:
    older = replace(found((1, 2, 3, 4), (1, 2, 3, 4)), is_older=True)
    assert can_progress([1, 2, 3], [older], 2)
    assert not can_progress([1, 2], [older], 2), "an acknowledged record may be on 3 and 4 only"
    assert not can_progress([1, 2, 3], [replace(older, may_lack=(1,))], 2)
    assert can_progress([1, 2, 3, 4], [replace(older, may_lack=(1,))], 2)


def test_a_core_has_an_in_sync_replica_and_enough_replicas_of_each_partition() -> None:
    partitions = [found((3,), (1, 2, 3)), found((4, 1), (4, 1, 2))]
    assert can_progress([1, 2, 3], partitions, 2)
    assert not can_progress([1, 2], partitions, 2)
    assert not can_progress([3, 4], partitions, 2)
    core = choose_core([1, 2, 3, 4], partitions, 2, random.Random(1))
    assert len(core) == 3
    assert can_progress(core, partitions, 2)
    assert choose_core([1, 2], [found((1,), (1, 2))], 2, random.Random(1)) == [1, 2]
