"""Runs of chaos: what is drawn, what is recorded of a fault, what a run must show to be good."""

import itertools
import json
import signal
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from barnabas_common.history.operations import Fault, Operation, Stage
from barnabas_common.history.promise import PROFILES as PROMISES
from barnabas_common.history.recorder import Recorder
from barnabas_tools.chaos.faults.compose_cluster import wait_until
from barnabas_tools.chaos.faults.errors import FaultError, NotInEffect
from barnabas_tools.chaos.report.report import report
from barnabas_tools.chaos.run import client_processes
from barnabas_tools.chaos.run import nemesis as nemesis_module
from barnabas_tools.chaos.run.__main__ import main
from barnabas_tools.chaos.run.client_processes import ClientKilled, ClientProcesses
from barnabas_tools.chaos.run.menu import MENU, Kind, Scene, parse_mix
from barnabas_tools.chaos.run.nemesis import Nemesis, Tally
from barnabas_tools.chaos.run.profiles import PROFILES
from barnabas_tools.chaos.run.verdict import Verdict

from tests.support.history_cases import Story


def test_every_kind_of_fault_is_in_a_profile_and_the_other_way_round() -> None:
    assert {kind for profile in PROFILES.values() for kind in profile.faults} == set(MENU)


def test_a_mix_is_parsed() -> None:
    assert parse_mix("kill=3, pause,wipe=0") == {"kill": 3, "pause": 1, "wipe": 0}


@pytest.mark.parametrize(
    ("text", "why"),
    [("fire", "no fault is called 'fire'"), ("kill=x", "'x', not a number"), ("kill=0", "is 0")],
)
def test_a_mix_that_is_none_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_mix(text)


