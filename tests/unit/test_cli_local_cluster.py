"""The parts of a local cluster: processes, ports, layout, configuration."""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from barnabas_broker.config.config import Config
from barnabas_broker.config.key import InvalidConfig
from barnabas_broker.config.properties import parse_properties
from barnabas_common.messages.metadata import BrokerInfo, MetadataResponse
from barnabas_tools.cli.cluster.cluster import directory_option
from barnabas_tools.cli.cluster.run_broker import properties_from_environment, properties_from_file
from barnabas_tools.local.cluster import LOCK_FILE, LocalCluster
from barnabas_tools.local.errors import ClusterError
from barnabas_tools.local.layout import load_layout, new_layout
from barnabas_tools.local.lock import exclusive
from barnabas_tools.local.log_tail import follow_file, last_lines
from barnabas_tools.local.member import Member
from barnabas_tools.local.ports import free_ports, is_taken
from barnabas_tools.local.process import ProcessRecord, spawn
from barnabas_tools.local.readiness import reason_not_serving

SLEEPER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]


def test_an_impatient_second_interrupt_does_not_keep_a_cluster_from_being_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every process of the cluster has an end, whatever comes in between."""
    cluster = LocalCluster(tmp_path / "c", brokers=2)
    members = [cluster.broker(1), cluster.broker(2)]
    for member in members:
        member.directory.mkdir(parents=True)
        spawn(SLEEPER, member.log_file, member.directory / "process.json")
    monkeypatch.setattr(cluster, "start", lambda: None)
    handlers = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    kill = ProcessRecord.signal

    def interrupted_kill(process: ProcessRecord, number: int) -> bool:
        signal.raise_signal(signal.SIGINT)
        return kill(process, number)

    monkeypatch.setattr(ProcessRecord, "signal", interrupted_kill)
    with pytest.raises(KeyboardInterrupt), cluster:
        raise KeyboardInterrupt
    assert not any(member.running for member in members)
    assert {number: signal.getsignal(number) for number in handlers} == handlers


@pytest.mark.parametrize("name", ["broker.id", "listeners", "log.dirs", "zookeeper.connect"])
def test_a_setting_that_each_broker_has_its_own_value_of_cannot_be_set(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(ClusterError, match=name):
        LocalCluster(tmp_path, config={name: "1"})


@pytest.mark.parametrize("inside", ["", "inside"])
def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path, inside: str) -> None:
    (tmp_path / "file").touch()
    cluster = LocalCluster(tmp_path / "file" / inside)
    assert not cluster.complete
    with pytest.raises(ClusterError, match="file.* cannot be created: (Not a|File exists)"):
        cluster.start()


@pytest.fixture
def member(tmp_path: Path) -> Member:
    return Member("broker 9", tmp_path, tmp_path / "log", (free_ports(1)[0],))


def test_a_process_is_found_again_by_its_record_and_dies_when_told(tmp_path: Path) -> None:
    process = spawn(SLEEPER, tmp_path / "log", tmp_path / "record")
    assert ProcessRecord.load(tmp_path / "record") == process
    assert process.alive
    assert os.getsid(process.pid) == process.pid, "a Ctrl-C in the terminal must not reach it"
    assert process.terminate(10.0)
    assert not process.alive


def test_a_stranger_with_the_recorded_pid_is_never_signalled(tmp_path: Path) -> None:
    stranger = spawn(SLEEPER, tmp_path / "log", tmp_path / "record")
    stale = ProcessRecord(stranger.pid, "another boot: another tick")
    assert not stale.alive
    assert not stale.signal(9)
    stale.kill()
    assert stranger.alive
    stranger.kill()


def test_a_paused_process_does_nothing_any_more(tmp_path: Path) -> None:
    written = tmp_path / "written"
    code = f"""
import threading
file = open({str(written)!r}, "ab", buffering=0)
def write():
    while True:
        file.write(b"x")
for _ in range(8):
    threading.Thread(target=write).start()
