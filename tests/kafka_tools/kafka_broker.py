"""A real Kafka broker on this machine, in ZooKeeper mode, for tests that use what it wrote."""

import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from barnabas_tools.local.ports import HOST, free_ports
from barnabas_tools.local.zookeeper_server import EmbeddedZooKeeper

from tests.kafka_tools.harness import java_command

LIMIT_SECONDS = 90


class KafkaBroker:
    """For `with`: started on entry; on exit it is shut down in order. `data` is its directory."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.data = folder / "kafka-data"
        self._folder = folder
        self._settings = settings
        (self._port,) = free_ports(1)
        (folder / "zookeeper").mkdir()
        self._zookeeper = EmbeddedZooKeeper(folder / "zookeeper")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self._port}"

    def __enter__(self) -> Self:
        self._zookeeper.start()
        settings = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": str(self.data),
            "zookeeper.connect": self._zookeeper.connect_string,
            **{name.replace("_", "."): value for name, value in self._settings.items()},
        }
        properties = self._folder / "server.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        with (self._folder / "kafka.log").open("wb") as log:
            self._process = subprocess.Popen(
                java_command("kafka.Kafka", str(properties)), stdout=log, stderr=log
            )
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process is not None
        try:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(LIMIT_SECONDS)
        finally:
            self._process.kill()
            self._zookeeper.stop()

    def wait_until_clean(self, *partitions: str) -> None:
        """Wait until the cleaner has been through all but the active segment of these logs."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not all(self._is_clean(name) for name in partitions):
            assert time.monotonic() < deadline, (self._folder / "kafka.log").read_text()[-2000:]
            time.sleep(0.1)

    def _is_clean(self, name: str) -> bool:
        active = max(int(path.stem) for path in (self.data / name).glob("*.log"))
        checkpoint = self.data / "cleaner-offset-checkpoint"
        if not checkpoint.exists():
            return False
        lines = checkpoint.read_text().splitlines()[2:]
        clean = {f"{line.split()[0]}-{line.split()[1]}": int(line.split()[2]) for line in lines}
        return clean.get(name, -1) >= active > 0
