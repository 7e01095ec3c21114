"""One run: a cluster, its clients, faults, the final read, the outcome."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

from barnabas.sync import Admin
from barnabas_common.errors import BarnabasError
from barnabas_common.history.files import HistoryWriter, history_files, read_files
from barnabas_common.history.recorder import Recorder

from barnabas_tools.chaos.faults.compose_cluster import BOOTSTRAP, wait_until
from barnabas_tools.chaos.faults.errors import FaultError
from barnabas_tools.chaos.faults.toolbox import Toolbox
from barnabas_tools.chaos.report.report import Report, report
from barnabas_tools.chaos.run.client_processes import ClientProcesses, as_sets
from barnabas_tools.chaos.run.environment import compose_cluster
from barnabas_tools.chaos.run.menu import Scene
from barnabas_tools.chaos.run.nemesis import Nemesis, Tally
from barnabas_tools.chaos.run.profiles import PROFILES, Workload
from barnabas_tools.chaos.run.verdict import Verdict

_BOOTSTRAP = ",".join(BOOTSTRAP)
_FIRST_SECONDS = 60.0
_NEMESIS = "nemesis"
_CLIENT_OPTIONS = {"metadata_max_age_ms": "2000"}


@dataclass(frozen=True)
class Options:
    """`faults`: kinds with weights, or those of the profile; `rate`: records a second of each
    workload; `within`: seconds of the final read."""

    folder: Path
    checkout: Path = Path()
    profile: str = "safe"
    minutes: float = 2.0
    seed: int = 1
    faults: Mapping[str, int] | None = None
    rate: float = 500.0
    within: float = 60.0
    build: bool = True
    project: str = "barnabas-chaos"


def run(options: Options, tell: Callable[[str], None]) -> Verdict:
    """Run and judge. Raises FaultError if there is nothing to run on."""
    profile = PROFILES[options.profile]
    options.folder.mkdir(parents=True, exist_ok=True)
    verdict = Verdict(options.profile, options.seed, options.minutes, Tally())
    with (
        compose_cluster(
            options.project, options.checkout, profile.brokers, options.folder, options.build
        ) as cluster,
        ExitStack() as ends,
    ):
        clients = ClientProcesses(_BOOTSTRAP)
        ends.callback(clients.end)
        _create_topics(profile.workloads)
        for workload in profile.workloads:
            _start_clients(clients, workload, options)
        recorders = [_recorder(options.folder / each.name, ends) for each in profile.workloads]
        for workload in profile.workloads:
            _wait_for_the_first_record(options.folder / workload.name, workload)
        topics = tuple(each.name for each in profile.workloads)
        scene = Scene(cluster, Toolbox(cluster), clients, topics, Random(options.seed))
        nemesis = Nemesis(scene, options.faults or profile.faults, recorders, tell)
        verdict.tally = nemesis.tally
        try:
            nemesis.run(options.minutes * 60)
            clients.stop()
            for workload in profile.workloads:
                clients.judge(options.folder / workload.name, workload.name, options.within)
        except FaultError as error:
            verdict.trouble = str(error)
            tell(f"trouble: {error}")
    verdict.reports = {each.name: _judged(options, each) for each in profile.workloads}
    verdict.write(options.folder, profile)
    return verdict


def _create_topics(workloads: tuple[Workload, ...]) -> None:
    try:
        with Admin(bootstrap_servers=_BOOTSTRAP) as admin:
            for each in workloads:
                admin.create_topic(each.name, each.partitions, 3, configs=dict(each.topic))
    except BarnabasError as error:
        raise FaultError(f"the topics cannot be created: {error}") from None


def _start_clients(clients: ClientProcesses, workload: Workload, options: Options) -> None:
    folder = options.folder / workload.name
    folder.mkdir(exist_ok=True)
    for number in range(1, workload.producers + 1):
        sets = as_sets({**_CLIENT_OPTIONS, "retry_backoff_ms": "50", **workload.producer})
        rate = ("--rate", f"{options.rate / workload.producers:g}")
        name = f"{workload.name}-producer-{number}"
        clients.add(workload.producer_role, name, folder, workload.name, *rate, *sets)
    sets = as_sets({**_CLIENT_OPTIONS, **workload.consumer})
    for number in range(1, workload.members + 1):
        group = ("--group", f"{workload.name}-group")
        name = f"{workload.name}-member-{number}"
        clients.add("member", name, folder, workload.name, *group, *sets)
    clients.add("reader", f"{workload.name}-reader", folder, workload.name, *sets)
    clients.add("observer", f"{workload.name}-observer", folder, workload.name)


def _recorder(folder: Path, ends: ExitStack) -> Recorder:
    writer = ends.enter_context(HistoryWriter(folder / f"{_NEMESIS}.1.jsonl"))
    return Recorder(writer.write, time.monotonic_ns, _NEMESIS)


def _wait_for_the_first_record(folder: Path, workload: Workload) -> None:
    def has_acknowledged() -> bool:
        return any(b'"ok"' in path.read_bytes() for path in folder.glob("*-producer-*.jsonl"))

    wait_until(f"{workload.name} has its first record", has_acknowledged, _FIRST_SECONDS)


def _judged(options: Options, workload: Workload) -> Report:
    title = f"{options.profile}/{workload.name}, seed {options.seed}, {options.minutes:g} minutes"
    files = history_files(options.folder / workload.name)
    return report(title, read_files(files), workload.promise)