"""
    process = spawn([sys.executable, "-c", code], tmp_path / "log", tmp_path / "record")
    try:
        while not written.exists() or written.stat().st_size < 10_000:
            assert process.alive
        for _ in range(5):
            process.pause()
            size = written.stat().st_size
            assert not process.wait(0.1)
            assert written.stat().st_size == size
            process.signal(signal.SIGCONT)
    finally:
        process.kill()


def test_a_zombie_does_not_count_as_alive(tmp_path: Path) -> None:
    process = spawn([sys.executable, "-c", ""], tmp_path / "log", tmp_path / "record")
    assert process.wait(10.0)


def test_a_killed_process_has_let_go_of_its_port(member: Member) -> None:
    port = member.ports[0]
    code = f"""
import socket, threading, time
held = socket.create_server(("127.0.0.1", {port}))
for _ in range(20):
    threading.Thread(target=time.sleep, args=(60,)).start()
time.sleep(60)
"""
    for _ in range(3):
        member.start([sys.executable, "-c", code])
        member.wait_until_listening(20.0)
        process = member.process
        assert process is not None
        process.kill()
        assert not is_taken(port)


def test_a_taken_port_is_named(member: Member) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", member.ports[0]))
        other.listen()
        assert is_taken(member.ports[0])
        with pytest.raises(ClusterError, match=f"port {member.ports[0]} .* is taken"):
            member.start(SLEEPER)
    assert not is_taken(member.ports[0])


def test_a_process_that_dies_while_starting_is_quoted(member: Member) -> None:
    member.start(
        [sys.executable, "-c", "print('first', flush=True); raise SystemExit('no disk\\n\\n')"]
    )
    with pytest.raises(ClusterError, match="broker 9 stopped: no disk"):
        member.wait_until_listening(20.0)


def test_a_layout_is_found_again_as_it_was(tmp_path: Path) -> None:
    layout = new_layout(tmp_path, 3, 9092, {"num.partitions": "4"})
    layout.write()
    assert load_layout(tmp_path) == layout
    assert layout.bootstrap == "127.0.0.1:9092,127.0.0.1:9093,127.0.0.1:9094"
    text = layout.properties_file(2).read_text()
    config = Config(parse_properties(text))
    config.check_broker()
    assert "listeners=CLIENT://127.0.0.1:9093,INTERNAL://127.0.0.1:19093" in text
    assert "num.partitions=4" in text


@pytest.mark.parametrize(
    "change",
    [
        {"client_ports": [], "internal_ports": []},
        {"client_ports": [9092, 9093]},
        {"client_ports": ["9092"]},
        {"zookeeper_port": None},
        {"zookeeper_port": 70000},
        {"config": 7},
    ],
)
def test_a_damaged_record_of_a_cluster_is_named(tmp_path: Path, change: dict[str, object]) -> None:
    new_layout(tmp_path, 1, 9092, {}).write()
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ClusterError, match=r"cluster\.json does not describe a cluster"):
        load_layout(tmp_path)


@pytest.mark.parametrize("name", ["a,b", "a\nb", "a\u2028b", "a\udcff"])
def test_a_folder_that_the_settings_cannot_name_is_refused(tmp_path: Path, name: str) -> None:
    """`log.dirs` is a list: the records would be in two other folders."""
    with pytest.raises(ClusterError, match="choose another --dir"):
        new_layout(tmp_path / name, 3, 9092, {})


def test_a_folder_with_an_odd_name_is_found_again(tmp_path: Path) -> None:
    directory = tmp_path / "m\u00fcnchen #1 = 'x'"
    layout = new_layout(directory, 1, 9092, {})
    layout.write()
    properties = properties_from_file(layout.properties_file(1))
    assert Config(properties).log_directories == [str(layout.data_directory(1))]


@pytest.mark.parametrize("brokers, port", [(0, 9092), (3, 60000), (20000, 9092)])
def test_an_impossible_layout_is_refused(tmp_path: Path, brokers: int, port: int) -> None:
    with pytest.raises(ClusterError):
        new_layout(tmp_path, brokers, port, {})


@pytest.mark.parametrize(("brokers", "replicas"), [(1, "1"), (2, "2"), (3, "3"), (5, "3")])
def test_the_internal_topics_fit_a_small_cluster(
    tmp_path: Path, brokers: int, replicas: str
) -> None:
    properties = new_layout(tmp_path, brokers, None, {}).properties(1)
    assert properties["offsets.topic.replication.factor"] == replicas
    assert properties["transaction.state.log.replication.factor"] == replicas
    assert properties["transaction.state.log.min.isr"] == str(min(2, brokers))


@pytest.mark.parametrize("given", ["abc", "20000", "5-1", "0-9", "1-70000", "-1-5"])
def test_a_range_of_ports_that_is_none_is_named(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`barnabas cluster start` ended with a traceback."""
    monkeypatch.setenv("BARNABAS_PORT_RANGE", given)
    with pytest.raises(ClusterError, match=f"BARNABAS_PORT_RANGE wants FIRST-LAST.* not '{given}'"):
        free_ports(1)


