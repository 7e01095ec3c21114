"""The embedded ZooKeeper server: it starts, stops, and fails with one line."""

import shutil
import socket
from pathlib import Path

import pytest
from barnabas_tools.local.errors import ClusterError
from barnabas_tools.local.ports import HOST
from barnabas_tools.local.zookeeper_server import (
    EmbeddedZooKeeper,
    JavaMissing,
    ZooKeeperMissing,
    find_java,
    is_serving,
    zookeeper_jars,
)

try:
    find_java()
    zookeeper_jars()
except (JavaMissing, ZooKeeperMissing) as error:
    pytest.skip(str(error), allow_module_level=True)


def test_a_missing_java_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(JavaMissing, match="install") as caught:
        EmbeddedZooKeeper(tmp_path / "zookeeper").start()
    assert "\n" not in str(caught.value)


def test_java_home_comes_before_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == str(java)


def test_it_stops_when_asked_and_starts_again(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(tmp_path / "zookeeper")
    assert not is_serving(server.port)
    for end in (server.stop, server.kill):
        server.start()
        assert is_serving(server.port)
        end()
        assert not server.member.running
        assert not is_serving(server.port)


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ClusterError, match=str(port)):
            EmbeddedZooKeeper(tmp_path / "zookeeper", port).start()


def test_a_server_that_dies_at_once_says_why(tmp_path: Path) -> None:
    """A file stands where its data folder should be."""
    server = EmbeddedZooKeeper(tmp_path / "zookeeper")
    server.start()
    server.stop()
    data = tmp_path / "zookeeper" / "data"
    shutil.rmtree(data)
    data.write_text("")
    with pytest.raises(ClusterError, match=r"zookeeper\.log") as caught:
        server.start()
    assert "\n" not in str(caught.value)
    assert not server.member.running
