"""The Python of the README works as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from barnabas.sync import Admin
from barnabas_tools.local.cluster import LocalCluster

pytestmark = pytest.mark.integration

README = Path(__file__).parents[2] / "README.md"
ADDRESS = "localhost:9092"


def snippet() -> str:
    """Return the first block of Python, which uses the ports of the README."""
    (first, *_) = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S)
    return first


def test_the_snippet_is_short() -> None:
    assert len([line for line in snippet().splitlines() if line]) <= 12


def test_the_snippet_runs(cluster: LocalCluster) -> None:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topic("flights", 6, 3)
    code = snippet()
    assert ADDRESS in code
    done = subprocess.run(
        [sys.executable, "-c", code.replace(ADDRESS, cluster.bootstrap)],
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    sent, received = done.stdout.splitlines()
    assert "flights" in sent
    assert "b'hello'" in received
