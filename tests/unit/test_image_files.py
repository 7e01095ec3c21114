"""What the images are built from: the jars, and the list of requirements."""

import re
import subprocess
import sys
from pathlib import Path

from barnabas_tools.local.zookeeper_server import zookeeper_jars

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, command)], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_the_image_has_the_jars_of_a_local_cluster() -> None:
    copied = set(re.findall(r"([\w-]+)\.jar\b", (ROOT / "Dockerfile").read_text()))
    local = {re.sub(r"-\d[\w.]*$", "", jar.stem) for jar in zookeeper_jars()}
    assert copied - {"slf4j-simple"} == {name for name in local if not name.startswith("log4j")}


def test_the_images_are_built_from_what_package_managers_find() -> None:
    files = [ROOT / "Dockerfile", ROOT / "docker-compose.yml", *(ROOT / "docker").rglob("*.*")]
    assert not [file for file in files if re.search(r"https?://", file.read_text())]


def test_the_requirements_of_the_broker_are_those_of_the_project() -> None:
    done = run("docker/requirements.py", "broker")
    names = {re.split(r"[<>=;\[ ]", line)[0] for line in done.stdout.splitlines()}
    assert {"grpcio", "protobuf", "kazoo"} <= names
    assert "pyspark" not in names
    assert run("docker/requirements.py", "build").stdout.startswith("hatchling")