def test_free_ports_are_all_different_for_a_test_cluster(tmp_path: Path) -> None:
    layout = new_layout(tmp_path, 5, None, {})
    ports = {*layout.client_ports, *layout.internal_ports, layout.zookeeper_port}
    assert len(ports) == 11


@pytest.mark.parametrize(
    "config", [{"no.such.key": "1"}, {"num.partitions": "many"}, {"num.partitions": "0"}]
)
def test_a_bad_setting_is_refused_before_anything_starts(
    tmp_path: Path, config: dict[str, str]
) -> None:
    directory = tmp_path / "cluster"
    with pytest.raises(ClusterError, match=next(iter(config))):
        LocalCluster(directory, config=config)
    assert not directory.exists()


def test_a_cluster_that_exists_keeps_its_size_and_its_ports(tmp_path: Path) -> None:
    new_layout(tmp_path, 3, 9092, {"num.partitions": "4"}).write()
    assert LocalCluster(tmp_path).broker_ids == [1, 2, 3]
    added = LocalCluster(tmp_path, 3, {"min.insync.replicas": "2"}, 9092).layout.config
    assert added == {"num.partitions": "4", "min.insync.replicas": "2"}
    with pytest.raises(ClusterError, match="3 brokers from port 9092"):
        LocalCluster(tmp_path, brokers=5)
    with pytest.raises(ClusterError, match="there is no broker 4"):
        LocalCluster(tmp_path).kill(4)


def test_a_cluster_that_another_command_has_made_meanwhile_is_left_alone(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path)
    new_layout(tmp_path, 2, None, {}).write()
    with pytest.raises(ClusterError, match="another command has made a cluster in"):
        cluster.start()
    assert LocalCluster.find(tmp_path).broker_ids == [1, 2]


def test_a_first_start_that_fails_leaves_what_was_there_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    mine = tmp_path / "broker-2" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("keep")
    for _ in range(2):
        with pytest.raises(ClusterError, match="Java"):
            LocalCluster(tmp_path, brokers=3).start()
        assert {path.name for path in tmp_path.iterdir()} == {LOCK_FILE, "broker-2"}
        assert mine.read_text() == "keep"


def test_a_broker_is_not_restarted_while_zookeeper_is_down(tmp_path: Path) -> None:
    new_layout(tmp_path, 3, None, {}).write()
    with pytest.raises(ClusterError, match="broker 1 cannot start without ZooKeeper"):
        LocalCluster(tmp_path).restart(1)


def test_a_folder_without_a_cluster_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="no cluster in"):
        LocalCluster.find(tmp_path)


