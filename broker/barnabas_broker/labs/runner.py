"""Runs one lab: a cluster of its own, the scenario, the verdict; nothing is left behind."""

import asyncio
import logging
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from barnabas.errors import BarnabasError

from barnabas_broker.labs.event_teller import EventTeller
from barnabas_broker.labs.lab import Lab, Outcome
from barnabas_broker.labs.stage import PATIENCE_SECONDS, ScenarioBroken, Stage
from barnabas_broker.local.cluster import LocalCluster
from barnabas_broker.local.layout import pause_directory

# Everything happens in a lab's few seconds: a dead broker's session ends soon, and so does the
# patience with a slow follower.
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
    """Play a lab's scenario on a new cluster and judge it.

    `config` overrides its settings; `patience` is how many seconds to wait for what must come.
    """
    began = time.monotonic()
    logging.getLogger("barnabas").addHandler(logging.NullHandler())  # the story is told by `tell`
    settings = FAST | dict(lab.config) | dict(config or {})
    with tempfile.TemporaryDirectory(prefix=f"barnabas-lab-{lab.name}-") as folder:
        if lab.pause_points:
            settings["pause.directory"] = str(pause_directory(Path(folder)))
        cluster = LocalCluster(Path(folder), brokers=lab.brokers, config=settings)
        with cluster:
            stage, broken = asyncio.run(_play(lab, cluster, tell, patience))
    return Outcome(lab.name, tuple(stage.checks), time.monotonic() - began, broken)


async def _play(
    lab: Lab, cluster: LocalCluster, tell: Callable[[str], None], patience: float
) -> tuple[Stage, str | None]:
    async with (
        EventTeller(cluster.bootstrap, tell) as teller,
        Stage(cluster, tell, teller.catch_up, patience) as stage,
    ):
        try:
            await lab.scenario(stage)
        except ScenarioBroken as broken:
            return stage, str(broken)
        except (BarnabasError, TimeoutError) as error:
            return stage, f"{type(error).__name__}: {error}"
        return stage, None
