"""A shell with a local cluster of its own, for tests of `barnabas cluster`."""

from pathlib import Path

from barnabas_tools.local.ports import free_ports, is_taken
from barnabas_tools.local.process import ProcessRecord

from tests.support.shell import Shell


class OwnCluster(Shell):
    """A shell with its own ports, for a cluster that is started in the folder."""

    def __init__(self, folder: Path) -> None:
        self.port = consecutive_ports(3)
        super().__init__(",".join(f"127.0.0.1:{self.port + i}" for i in range(3)), folder)
        self.started_in = folder

    def processes(self) -> list[ProcessRecord]:
        records = map(ProcessRecord.load, (self.started_in / ".barnabas").glob("*/process.json"))
        return [record for record in records if record is not None and record.alive]


def consecutive_ports(count: int) -> int:
    """Return the first of `count` consecutive free ports whose internal ports are free too."""
    while True:
        (first,) = free_ports(1)
        wanted = [first + i + distance for i in range(count) for distance in (0, 10_000)]
        if not any(map(is_taken, wanted)):
            return first
