"""`barnabas cluster` and the commands that a user runs with it, from a shell, on real processes."""

import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from barnabas import Admin
from barnabas_tools.local.cluster import LOCK_FILE, LocalCluster
from barnabas_tools.local.errors import ClusterError

from tests.support.own_cluster import OwnCluster
from tests.support.shell import COMMAND
from tests.support.zookeeper_client import zookeeper

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnCluster]:
    shell = OwnCluster(tmp_path_factory.mktemp("shell"))
    shell.ok("cluster", "start", "--port", str(shell.port))
    yield shell
    shell.run("cluster", "destroy", "--yes")
    assert shell.processes() == []


def test_a_second_start_says_that_the_cluster_runs(shell: OwnCluster) -> None:
    before = {process.pid for process in shell.processes()}
    assert "runs already" in shell.ok("cluster", "start")
    assert {process.pid for process in shell.processes()} == before


def test_records_go_in_and_come_out(shell: OwnCluster) -> None:
    created = shell.ok("topic", "create", "hello", "--partitions", "3")
    assert "replication factor 3" in created and "min.insync.replicas=2" in created
    lines = [f"k{i % 5}:value {i}" for i in range(100)]
    shell.ok("produce", "hello", "--key-separator", ":", stdin="\n".join(lines) + "\n")
    out = shell.ok(
        "consume", "hello", "--from-beginning", "--max-messages", "100", "--print-key",
        "--separator", ":",
    )  # fmt: skip
    assert sorted(out.splitlines()) == sorted(lines)


def test_replicas_are_placed_as_said(shell: OwnCluster) -> None:
    shell.ok("topic", "create", "placed", "-p", "3", "-r", "2", "--assignment", "plain")
    rows = shell.rows("topic", "describe", "placed")
    assert [row["replicas"] for row in rows] == [[1, 2], [2, 3], [3, 1]]
    created = shell.ok("topic", "create", "listed", "--assignment", "0:3,1;1:2,3")
    assert "2 partitions, replication factor 2" in created
    assert [r["replicas"] for r in shell.rows("topic", "describe", "listed")] == [[3, 1], [2, 3]]


def test_a_topic_has_the_brokers_number_of_partitions(shell: OwnCluster) -> None:
    assert "1 partition," in shell.ok("topic", "create", "numbered")
    assert "1 partition," in shell.ok("topic", "create", "plainly", "--assignment", "plain")


def test_one_partition_is_read_from_an_offset(shell: OwnCluster) -> None:
    shell.ok("topic", "create", "offsets", "--set", "retention.ms=86400000")
    shell.ok("produce", "offsets", "--compression", "zstd", stdin="a\nb\nc\nd\n")
    rows = shell.rows(
        "consume", "offsets", "--partition", "0", "--offset", "2", "--max-messages", "2"
    )
    assert [(row["offset"], row["value"]) for row in rows] == [(2, "c"), (3, "d")]


def test_consuming_ends_when_nothing_comes(shell: OwnCluster) -> None:
    shell.ok("topic", "create", "silence")
    assert shell.ok("consume", "silence", "--from-beginning", "--timeout-ms", "300") == ""


def test_a_delivered_record_is_told_where_it_is(shell: OwnCluster) -> None:
    shell.ok("topic", "create", "told")
    result = shell.ok("produce", "told", "--output", "json", "--partition", "0", stdin="x\ny\n")
    assert [json.loads(line)["offset"] for line in result.splitlines()] == [0, 1]


def test_a_line_without_a_key_ends_it_and_the_lines_before_are_counted(shell: OwnCluster) -> None:
    shell.ok("topic", "create", "keyed")
    result = shell.run("produce", "keyed", "--key-separator", ":", stdin="a:1\nb:2\nc\nd:4\n")
    assert result.returncode == 1
    assert "2 records delivered" in result.stderr and "line 3" in result.stderr
    rows = shell.rows("consume", "keyed", "--from-beginning", "--max-messages", "2")
    assert [row["value"] for row in rows] == ["1", "2"]
    assert {row["log_end_offset"] for row in shell.rows("replica", "status", "keyed")} == {2}
    large = shell.run("produce", "keyed", stdin=f"d\n{'e' * 1_100_000}\n")
    assert large.returncode == 1 and "line 2: MESSAGE_TOO_LARGE" in large.stderr


