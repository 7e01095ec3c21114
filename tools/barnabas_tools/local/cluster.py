"""A cluster of real processes on 127.0.0.1: ZooKeeper and brokers.

Used by `barnabas cluster`, the integration tests, the benchmarks and the demo:

    with LocalCluster(directory, brokers=3) as cluster:
        ... Producer(bootstrap_servers=cluster.bootstrap) ...
        cluster.kill(1)

The processes outlive this one unless they are stopped; the folder records them. All methods block,
and raise ClusterError with one line. Not thread-safe.
"""

import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from barnabas_broker.config.config import Config
from barnabas_broker.config.key import InvalidConfig
from barnabas_common.runtime.file_pauses import FilePauseControl

from barnabas_tools.local.errors import ClusterError
from barnabas_tools.local.first_start import remove_files, without_files
from barnabas_tools.local.layout import (
    DECIDED,
    LAYOUT_FILE,
    ClusterLayout,
    load_layout,
    new_layout,
    pause_directory,
)
from barnabas_tools.local.lock import exclusive
from barnabas_tools.local.member import Member
from barnabas_tools.local.ports import free_ports, is_taken
from barnabas_tools.local.process import uninterrupted
from barnabas_tools.local.readiness import wait_until_serving
from barnabas_tools.local.zookeeper_server import EmbeddedZooKeeper

Report = Callable[[str], None]

DEFAULT_BROKERS = 3
LOCK_FILE = "cluster.lock"
START_TIMEOUT = 60.0
STOP_TIMEOUT = 30.0


def _silent(line: str) -> None:
    """The default report: drop the line."""