def test_destroy_removes_what_the_cluster_made_and_nothing_else(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    new_layout(directory, 2, None, {}).write()
    (directory / "mine.txt").write_text("keep")
    LocalCluster(directory).destroy()
    assert [path.name for path in directory.iterdir()] == ["mine.txt"]


def test_what_cannot_be_removed_is_named_and_destroy_can_be_repeated(tmp_path: Path) -> None:
    directory, elsewhere = tmp_path / "cluster", tmp_path / "elsewhere"
    new_layout(directory, 2, None, {}).write()
    link = directory / "broker-2"
    link.rename(elsewhere)
    link.symlink_to(elsewhere)
    with pytest.raises(ClusterError, match="broker-2 cannot be removed: .* symbolic link"):
        LocalCluster.find(directory).destroy()
    link.unlink()
    LocalCluster.find(directory).destroy()
    assert not directory.exists()


def test_only_one_command_at_a_time_changes_a_cluster(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with exclusive(lock), pytest.raises(ClusterError, match="another command"), exclusive(lock):
        pass
    with exclusive(lock):
        pass


def answer(controller: int, *brokers: int) -> MetadataResponse:
    return MetadataResponse("c", controller, [BrokerInfo(b, "h", 1) for b in brokers])


def test_serving_means_that_every_broker_knows_all_and_a_living_controller() -> None:
    good = {1: answer(2, 1, 2), 2: answer(2, 1, 2)}
    assert reason_not_serving(good, [1, 2]) is None
    assert "broker 2 does not answer" in str(reason_not_serving({**good, 2: None}, [1, 2]))
    assert "does not know broker 1" in str(reason_not_serving({**good, 2: answer(2, 2)}, [1, 2]))
    assert "controller" in str(reason_not_serving({**good, 1: answer(-1, 1, 2)}, [1, 2]))
    assert "controller" in str(reason_not_serving({**good, 1: answer(3, 1, 2, 3)}, [1, 2]))


def test_settings_come_from_the_environment_by_name() -> None:
    environment = {
        "BARNABAS_LOG_DIRS": "/data",
        "BARNABAS_BROKER_ID": "3",
        "BARNABAS_BOOTSTRAP": "localhost:1",
        "HOME": "/root",
    }
    assert properties_from_environment(environment) == {"log.dirs": "/data", "broker.id": "3"}
    with pytest.raises(InvalidConfig, match="BARNABAS_LOG_DRIS"):
        properties_from_environment({"BARNABAS_LOG_DRIS": "/data"})


def test_a_missing_or_malformed_properties_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match="nowhere"):
        properties_from_file(tmp_path / "nowhere")
    (tmp_path / "bad").write_text("broker.id 3\n")
    with pytest.raises(InvalidConfig, match="bad: line 1"):
        properties_from_file(tmp_path / "bad")


def test_a_broker_with_a_bad_file_exits_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("broker.id=-7\n")
    command = [sys.executable, "-m", "barnabas_tools.cli.cluster.run_broker", str(tmp_path / "p")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1 and "broker.id" in result.stderr


@pytest.mark.parametrize("connect", ["localhost:port", "localhost:2181,", "h:1/a/../b"])
def test_a_broker_with_a_wrong_zookeeper_address_exits_with_one_line(
    tmp_path: Path, connect: str
) -> None:
    layout = replace(new_layout(tmp_path, 1, None, {}), config={"zookeeper.connect": connect})
    layout.write()
    file = str(layout.properties_file(1))
    command = [sys.executable, "-m", "barnabas_tools.cli.cluster.run_broker", file]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert f"{connect!r} is no ZooKeeper address" in result.stderr.splitlines()[-1]


def test_a_log_is_shown_from_its_end_and_followed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("one\ntwo\nthree\n")
    assert last_lines(path, 2) == ("two\nthree\n", 14)
    text, position = last_lines(path, None)
    assert text == "one\ntwo\nthree\n"
    with path.open("a") as file:
        file.write("four\n")
    assert next(follow_file(path, position)) == "four\n"


def test_a_character_that_is_written_in_two_parts_is_shown_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()
    following = follow_file(path, 0)
    shown = ""
    for part in (b"caf\xc3", b"\xa9\n"):
        with path.open("ab") as file:
            file.write(part)
        shown += next(following)
    assert shown == "caf\u00e9\n"


def test_the_commands_to_copy_quote_a_directory_with_a_space() -> None:
    assert directory_option(Path(".barnabas")) == ""
    assert directory_option(Path("/tmp/c1")) == " --dir /tmp/c1"
    assert directory_option(Path("my cluster")) == " --dir 'my cluster'"