def test_topics_are_listed_described_and_deleted(shell: OwnCluster) -> None:
    shell.ok("topic", "create", "short-lived", "--partitions", "2")
    (row,) = [row for row in shell.rows("topic", "list") if row["topic"] == "short-lived"]
    assert (row["partitions"], row["replication_factor"]) == (2, 3)
    described = shell.rows("topic", "describe", "short-lived")
    assert [row["partition"] for row in described] == [0, 1]
    assert all(sorted(row["in_sync_replicas"]) == [1, 2, 3] for row in described)  # type: ignore[call-overload]
    shell.ok("topic", "delete", "short-lived", "--yes")
    assert "short-lived" not in [row["topic"] for row in shell.rows("topic", "list")]


def test_of_several_topics_and_groups_those_that_exist_are_deleted(shell: OwnCluster) -> None:
    shell.ok("topic", "create", "several")
    shell.ok("produce", "several", stdin="x\n")
    once = ("--from-beginning", "--max-messages", "1")
    shell.ok("consume", "several", "--group", "several", *once)
    for kind, refusal in (("group", "GROUP_ID_NOT_FOUND"), ("topic", "UNKNOWN_TOPIC_OR_PARTITION")):
        names = ["absent", "several", "nowhere", "several"]
        result = shell.run(kind, "delete", *names, *(["--yes"] if kind == "topic" else []))
        assert (result.returncode, result.stdout) == (1, f"deleted {kind} several\n")
        first, second = result.stderr.splitlines()
        assert refusal in first and "absent" in first
        assert refusal in second and "nowhere" in second


def test_a_description_says_how_dirty_a_compacted_log_is(shell: OwnCluster) -> None:
    compacted = ("--set", "cleanup.policy=compact", "--set", "min.cleanable.dirty.ratio=1")
    shell.ok("topic", "create", "table", *compacted, "--set", "segment.bytes=1000")
    shell.ok("topic", "create", "stream")

    def dirty(topic: str) -> set[object]:
        return {row["dirty_percent"] for row in shell.rows("topic", "describe", topic)}

    until(lambda: dirty("table") == {0})
    assert dirty("stream") == {None}
    for _ in range(3):
        shell.ok("produce", "table", "--key-separator", ":", stdin=f"key:{'x' * 900}\n")
    until(lambda: dirty("table") == {100})


def test_settings_are_changed_while_brokers_run(shell: OwnCluster) -> None:
    shell.ok("topic", "create", "settings")
    assert "message too large" not in shell.ok("produce", "settings", stdin="x" * 3000 + "\n")
    shell.ok("topic", "alter", "settings", "--set", "max.message.bytes=2000")
    until(lambda: shell.run("produce", "settings", stdin="x" * 3000 + "\n").returncode != 0)
    shell.ok("config", "alter", "--broker-default", "--set", "log.retention.bytes=123456")
    shell.ok("config", "alter", "--broker", "2", "--set", "log.retention.bytes=654321")
    until(lambda: settings_of(shell, "--broker", "2")["log.retention.bytes"][0] == "654321")
    until(lambda: settings_of(shell, "--broker", "1")["log.retention.bytes"][0] == "123456")
    assert settings_of(shell, "--broker", "1")["log.retention.bytes"][1] == "cluster-default"
    assert settings_of(shell, "--broker", "2")["log.retention.bytes"][1] == "broker-dynamic"

    def limit() -> tuple[str, str]:
        return settings_of(shell, "--topic", "settings")["max.message.bytes"]

    until(lambda: limit() == ("2000", "topic"))
    shell.ok("topic", "alter", "settings", "--delete-config", "max.message.bytes")
    until(lambda: limit()[1] == "default")
    shell.ok("config", "alter", "--broker-default", "--delete", "log.retention.bytes")
    shell.ok("config", "alter", "--broker", "2", "--delete-config", "log.retention.bytes")
    until(lambda: settings_of(shell, "--broker-default") == {})


