"""The layout of a local cluster: folders, ports, and the properties file of each broker.

The layout is decided when the cluster is created, and recorded in `cluster.json`; later commands
need only the folder. Plain data: nothing here starts a process.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from barnabas_broker.config.properties import format_properties

from barnabas_tools.local.errors import ClusterError
from barnabas_tools.local.ports import HOST, free_ports

LAYOUT_FILE = "cluster.json"
INTERNAL_PORT_DISTANCE = 10_000
MAX_PORT = 65_535

# Settings that the local cluster chooses: they differ between brokers, or must agree with others.
DECIDED = (
    "advertised.listeners",
    "broker.id",
    "inter.broker.listener.name",
    "listeners",
    "log.dirs",
    "zookeeper.connect",
)

# Defaults for one machine that differ from Kafka's. A dead broker's session expires in six seconds.
# The last broker to stop cannot move its leaderships, and must not retry for 15 s.
# The first member of a group does not wait 3 s for others.
LOCAL_DEFAULTS = {
    "zookeeper.session.timeout.ms": "6000",
    "controlled.shutdown.retry.backoff.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
}


@dataclass(frozen=True)
class ClusterLayout:
    """One local cluster. Broker ids count from 1; `config` overrides every broker's settings."""

    directory: Path
    client_ports: tuple[int, ...]
    internal_ports: tuple[int, ...]
    zookeeper_port: int
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def broker_ids(self) -> list[int]:
        return list(range(1, len(self.client_ports) + 1))

    @property
    def bootstrap(self) -> str:
        """The addresses for clients, comma separated."""
        return ",".join(f"{HOST}:{port}" for port in self.client_ports)

    @property
    def zookeeper_connect(self) -> str:
        return f"{HOST}:{self.zookeeper_port}"

    @property
    def zookeeper_directory(self) -> Path:
        return self.directory / "zookeeper"

    def broker_directory(self, broker_id: int) -> Path:
        return self.directory / f"broker-{broker_id}"

    def data_directory(self, broker_id: int) -> Path:
        """The broker's `log.dirs`."""
        return self.broker_directory(broker_id) / "data"

    def properties_file(self, broker_id: int) -> Path:
        return self.broker_directory(broker_id) / "server.properties"

    def ports(self, broker_id: int) -> tuple[int, int]:
        """The client port and the inter-broker port."""
        return self.client_ports[broker_id - 1], self.internal_ports[broker_id - 1]

    def properties(self, broker_id: int) -> dict[str, str]:
        """Return the broker's settings, in reading order."""
        client_port, internal_port = self.ports(broker_id)
        return {
            "broker.id": str(broker_id),
            "listeners": f"CLIENT://{HOST}:{client_port},INTERNAL://{HOST}:{internal_port}",
            "inter.broker.listener.name": "INTERNAL",
            "zookeeper.connect": self.zookeeper_connect,
            "log.dirs": str(self.data_directory(broker_id)),
            "default.replication.factor": str(min(3, len(self.client_ports))),
            "offsets.topic.replication.factor": str(min(3, len(self.client_ports))),
            "transaction.state.log.replication.factor": str(min(3, len(self.client_ports))),
            "transaction.state.log.min.isr": str(min(2, len(self.client_ports))),
            **LOCAL_DEFAULTS,
            **self.config,
        }

    def write(self) -> None:
        """Write the folders, the properties files and `cluster.json`."""
        for broker_id in self.broker_ids:
            self.broker_directory(broker_id).mkdir(parents=True, exist_ok=True)
            text = format_properties(self.properties(broker_id))
            self.properties_file(broker_id).write_text(text, encoding="utf-8")
        content = {
            "client_ports": list(self.client_ports),
            "internal_ports": list(self.internal_ports),
            "zookeeper_port": self.zookeeper_port,
            "config": dict(self.config),
        }
        temporary = self.directory / f"{LAYOUT_FILE}.tmp"
        temporary.write_text(json.dumps(content, indent=2) + "\n")
        temporary.replace(self.directory / LAYOUT_FILE)

    def with_config(self, config: Mapping[str, str]) -> "ClusterLayout":
        """Return the same layout with some settings replaced."""
        return replace(self, config={**self.config, **config})


def pause_directory(directory: Path) -> Path:
    """Return the folder for held pause points, used with `pause.directory`."""
    return directory / "pause"


def load_layout(directory: Path) -> ClusterLayout | None:
    """Return the layout recorded in the folder, None without one; ClusterError if malformed."""
    path = directory / LAYOUT_FILE
    try:
        content = json.loads(path.read_text())
        layout = ClusterLayout(
            directory=directory,
            client_ports=tuple(content["client_ports"]),
            internal_ports=tuple(content["internal_ports"]),
            zookeeper_port=content["zookeeper_port"],
            config=dict(content["config"]),
        )
        _check_ports(layout)
        return layout
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ClusterError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else error
        raise ClusterError(
            f"{path} does not describe a cluster: {what}; end its processes by hand (their pids are"
            " in its process.json files), then remove the folder"
        ) from None


def _check_ports(layout: ClusterLayout) -> None:
    """Raise ValueError unless each broker has two ports, and ZooKeeper one."""
    if not layout.client_ports or len(layout.client_ports) != len(layout.internal_ports):
        raise ValueError("a broker has no port")
    for port in (*layout.client_ports, *layout.internal_ports, layout.zookeeper_port):
        if type(port) is not int or not 1 <= port <= MAX_PORT:
            raise ValueError(f"not a port: {port!r}")


def _check_directory(directory: Path) -> None:
    """Raise ClusterError for a path that cannot be a value of `log.dirs`, a list in a text file."""
    text = str(directory)
    encodable = text.encode(errors="ignore").decode() == text
    if "," in text or text.splitlines() != [text] or not encodable:
        raise ClusterError(
            f"the folder {text!r} has a comma or a character that the brokers' settings cannot"
            " hold; choose another --dir"
        )


def new_layout(
    directory: Path, brokers: int, port: int | None, config: Mapping[str, str]
) -> ClusterLayout:
    """Choose consecutive ports from `port`, or any free ones. Raises ClusterError."""
    _check_directory(directory)
    if brokers < 1:
        raise ClusterError(f"a cluster needs at least one broker, not {brokers}")
    if port is None:
        free = free_ports(2 * brokers + 1)
        return ClusterLayout(
            directory, tuple(free[:brokers]), tuple(free[brokers:-1]), free[-1], dict(config)
        )
    last = port + INTERNAL_PORT_DISTANCE + brokers - 1
    if port < 1 or last > MAX_PORT or brokers > INTERNAL_PORT_DISTANCE:
        raise ClusterError(
            f"{brokers} brokers from port {port} would need the ports up to {last} (a broker's"
            f" second listener is {INTERNAL_PORT_DISTANCE} above its first); choose another --port"
        )
    clients = tuple(range(port, port + brokers))
    internal = tuple(client + INTERNAL_PORT_DISTANCE for client in clients)
    zookeeper = next(free for free in free_ports(2 * brokers + 1) if free not in clients + internal)
    return ClusterLayout(directory, clients, internal, zookeeper, dict(config))
