"""The commands of the README's section on containers, as printed, on a fresh checkout."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from barnabas_tools.chaos.faults.compose_cluster import ComposeCluster, compose_command

from tests.support.compose import PLAIN, PROJECT, ROOT, remove, require_docker

pytestmark = pytest.mark.docker

SECTION = "### In containers"


def commands() -> list[str]:
    """Return the lines of the section's first block."""
    text = (ROOT / "README.md").read_text().partition(SECTION)[2]
    block = re.search(r"^```\n(.*?)^```", text, re.M | re.S)
    assert block is not None
    return block[1].splitlines()


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """A copy of the files that are under version control, and no containers, volumes or images."""
    require_docker()
    kept = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    names = subprocess.run(kept, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, names.split("\0")):
        source, target = ROOT / name, tmp_path / name
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
            target.chmod(source.stat().st_mode)
    cluster = ComposeCluster(PROJECT, tmp_path, PLAIN)
    remove(cluster)
    # The layers stay, or each run would download everything again.
    images = ("barnabas-broker", "barnabas-zookeeper")
    subprocess.run(["docker", "image", "rm", "--no-prune", *images], capture_output=True)
    yield tmp_path
    remove(cluster)


def test_the_first_command_alone_starts_the_cluster() -> None:
    assert commands()[0].startswith("docker-compose up -d ")
    assert "docker compose up -d" in commands()[0], "the other command is named beside it"


def test_the_commands_work_as_printed(checkout: Path) -> None:
    script = "\n".join(["set -eux", *commands()])
    script = script.replace("docker-compose ", " ".join(compose_command()) + " ")
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=checkout,
        env=os.environ | {"COMPOSE_PROJECT_NAME": PROJECT},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "hello" in done.stdout.splitlines()
