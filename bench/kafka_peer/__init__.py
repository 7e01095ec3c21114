"""A real Apache Kafka 3.9.1 on this machine: ZooKeeper and three brokers, each its own JVM.

The benchmarks compare Barnabas with it. It needs Java 17 and, for the first time, Maven; the jars
are kept in `.cache/kafka-peer`. Everything listens on 127.0.0.1, on free ports, in a temporary
folder.

    with KafkaCluster() as kafka:
        kafka.create_topic("bench", partitions=6)
        print(kafka.produce("bench", records=1_000_000, size=100))
"""

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError
from barnabas_tools.local.ports import HOST, free_ports
from support.machine import resident_mb

VERSION = "3.9.1"
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "kafka-peer"
HERE = Path(__file__).resolve().parent
POM = HERE / "pom.xml"
# The options that Kafka's own start script gives a broker.
BROKER_JVM = ["-Xmx1g", "-Xms1g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
SERVING_TIMEOUT = 60.0
_LOG4J = """\
log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


class KafkaUnavailable(Exception):
    """Kafka cannot run here: no Java, no Maven, no jars, or a broker that does not start."""


@dataclass(frozen=True)
class ProduceResult:
    """The figures in ProducerPerformance's last line."""

    records_per_second: float
    mb_per_second: float
    p50_ms: float
    p99_ms: float


class KafkaCluster:
    """Started by `with`; killed and deleted at its end."""

    def __init__(self, brokers: int = 3, session_timeout_ms: int = 18_000) -> None:
        self.broker_ids = list(range(1, brokers + 1))
        self._session_timeout_ms = session_timeout_ms
        self._directory = Path(tempfile.mkdtemp(prefix="kafka-peer-"))
        *self._ports, self._zookeeper_port = free_ports(brokers + 1)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self._ports)

    # Start and end

    def __enter__(self) -> "KafkaCluster":
        try:
            self.start()
        except BaseException:
            self.destroy()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.destroy()

    def start(self) -> None:
        """Start ZooKeeper and the brokers; wait until each broker knows all others."""
        fetch_jars()
        (self._directory / "log4j.properties").write_text(_LOG4J)
        zookeeper = self._write("zookeeper.properties", self._zookeeper_properties())
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self._spawn("zookeeper", ["-Xmx256m"], main, str(zookeeper))
        self._wait_until_listening(self._zookeeper_port)
        for broker_id in self.broker_ids:
            properties = self._write(f"broker-{broker_id}.properties", self._broker(broker_id))
            self._spawn(f"broker-{broker_id}", BROKER_JVM, "kafka.Kafka", str(properties))
        asyncio.run(self._wait_until_serving())

    def destroy(self) -> None:
        """Kill every process and remove all files."""
        for process in self._processes.values():
            process.kill()
            process.wait()
        self._processes.clear()
        shutil.rmtree(self._directory, ignore_errors=True)

    def kill(self, broker_id: int) -> None:
        """SIGKILL one broker."""
        process = self._processes[f"broker-{broker_id}"]
        process.kill()
        process.wait()

    def restart(self, broker_id: int) -> None:
        """Start a broker that was killed; returns when it listens."""
        properties = self._directory / f"broker-{broker_id}.properties"
        self._spawn(f"broker-{broker_id}", BROKER_JVM, "kafka.Kafka", str(properties))
        self._wait_until_listening(self._ports[broker_id - 1])

    def resident_mb(self) -> dict[int, float]:
        """Resident memory of each broker in MiB."""
        return {b: resident_mb(self._processes[f"broker-{b}"].pid) for b in self.broker_ids}

    # Topics

    def create_topic(self, topic: str, partitions: int) -> None:
        """Create a topic with three replicas, two of them required; wait until it has leaders."""
        asyncio.run(self._create_topic(topic, partitions))

    def leaders(self, topic: str) -> dict[int, int]:
        """The leader of each partition."""
        return asyncio.run(self._leaders(topic))

    def is_in_sync(self, topic: str) -> bool:
        """Whether every replica of the topic is in its ISR."""
        described = asyncio.run(self._describe(topic))
        return all(len(p["isr"]) == len(p["replicas"]) for p in described)

    def controller(self) -> int:
        """The broker that is controller."""
        return asyncio.run(self._controller())

    # Kafka's own tools

    def produce(
        self, topic: str, *, records: int, size: int, batch_size: int = 65_536, linger_ms: int = 5
    ) -> ProduceResult:
        """Run ProducerPerformance with acks=all, at full speed."""
        output = self.tool(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", topic, "--num-records", records, "--record-size", size),
            *("--throughput", -1, "--producer-props", f"bootstrap.servers={self.bootstrap}"),
            *("acks=all", f"batch.size={batch_size}", f"linger.ms={linger_ms}"),
        )
        return parse_produced(output)

    def consume(self, topic: str, records: int) -> float:
        """Run ConsumerPerformance; returns records/s while fetching, without joining the group."""
        output = self.tool(
            "org.apache.kafka.tools.ConsumerPerformance",
            *("--bootstrap-server", self.bootstrap, "--topic", topic, "--messages", records),
            *("--group", f"bench-{time.time_ns()}", "--hide-header", "--timeout", 30_000),
        )
        return parse_consumed(output)

    def latency(self, topic: str, records: int, size: int) -> tuple[float, float]:
        """Run EndToEndLatency with one record in flight; returns p50 and p99 in whole ms."""
        output = self.tool(
            "org.apache.kafka.tools.EndToEndLatency",
            *(self.bootstrap, topic, records, "all", size),
        )
        return parse_latency(output)

    def tool(self, main: str, *arguments: object) -> str:
        """Run one of Kafka's tools and return its output; KafkaUnavailable if it fails."""
        done = subprocess.run(
            self.command(main, *arguments), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise KafkaUnavailable(f"{main} failed: {(done.stderr or done.stdout)[-500:]}")
        return done.stdout

    def command(self, main: str, *arguments: object) -> list[str]:
        """The command line of one of Kafka's tools."""
        return self._java(["-Xmx512m"], main, *map(str, arguments))

    # Inside

    def _zookeeper_properties(self) -> Mapping[str, object]:
        return {
            "dataDir": self._directory / "zookeeper",
            "clientPort": self._zookeeper_port,
            "clientPortAddress": HOST,
            "admin.enableServer": "false",
            # As for Barnabas: sessions expire on time.
            "tickTime": 500,
        }

    def _broker(self, broker_id: int) -> Mapping[str, object]:
        return {
            "broker.id": broker_id,
            "listeners": f"PLAINTEXT://{HOST}:{self._ports[broker_id - 1]}",
            "log.dirs": self._directory / f"data-{broker_id}",
            "zookeeper.connect": f"{HOST}:{self._zookeeper_port}",
            "zookeeper.session.timeout.ms": self._session_timeout_ms,
            "offsets.topic.replication.factor": min(3, len(self.broker_ids)),
            "group.initial.rebalance.delay.ms": 0,
        }

    def _write(self, name: str, properties: Mapping[str, object]) -> Path:
        path = self._directory / name
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return path

    def _java(self, jvm: list[str], main: str, *arguments: str) -> list[str]:
        log4j = f"-Dlog4j.configuration=file:{self._directory / 'log4j.properties'}"
        return ["java", *jvm, log4j, "-cp", f"{CACHE / 'libs'}/*", main, *arguments]

    def _spawn(self, name: str, jvm: list[str], main: str, *arguments: str) -> None:
        with (self._directory / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                self._java(jvm, main, *arguments),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _check_running(self) -> None:
        for name, process in self._processes.items():
            if process.poll() is not None:
                said = (self._directory / f"{name}.log").read_text(errors="replace")
                raise KafkaUnavailable(f"Kafka's {name} stopped: {said[-500:]}")

    def _wait_until_listening(self, port: int) -> None:
        deadline = time.monotonic() + SERVING_TIMEOUT
        while time.monotonic() < deadline:
            self._check_running()
            with suppress(OSError), socket.create_connection((HOST, port), 1):
                return
            time.sleep(0.05)
        raise KafkaUnavailable(f"no process listens on port {port} after {SERVING_TIMEOUT:g} s")

    async def _wait_until_serving(self) -> None:
        for port in self._ports:
            await asyncio.to_thread(self._wait_until_listening, port)
        async with asyncio.timeout(SERVING_TIMEOUT):
            while await self._known_brokers() < len(self.broker_ids):
                await asyncio.sleep(0.1)

    async def _known_brokers(self) -> int:
        """Return the smallest number of brokers that any broker knows."""
        counts = []
        for port in self._ports:
            try:
                async with _admin(f"{HOST}:{port}") as admin:
                    counts.append(len((await admin.describe_cluster())["brokers"]))
            except KafkaError:
                counts.append(0)
        return min(counts)

    async def _create_topic(self, topic: str, partitions: int) -> None:
        configs = {"min.insync.replicas": "2"}
        async with _admin(self.bootstrap) as admin:
            await admin.create_topics([NewTopic(topic, partitions, 3, topic_configs=configs)])
        async with asyncio.timeout(SERVING_TIMEOUT):
            while len(await self._leaders(topic)) < partitions:
                await asyncio.sleep(0.1)

    async def _controller(self) -> int:
        async with _admin(self.bootstrap) as admin:
            return int((await admin.describe_cluster())["controller_id"])

    async def _leaders(self, topic: str) -> dict[int, int]:
        partitions = await self._describe(topic)
        return {p["partition"]: p["leader"] for p in partitions if p["leader"] >= 0}

    async def _describe(self, topic: str) -> list[dict[str, Any]]:
        async with _admin(self.bootstrap) as admin:
            (described,) = await admin.describe_topics([topic])
        partitions: list[dict[str, Any]] = described["partitions"]
        return partitions


@asynccontextmanager
async def _admin(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        await admin.start()
        yield admin
    finally:
        await admin.close()


def fetch_jars() -> Path:
    """Download Kafka's jars by Maven, once; returns their folder."""
    jars = CACHE / "libs"
    if jars.is_dir():
        return jars
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise KafkaUnavailable(f"{program} is needed to run Kafka beside Barnabas")
    incomplete = CACHE / f"libs.{os.getpid()}"
    command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={incomplete}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        shutil.rmtree(incomplete, ignore_errors=True)
        raise KafkaUnavailable(f"Maven cannot fetch Kafka: {done.stdout[-500:]}")
    incomplete.rename(jars)
    return jars


def parse_produced(output: str) -> ProduceResult:
    """Parse `N records sent, R records/sec (M MB/sec), ... , P ms 50th, ... , P ms 99th, ...`."""
    line = next(line for line in reversed(output.splitlines()) if "99th" in line)
    parts = [part.strip() for part in line.split(",")]
    rate, _, megabytes, _ = parts[1].split()
    percentile = {part.split()[-1].rstrip("."): float(part.split()[0]) for part in parts[4:]}
    return ProduceResult(
        float(rate), float(megabytes.lstrip("(")), percentile["50th"], percentile["99th"]
    )


def parse_consumed(output: str) -> float:
    """Return the last of `start, end, MB, MB/s, n, n/s, rebalance ms, fetch ms, MB/s, n/s`."""
    line = next(line for line in reversed(output.splitlines()) if line.count(",") >= 9)
    return float(line.split(",")[-1])


def parse_latency(output: str) -> tuple[float, float]:
    """Parse `Percentiles: 50th = 1, 99th = 17, 99.9th = 21`; returns p50 and p99 in ms."""
    line = next(line for line in output.splitlines() if line.startswith("Percentiles"))
    p50, p99 = (float(part.split("=")[1]) for part in line.split(",")[:2])
    return p50, p99