def test_elections_are_held_on_request(shell: OwnCluster) -> None:
    shell.ok("topic", "create", "elected", "--partitions", "3")
    rows = shell.rows("election", "run", "--type", "preferred", "--topic", "elected")
    assert [row["result"] for row in rows] == ["ELECTION_NOT_NEEDED"] * 3
    row = shell.rows("topic", "describe", "elected")[0]
    preferred = str(row["leader"])
    shell.ok("cluster", "restart", preferred)  # others lead now; leadership may return by itself
    deadline = time.monotonic() + 60
    while shell.rows("topic", "describe", "elected")[0]["leader"] != int(preferred):
        assert time.monotonic() < deadline
        shell.run("election", "run", "--type", "preferred", "--all")
    result = shell.run("election", "run", "--type", "unclean", "-t", "elected", "-p", "7")
    assert result.returncode == 1 and "UNKNOWN_TOPIC_OR_PARTITION" in result.stdout


def until(condition: Callable[[], bool], within: float = 60.0) -> None:
    """Wait for a condition: updates reach brokers one by one, and a command may take seconds."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline


def settings_of(shell: OwnCluster, *where: str) -> dict[str, tuple[str, str]]:
    rows = shell.rows("config", "describe", *where)
    return {str(row["name"]): (str(row["value"]), str(row["source"])) for row in rows}


@pytest.mark.parametrize(
    "arguments, name",
    [
        ("topic describe absent", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("topic delete absent --yes", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("topic create a/b", "INVALID_TOPIC_EXCEPTION"),
        ("topic create big --replication-factor 9", "INVALID_REPLICATION_FACTOR"),
        ("topic create odd --set no.such.key=1", "INVALID_CONFIG"),
        ("config describe --broker 77", "BROKER_NOT_AVAILABLE"),
        ("config alter --broker 77 --set log.retention.bytes=1", "BROKER_NOT_AVAILABLE"),
        ("topic alter absent --set retention.ms=1", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("config alter --broker-default --set log.dirs=/tmp", "INVALID_CONFIG"),
        ("config alter --broker 1 --append message.max.bytes=1", "INVALID_REQUEST"),
        ("replica status absent", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("consume absent --timeout-ms 100", "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_a_refusal_is_kafkas_name_and_exit_code_1(
    shell: OwnCluster, arguments: str, name: str
) -> None:
    result = shell.run(*arguments.split())
    assert result.returncode == 1
    assert name in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_every_replica_tells_its_offsets(shell: OwnCluster) -> None:
    shell.ok("topic", "create", "replicas")
    shell.ok("produce", "replicas", stdin="1\n2\n3\n")
    rows = shell.rows("replica", "status", "replicas")
    assert [row["broker"] for row in rows] == [1, 2, 3]
    assert [row["log_end_offset"] for row in rows] == [3, 3, 3]
    assert sum(row["role"] == "leader" for row in rows) == 1
    assert all(row["lag"] == 0 and row["in_sync"] for row in rows)


def test_zookeeper_shows_the_brokers(shell: OwnCluster) -> None:
    tree = shell.ok("zk", "tree", "/brokers/ids")
    assert [line.split()[0] for line in tree.splitlines()] == ["ids", "1*", "2*", "3*"]
    assert json.loads(shell.ok("zk", "get", "/controller").splitlines()[0])["brokerid"] in (1, 2, 3)
    assert shell.run("zk", "get", "/nowhere").returncode == 1


def test_the_files_on_disk_are_sound_and_a_flipped_bit_is_found(shell: OwnCluster) -> None:
    shell.ok("topic", "create", "on-disk")
    shell.ok("produce", "on-disk", stdin="one\ntwo\n")
    folder = shell.started_in / ".barnabas" / "broker-1" / "data" / "on-disk-0"
    (row,) = shell.rows("log", "verify", str(folder))
    assert row["faults"] == [] and row["records"] == 2
    assert "baseOffset: 0 lastOffset: 1 count: 2" in shell.ok("log", "dump", str(folder))
    assert "payload: two" in shell.ok("log", "dump", str(folder), "--records")
    copy = shell.started_in / "on-disk-0"
    subprocess.run(["cp", "-r", str(folder), str(copy)], check=True)
    file = copy / "00000000000000000000.log"
    spoiled = bytearray(file.read_bytes())
    spoiled[-2] ^= 1
    file.write_bytes(spoiled)
    assert shell.run("log", "verify", str(copy)).returncode == 1
    result = shell.run("log", "dump", str(copy))
    assert result.returncode == 1 and "isvalid: false" in result.stdout


def test_a_reader_that_leaves_is_no_failure(shell: OwnCluster) -> None:
    shell.ok("topic", "create", "piped")
    shell.ok("produce", "piped", stdin=f"{'line' * 10}\n" * 5000)  # more than a pipe holds
    line = f"{' '.join(COMMAND)} consume piped --from-beginning | head -1; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(
        ["bash", "-c", line], env=shell.environment, capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stdout) == (0, "line" * 10 + "\n")
    assert "Traceback" not in result.stderr and "Exception" not in result.stderr


@pytest.mark.parametrize(
    "arguments",
    ["consume quiet --from-beginning", "watch quiet --from-beginning", "cluster logs 1 --follow"],
)
def test_a_reader_that_leaves_is_noticed_when_there_is_nothing_to_tell_it(
    shell: OwnCluster, arguments: str
) -> None:
    shell.run("topic", "create", "quiet")
    shell.ok("produce", "quiet", stdin="line\n")
    line = f"{' '.join(COMMAND)} {arguments} | head -1; exit ${{PIPESTATUS[0]}}"
    result = subprocess.run(
        ["bash", "-c", line], cwd=shell.folder, env=shell.environment, capture_output=True,
        text=True, timeout=60,
    )  # fmt: skip
    assert (result.returncode, result.stdout.count("\n")) == (0, 1)


def test_a_killed_broker_is_shown_and_comes_back(shell: OwnCluster) -> None:
    shell.ok("cluster", "kill", "2")
    status = shell.run("cluster", "status", "--output", "json")
    states = {row["member"]: row["state"] for row in map(json.loads, status.stdout.splitlines())}
    assert status.returncode == 1
    assert states["broker 2"] == "stopped" and states["broker 1"] == "running"
    assert shell.run("cluster", "kill", "2").returncode == 1
    refused = shell.run("cluster", "start", "--disk", "volatile", "--set", "log.retention.ms=7")
    assert refused.returncode == 1
    assert "2 brokers of the cluster run" in refused.stderr and "--set, --disk" in refused.stderr
    shell.ok("cluster", "restart", "2")
    assert shell.run("cluster", "status").returncode == 0
    assert shell.ok("cluster", "logs", "2", "--lines", "3").count("\n") == 3


def test_a_topic_is_no_less_safe_because_a_broker_is_down(shell: OwnCluster) -> None:
    shell.ok("topic", "create", "before")
    shell.ok("cluster", "kill", "2")
    until(lambda: shell.ok("zk", "tree", "/brokers/ids").count("*") == 2)
    refused = shell.run("topic", "create", "meanwhile")
    assert refused.returncode == 1 and "INVALID_REPLICATION_FACTOR" in refused.stderr
    assert "replication factor 2" in shell.ok("topic", "create", "chosen", "-r", "2")
    shell.ok("cluster", "restart", "2")


def test_health_is_told_to_programs_too(shell: OwnCluster) -> None:
    (row,) = shell.rows("broker", "health", f"127.0.0.1:{shell.port}")
    assert row["brokers"] == 3 and row["controller"] in (1, 2, 3)


def test_a_deletion_says_which_brokers_it_waits_for(shell: OwnCluster) -> None:
    for topic in ("leaves-late", "leaves-late-too", "leaves-at-once"):
        placed = "0:1,3" if topic == "leaves-at-once" else "0:1,2"
        shell.ok("topic", "create", topic, "--assignment", placed)
    shell.ok("cluster", "kill", "2")
    rows = shell.rows("topic", "delete", "leaves-late", "leaves-at-once", "--yes")
    assert [(row["topic"], row["waits_for"]) for row in rows] == [
        ("leaves-late", [2]),
        ("leaves-at-once", []),
    ]
    told = shell.run("topic", "delete", "leaves-late-too", "--yes")
    assert told.stdout == "deleted topic leaves-late-too\n" and "is back: 2;" in told.stderr
    shell.ok("cluster", "restart", "2")
    until(lambda: shell.run("topic", "create", "leaves-late").returncode == 0)


def test_stop_and_start_keep_topics_and_records(shell: OwnCluster) -> None:
    shell.ok("topic", "create", "kept", "--partitions", "2")
    shell.ok("produce", "kept", stdin="a\nb\nc\n")
    shell.ok("cluster", "stop")
    assert shell.processes() == []
    assert shell.run("topic", "list").returncode == 1
    shell.ok("cluster", "start")
    out = shell.ok("consume", "kept", "--from-beginning", "--max-messages", "3")
    assert sorted(out.split()) == ["a", "b", "c"]


def test_a_taken_port_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    shell = OwnCluster(tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", shell.port + 1))
        other.listen()
        result = shell.run("cluster", "start", "--port", str(shell.port))
    assert result.returncode == 1
    assert f"port {shell.port + 1}" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert shell.processes() == []
    assert not (tmp_path / ".barnabas" / "cluster.json").exists()


def test_on_a_volatile_disk_a_kill_is_a_power_loss(tmp_path: Path) -> None:
    """The topic has one replica that flushes nothing; pause points are in the cluster's folder."""
    shell = OwnCluster(tmp_path)
    options = ("--brokers", "1", "--disk", "volatile", "--pause-points")
    shell.ok("cluster", "start", "--port", str(shell.port), *options)
    try:
        shell.ok("topic", "create", "forgotten", "--partitions", "1", "--replication-factor", "1")
        shell.ok("produce", "forgotten", stdin="a\nb\n")
        assert (tmp_path / ".barnabas" / "pause").is_dir()
        shell.ok("cluster", "kill", "1")
        shell.ok("cluster", "restart", "1")
        shell.ok("produce", "forgotten", stdin="c\n")
        out = shell.ok("consume", "forgotten", "--from-beginning", "--max-messages", "1")
        assert out.split() == ["c"]
    finally:
        shell.run("cluster", "destroy", "--yes")
    assert not (tmp_path / ".barnabas").exists()