def test_a_folder_with_a_run_is_not_written_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report.json").touch()
    assert main(["--folder", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_a_folder_that_is_no_checkout_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--folder", str(tmp_path / "run"), "--checkout", str(tmp_path)]) == 2
    assert "there is no docker-compose.yml in" in capsys.readouterr().err


# ---- one fault after the other


class Cluster:
    """As the nemesis sees it."""

    def __init__(self) -> None:
        self.whole = True

    def in_sync(self) -> bool:
        return self.whole


class Planned:
    """A fault that does as it is told."""

    name = "planned"

    def __init__(self, cluster: Cluster, fails: str = "") -> None:
        self.cluster = cluster
        self.fails = fails
        self.healed = False

    def inject(self) -> None:
        self.cluster.whole = False
        if self.fails == "inject":
            raise FaultError("cannot be injected")

    def verify(self) -> str:
        if self.fails == "verify":
            raise NotInEffect("is not in effect")
        return "seen"

    def heal(self) -> None:
        self.healed = True
        self.cluster.whole = self.fails != "heal"


def run_one(fails: str) -> tuple[Nemesis, Planned, list[Operation]]:
    told: list[Operation] = []
    cluster = Cluster()
    clients = ClientProcesses("none")
    scene = Scene(cast(Any, cluster), cast(Any, None), clients, ("t",), Random(1))
    times = itertools.count()
    recorder = Recorder(told.append, lambda: next(times), "nemesis")
    nemesis = Nemesis(scene, {"planned": 1}, [recorder], lambda text: None)
    fault = Planned(cluster, fails)
    nemesis.inject("planned", Kind(lambda scene: fault, (0.0, 0.0)))
    return nemesis, fault, told


def test_a_fault_is_counted_recorded_and_healed() -> None:
    nemesis, fault, told = run_one("")
    assert nemesis.tally.counts == {"planned": 1}
    assert fault.healed
    assert [(type(each), each.stage) for each in told] == [
        (Fault, Stage.INVOKE),
        (Fault, Stage.OK),
    ]


@pytest.mark.parametrize("fails", ["inject", "verify"])
def test_a_fault_without_effect_is_healed_and_not_counted(fails: str) -> None:
    nemesis, fault, told = run_one(fails)
    assert nemesis.tally.counts == {}
    assert len(nemesis.tally.not_in_effect) == 1
    assert fault.healed
    assert told[-1].stage is Stage.INFO and "planned: " in told[-1].error


def test_a_cluster_that_does_not_become_whole_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nemesis_module, "WHOLE_SECONDS", 0.0)
    with pytest.raises(FaultError, match="every replica is in sync after planned"):
        run_one("heal")


# ---- clients


def test_a_client_is_killed_and_comes_back_as_its_next_incarnation(tmp_path: Path) -> None:
    clients = ClientProcesses("localhost:1")
    try:
        clients.add("producer", "p", tmp_path, "t")
        fault = ClientKilled(clients, "p")
        with pytest.raises(NotInEffect):
            fault.verify()
        fault.inject()
        assert fault.verify() == "p exited with -9"
        fault.heal()
        assert clients.exit_code("p") is None
    finally:
        clients.end()


def test_a_client_that_is_stopped_before_it_has_begun_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It stays as it is before its program runs: SIGTERM is not handled yet.
    monkeypatch.setattr(client_processes, "_NICE", ("sh", "-c", "exec sleep 60"))
    clients = ClientProcesses("localhost:1")
    clients.add("producer", "p", tmp_path, "t")
    clients.stop()
    assert clients.exit_code("p") == -signal.SIGTERM


def test_a_client_that_ends_by_itself_is_named(tmp_path: Path) -> None:
    clients = ClientProcesses("localhost:1")
    try:
        clients.add("producer", "p", tmp_path, "t", "--no-such-option")
        wait_until("it has ended", lambda: clients.exit_code("p") is not None, 60)
        with pytest.raises(FaultError, match="client p ended by itself with 2: .*no-such-option"):
            clients.check()
    finally:
        clients.end()


# ---- the verdict


def clean() -> Story:
    story = Story()
    story.sent("a", "b")
    story.final((0, "a"), (1, "b"), end=2)
    return story


def with_loss() -> Story:
    story = Story()
    story.sent("a", "b")
    story.final((1, "b"), end=2)
    return story


def of_a_foreign_record() -> Story:
    story = with_loss()
    story.poll((2, "never sent"))
    return story


def unread() -> Story:
    story = Story()
    story.sent("a")
    return story


def verdict(profile: str, story: Story, faults: int = 1, trouble: str = "") -> Verdict:
    workload = PROFILES[profile].workloads[0]
    made = report(profile, story.operations, workload.promise)
    tally = Tally()
    tally.counts["kill"] += faults
    return Verdict(profile, 1, 2.0, tally, {workload.name: made}, trouble)


@pytest.mark.parametrize(
    ("profile", "story", "outcome"),
    [
        ("safe", clean(), "the promise was kept"),
        ("safe", with_loss(), "the promise was broken"),
        ("safe", unread(), "the promise was broken"),
        ("acks1", with_loss(), "the control shows what it must"),
        ("acks1", clean(), "the control shows nothing"),
        ("acks1", of_a_foreign_record(), "the promise was broken"),
        ("acks1", unread(), "not everything could be read"),
        ("no-idempotence", with_loss(), "the promise was broken"),
    ],
)
def test_what_a_history_shows(profile: str, story: Story, outcome: str) -> None:
    found = verdict(profile, story)
    assert found.outcome(PROFILES[profile]) == outcome
    good = outcome in ("the promise was kept", "the control shows what it must")
    assert found.good(PROFILES[profile]) is good


def test_without_a_fault_or_with_trouble_a_run_proves_nothing() -> None:
    safe = PROFILES["safe"]
    for found in (
        verdict("safe", clean(), faults=0),
        verdict("safe", clean(), trouble="not whole"),
        Verdict("safe", 1, 2.0, Tally(), {}),
    ):
        assert not found.good(safe)
        assert found.outcome(safe) == "the run proves nothing"


def test_a_verdict_is_written(tmp_path: Path) -> None:
    for name in ("idempotent", "plain"):
        (tmp_path / name).mkdir()
    found = verdict("safe", with_loss())
    found.write(tmp_path, PROFILES["safe"])
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["good"] is False
    assert content["faults"]["counts"] == {"kill": 1}
    assert content["workloads"]["idempotent"]["anomalies"]["lost-write"]["count"] == 1
    assert 'href="idempotent/report.html"' in (tmp_path / "report.html").read_text()
    assert (tmp_path / "idempotent" / "report.html").exists()


def test_a_control_permits_what_it_shows() -> None:
    for profile in PROFILES.values():
        for workload in profile.workloads:
            assert profile.shows <= workload.promise.permitted() | PROMISES["safe"].permitted()
