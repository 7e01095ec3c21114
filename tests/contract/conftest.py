"""Fixtures of the contract tests: one real ZooKeeper for the whole run, a chroot for each test."""

import itertools
from collections.abc import Iterator

import pytest
from barnabas_tools.local.zookeeper_server import (
    EmbeddedZooKeeper,
    JavaMissing,
    ZooKeeperMissing,
)

from tests.contract.zookeeper_servers import (
    Ensemble,
    LaggingEnsemble,
    MemoryEnsemble,
    RealEnsemble,
)

_chroots = itertools.count()


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    """One embedded server; tests that stop it start it again."""
    server = EmbeddedZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    try:
        server.start()
    except (JavaMissing, ZooKeeperMissing) as error:
        pytest.skip(str(error))
    yield server
    server.stop()


@pytest.fixture
def real_ensemble(zookeeper_server: EmbeddedZooKeeper) -> RealEnsemble:
    """The real ZooKeeper, for promises of its adapter alone."""
    return RealEnsemble(zookeeper_server, f"/test/{next(_chroots)}")


@pytest.fixture(params=["real", "memory", "lagging"])
async def ensemble(request: pytest.FixtureRequest) -> Ensemble:
    """The ZooKeeper that a contract test runs against; each test runs on all."""
    if request.param == "memory":
        return MemoryEnsemble()
    if request.param == "lagging":
        return LaggingEnsemble()
    server = request.getfixturevalue("zookeeper_server")
    return RealEnsemble(server, f"/test/{next(_chroots)}")