def test_missing_java_is_one_line(tmp_path: Path) -> None:
    shell = OwnCluster(tmp_path)
    shell.environment |= {"PATH": str(tmp_path), "JAVA_HOME": ""}
    result = shell.run("cluster", "start", "--port", str(shell.port))
    assert result.returncode == 1
    assert "Java" in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_start_leaves_no_process_behind(tmp_path: Path, number: int) -> None:
    shell = OwnCluster(tmp_path)
    start = subprocess.Popen(
        [*COMMAND, "cluster", "start", "--port", str(shell.port)],
        cwd=tmp_path, env=shell.environment, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert start.stderr is not None
    assert "ZooKeeper serves" in start.stderr.readline()
    deadline = time.monotonic() + 20
    while len(shell.processes()) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    start.send_signal(number)
    assert start.wait(30) == 130
    assert "Traceback" not in start.stderr.read()
    assert shell.processes() == []


async def test_a_second_start_finds_nothing_of_a_first_one_that_failed(tmp_path: Path) -> None:
    """There was ZooKeeper's data, which knew other brokers and a controller, and theirs."""
    (tmp_path / "mine.txt").write_text("keep")

    class NeverServing(LocalCluster):
        def _await_serving(self, broker_ids: list[int], timeout: float) -> None:
            super()._await_serving(broker_ids, timeout)
            raise ClusterError("it is interrupted just now")

    with pytest.raises(ClusterError, match="interrupted"):
        NeverServing(tmp_path, brokers=2).start()
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    logs = {"zookeeper/zookeeper.log", "broker-1/broker.log", "broker-2/broker.log"}
    assert left == {"mine.txt", LOCK_FILE, *logs}
    with LocalCluster(tmp_path, brokers=1) as cluster:
        async with Admin(cluster.bootstrap) as admin, zookeeper(cluster) as session:
            brokers = (await admin.describe_cluster()).brokers
            assert [broker.broker_id for broker in brokers] == [1]
            epoch, _ = await session.get("/controller_epoch")
            assert epoch == b"1", "it is the first controller"


def test_a_new_cluster_acknowledges_its_first_record_soon(tmp_path: Path) -> None:
    from barnabas.sync import Producer

    began = time.monotonic()
    with LocalCluster(tmp_path, config={"auto.create.topics.enable": "true"}) as cluster:
        with Producer(bootstrap_servers=cluster.bootstrap) as producer:
            producer.send_and_wait("first", b"x")
        # Two seconds on two idle cores, six promised; this machine may be busy.
        assert time.monotonic() - began < 30
        assert cluster.complete
    assert cluster.running_brokers() == []
