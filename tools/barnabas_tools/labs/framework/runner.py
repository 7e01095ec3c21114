"""Runs one lab: a new cluster, the scenario, the outcome; nothing is left behind."""

import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from barnabas_common.errors import BarnabasError
from barnabas_common.runtime.event_loop import run_program

from barnabas_tools.labs.framework.event_printer import EventPrinter
from barnabas_tools.labs.framework.lab import Lab
from barnabas_tools.labs.framework.outcome import Outcome
from barnabas_tools.labs.framework.stage import PATIENCE_SECONDS, LabCluster, ScenarioBroken
from barnabas_tools.local.cluster import LocalCluster
from barnabas_tools.local.layout import pause_directory
from barnabas_tools.local.process import uninterrupted

# A lab takes a few seconds, so a dead broker's session must end soon, and a slow follower must
# leave the ISR soon.
FAST = {
    "zookeeper.session.timeout.ms": "2000",
    "replica.lag.time.max.ms": "2000",
    "replica.high.watermark.checkpoint.interval.ms": "500",
}


def run_lab(
    lab: Lab,
    tell: Callable[[str], None],
    config: Mapping[str, str] | None = None,
    patience: float = PATIENCE_SECONDS,
) -> Outcome:
    """Play a lab's scenario on a new cluster; returns the outcome.

    `config` overrides its settings, those of its programs too; `patience` is how many seconds to
    wait for a condition.
    """
    given = dict(config or {})
    programs = {name: given.pop(name, value) for name, value in lab.application.items()}
    began = time.monotonic()
    logging.getLogger("barnabas").addHandler(logging.NullHandler())  # `tell` reports instead
    settings = FAST | dict(lab.config) | given
    with _temporary_folder(lab.name) as folder:
        if lab.pause_points:
            settings["pause.directory"] = str(pause_directory(folder))
        cluster = LocalCluster(folder, brokers=lab.brokers, config=settings)
        with cluster:
            stage, broken = run_program(_play(lab, cluster, programs, tell, patience))
    return Outcome(lab.name, tuple(stage.checks), time.monotonic() - began, broken)


@contextmanager
def _temporary_folder(name: str) -> Iterator[Path]:
    """As `tempfile.TemporaryDirectory`, but a second Ctrl-C does not leave half of it."""
    folder = Path(tempfile.mkdtemp(prefix=f"barnabas-lab-{name}-"))
    try:
        yield folder
    finally:
        with uninterrupted():
            shutil.rmtree(folder)


async def _play(
    lab: Lab,
    cluster: LocalCluster,
    programs: Mapping[str, str],
    tell: Callable[[str], None],
    patience: float,
) -> tuple[LabCluster, str | None]:
    async with (
        EventPrinter(cluster.bootstrap, tell) as printer,
        LabCluster(cluster, tell, printer.catch_up, patience, programs) as stage,
    ):
        try:
            await lab.scenario(stage)
        except ScenarioBroken as broken:
            return stage, str(broken)
        except (BarnabasError, TimeoutError) as error:
            return stage, f"{type(error).__name__}: {error}"
        return stage, None