class LocalCluster:
    """One local cluster, existing or new in `directory`.

    `brokers`, `config` and `port` define a new cluster (`port=None`: any free ports). For an
    existing one, `config` is added to its settings at the next start, and the others must be equal.
    `report` is called with a line at every step of a start or stop.
    """

    def __init__(
        self,
        directory: str | Path,
        brokers: int | None = None,
        config: Mapping[str, str] | None = None,
        port: int | None = None,
        report: Report = _silent,
    ) -> None:
        self.directory = Path(directory).absolute()
        self._report = report
        _check_given(config or {})
        existing = load_layout(self.directory)
        self._new = existing is None
        if existing is None:
            count = DEFAULT_BROKERS if brokers is None else brokers
            self.layout = new_layout(self.directory, count, port, config or {})
        else:
            _check_same(existing, brokers, port)
            self.layout = existing.with_config(config or {})
        _check_config(self.layout)

    @classmethod
    def find(cls, directory: str | Path, report: Report = _silent) -> "LocalCluster":
        """Return the existing cluster in `directory`; ClusterError if there is none."""
        if load_layout(Path(directory).absolute()) is None:
            raise ClusterError(f"no cluster in {directory}; start one with: barnabas cluster start")
        return cls(directory, report=report)

    # Members

    @property
    def bootstrap(self) -> str:
        """The client addresses of all brokers, `host:port,...`."""
        return self.layout.bootstrap

    @property
    def zookeeper_connect(self) -> str:
        return self.layout.zookeeper_connect

    @property
    def broker_ids(self) -> list[int]:
        return self.layout.broker_ids

    @property
    def zookeeper(self) -> Member:
        return self._zookeeper_server.member

    @property
    def _zookeeper_server(self) -> EmbeddedZooKeeper:
        return EmbeddedZooKeeper(self.layout.zookeeper_directory, self.layout.zookeeper_port)

    @property
    def pauses(self) -> FilePauseControl:
        """Holds brokers at pause points. ClusterError without the config `pause.directory`."""
        directory = self.layout.config.get("pause.directory")
        if directory is None:
            raise ClusterError("no pause points: the cluster runs without pause.directory")
        return FilePauseControl(Path(directory))

    def broker(self, broker_id: int) -> Member:
        """The process and files of one broker; ClusterError for an id that does not exist."""
        if broker_id not in self.broker_ids:
            known = ", ".join(map(str, self.broker_ids))
            raise ClusterError(f"there is no broker {broker_id}; the brokers are {known}")
        directory = self.layout.broker_directory(broker_id)
        ports = self.layout.ports(broker_id)
        return Member(f"broker {broker_id}", directory, directory / "broker.log", ports)

    def pid(self, broker_id: int) -> int | None:
        """Return the pid of a broker, None if it does not run."""
        process = self.broker(broker_id).process
        return process.pid if process else None

    def running_brokers(self) -> list[int]:
        return [broker_id for broker_id in self.broker_ids if self.broker(broker_id).running]

    @property
    def complete(self) -> bool:
        """Whether ZooKeeper and every broker runs."""
        return self.zookeeper.running and self.running_brokers() == self.broker_ids

    # Starting

    def start(self, timeout: float = START_TIMEOUT) -> None:
        """Start all members that do not run, and wait until every broker serves.

        If that fails or is interrupted, the processes that this call started are killed. Of a new
        cluster only the logs are left.
        """
        started: list[Member] = []
        with self._changing(), self._undone_on_failure(started, self._check_new()):
            missing = [b for b in self.broker_ids if not self.broker(b).running]
            for broker_id in missing:
                self.broker(broker_id).check_ports()
            if not self.zookeeper.running:
                self._choose_zookeeper_port()
            self.layout.write()
            if not self.zookeeper.running:
                self._start_zookeeper(started)
            self._start_brokers(missing, started)
            self._await_serving(self.broker_ids, timeout)

    def start_broker(self, broker_id: int, wait: bool = True) -> None:
        """Start a broker that does not run; `wait` until it serves and all others know it."""
        member = self.broker(broker_id)
        if member.running:
            raise ClusterError(f"{member.name} runs already")
        started: list[Member] = []
        with self._changing(), self._undone_on_failure(started):
            self._start_brokers([broker_id], started)
            if wait:
                self.wait_until_serving()

    def restart(self, broker_id: int, wait: bool = True) -> None:
        """Shut a broker down cleanly if it runs, and start it again.

        Raises ClusterError without ZooKeeper, because the broker could not start again.
        """
        member = self.broker(broker_id)
        if not self.zookeeper.running:
            raise ClusterError(
                f"{member.name} cannot start without ZooKeeper, which does not run;"
                " start both with: barnabas cluster start"
            )
        if member.running:
            self.stop_broker(broker_id)
        self.start_broker(broker_id, wait)

    def wait_until_serving(self, timeout: float = START_TIMEOUT) -> None:
        """Wait until every running broker serves and knows the others and a controller."""
        self._await_serving(self.running_brokers(), timeout)

    # Stopping

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        """Send SIGTERM to the brokers, which shut down cleanly, and then stop ZooKeeper."""
        with self._changing():
            running = [self.broker(broker_id) for broker_id in self.running_brokers()]
            processes = [(member, member.process) for member in running]
            for _, process in processes:
                if process is not None:
                    process.signal(signal.SIGTERM)
            deadline = time.monotonic() + timeout
            for member, process in processes:
                if process is None:
                    continue
                if process.wait(max(0.0, deadline - time.monotonic())):
                    self._report(f"{member.name} stopped")
                else:
                    process.kill()
                    self._report(f"{member.name} killed: it had not stopped in {timeout:g} s")
            if zookeeper := self.zookeeper.process:
                zookeeper.terminate(timeout)
                self._report("ZooKeeper stopped")

    def stop_broker(self, broker_id: int, timeout: float = STOP_TIMEOUT) -> bool:
        """Send SIGTERM to a broker; False if it had to be killed after `timeout` seconds."""
        process = self.broker(broker_id).process
        return process is None or process.terminate(timeout)

    def kill(self, broker_id: int) -> None:
        """Send SIGKILL to a broker; returns when the process has ended."""
        self.signal(broker_id, signal.SIGKILL)

    def signal(self, broker_id: int, number: int) -> None:
        """Send a signal to a broker; returns after the effect of SIGKILL and SIGSTOP.

        Raises ClusterError if it does not run.
        """
        process = self.broker(broker_id).process
        if process is None:
            raise ClusterError(f"broker {broker_id} does not run")
        if number == signal.SIGKILL:
            process.kill()
        elif number == signal.SIGSTOP:
            process.pause()
        else:
            process.signal(number)

    def kill_all(self) -> None:
        """Send SIGKILL to every process of the cluster, ZooKeeper last."""
        processes = [self.broker(broker_id).process for broker_id in self.broker_ids]
        for process in [*processes, self.zookeeper.process]:
            if process is not None:
                process.signal(signal.SIGKILL)
        for process in [*processes, self.zookeeper.process]:
            if process is not None:
                process.wait(10.0)

    def destroy(self) -> None:
        """Kill every process, and remove all records and logs, and the folder if it is empty.

        Raises ClusterError if something cannot be removed; it can be called again.
        """
        self.kill_all()
        brokers = map(self.layout.broker_directory, self.broker_ids)
        folders = [self.zookeeper.directory, *brokers, pause_directory(self.directory)]
        for folder in filter(Path.exists, folders):
            try:
                shutil.rmtree(folder)
            except OSError as error:
                text = f"the cluster is stopped, but {folder} cannot be removed: {error}"
                raise ClusterError(text) from error
        for name in (LAYOUT_FILE, LOCK_FILE):
            (self.directory / name).unlink(missing_ok=True)
        with suppress(OSError):
            self.directory.rmdir()

    def __enter__(self) -> "LocalCluster":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with uninterrupted():
            self.kill_all()

    # Steps

    def _choose_zookeeper_port(self) -> None:
        """Take another port if the recorded one is in use now, and no broker relies on it."""
        if is_taken(self.layout.zookeeper_port) and not self.running_brokers():
            self.layout = replace(self.layout, zookeeper_port=free_ports(1)[0])

    def _start_zookeeper(self, started: list[Member]) -> None:
        started.append(self.zookeeper)
        self._zookeeper_server.start(START_TIMEOUT)
        self._report(f"ZooKeeper serves on {self.zookeeper_connect}")

    def _start_brokers(self, broker_ids: list[int], started: list[Member]) -> None:
        """Start brokers together, then wait until each listens."""
        for broker_id in broker_ids:
            member = self.broker(broker_id)
            started.append(member)
            member.start(_broker_command(self.layout.properties_file(broker_id)))
        for broker_id in broker_ids:
            member = self.broker(broker_id)
            member.wait_until_listening(START_TIMEOUT)
            self._report(f"{member.name} listens on {self.layout.ports(broker_id)[0]}")

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock that lets only one command change the cluster."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            text = f"the folder {self.directory} cannot be created: {error.strerror}"
            raise ClusterError(text) from None
        with exclusive(self.directory / LOCK_FILE):
            yield

    def _check_new(self) -> list[Member]:
        """The members of a new cluster whose files a failed start removes."""
        if not self._new:
            return []
        if load_layout(self.directory) is not None:
            raise ClusterError(f"another command has made a cluster in {self.directory}")
        return without_files([self.zookeeper, *map(self.broker, self.broker_ids)])

    @contextmanager
    def _undone_on_failure(
        self, started: list[Member], new: Sequence[Member] = ()
    ) -> Iterator[None]:
        try:
            yield
        except BaseException:
            with uninterrupted():
                for member in reversed(started):
                    if process := member.process:
                        process.kill()
                remove_files(new)
                if self._new:
                    (self.directory / LAYOUT_FILE).unlink(missing_ok=True)
            raise
        self._new = False

    def _await_serving(self, broker_ids: list[int], timeout: float) -> None:
        members = [self.zookeeper, *map(self.broker, broker_ids)]

        def check_running() -> None:
            for member in members:
                member.check_running()

        wait_until_serving(self.layout, broker_ids, timeout, check_running)


def _broker_command(properties_file: Path) -> list[str]:
    return [sys.executable, "-m", "barnabas_tools.cli.cluster.run_broker", str(properties_file)]


def _check_same(existing: ClusterLayout, brokers: int | None, port: int | None) -> None:
    """Check that an existing cluster keeps its number of brokers and its ports."""
    count, first = len(existing.client_ports), existing.client_ports[0]
    if brokers not in (None, count) or port not in (None, first):
        raise ClusterError(
            f"{existing.directory} holds a cluster of {count} brokers from port {first};"
            " destroy it first, or choose another --dir"
        )


def _check_given(config: Mapping[str, str]) -> None:
    """Refuse the settings that the cluster chooses for each broker."""
    for name in DECIDED:
        if name in config:
            raise ClusterError(f"a local cluster chooses {name} itself; it cannot be set")


def _check_config(layout: ClusterLayout) -> None:
    """Report an invalid setting before any process starts."""
    try:
        for broker_id in layout.broker_ids:
            Config(layout.properties(broker_id)).check_broker()
    except InvalidConfig as error:
        raise ClusterError(str(error)) from None
