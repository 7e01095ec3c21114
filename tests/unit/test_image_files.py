"""What the images are built from: the jars with their checksums, and the list of requirements."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

from barnabas_tools.local.zookeeper_server import zookeeper_jars

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "docker" / "zookeeper" / "jars.sha256"
FETCH = ROOT / "docker" / "zookeeper" / "fetch_jars.py"


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, command)], cwd=ROOT, capture_output=True, text=True, check=False
    )


def without_version(jar: str) -> str:
    return re.sub(r"-\d[\w.]*\.jar$", "", jar)


def test_the_image_has_the_jars_of_a_local_cluster() -> None:
    listed = [line.rpartition("/")[2] for line in LIST.read_text().splitlines()]
    local = [jar.name for jar in zookeeper_jars()]
    assert sorted(map(without_version, listed)) == sorted(map(without_version, local))


def test_a_jar_with_another_checksum_is_refused(tmp_path: Path) -> None:
    (tmp_path / "good.jar").write_bytes(b"good")
    (tmp_path / "bad.jar").write_bytes(b"bad")
    good = hashlib.sha256(b"good").hexdigest()
    listed = tmp_path / "list"
    listed.write_text(f"{good}  good.jar\n")
    done = run(FETCH, tmp_path.as_uri(), listed, tmp_path / "jars")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "jars" / "good.jar").read_bytes() == b"good"
    listed.write_text(f"{good}  bad.jar\n")
    done = run(FETCH, tmp_path.as_uri(), listed, tmp_path / "others")
    assert done.returncode == 1
    assert "bad.jar: its SHA-256 is" in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "others" / "bad.jar").exists()


def test_a_jar_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    listed = tmp_path / "list"
    listed.write_text(f"{'0' * 64}  none.jar\n")
    done = run(FETCH, tmp_path.as_uri(), listed, tmp_path / "jars")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1


def test_the_requirements_of_the_broker_are_those_of_the_project() -> None:
    done = run("docker/requirements.py", "broker")
    names = {re.split(r"[<>=;\[ ]", line)[0] for line in done.stdout.splitlines()}
    assert {"grpcio", "protobuf", "kazoo"} <= names
    assert "pyspark" not in names
    assert run("docker/requirements.py", "build").stdout.startswith("hatchling")
