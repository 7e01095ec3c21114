"""A process on a volatile disk is really killed: only what it had flushed remains."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

_LIFE = """
import signal, sys
from barnabas_broker.disk.posix_disk import PosixDisk
from barnabas_broker.disk.volatile_disk import VolatileDisk

root = sys.argv[1]
disk = VolatileDisk(PosixDisk(), lambda: 0)
disk.make_directory(f"{root}/t-0")

log = disk.open(f"{root}/t-0/log", create=True)
log.append([b"flushed"])
log.flush()
disk.sync_directory(f"{root}/t-0")
log.append([b" and not"])

cut = disk.open(f"{root}/t-0/cut", create=True)
cut.append([b"whole"])
cut.flush()
disk.sync_directory(f"{root}/t-0")
cut.truncate(1)

disk.write_file(f"{root}/checkpoint", b"1")
disk.write_file(f"{root}/checkpoint", b"2")
disk.write_file(f"{root}/old", b"renamed")
disk.rename(f"{root}/old", f"{root}/new")
disk.write_file(f"{root}/a", b"kept its name")
disk.rename(f"{root}/a", f"{root}/b", sync=False)
disk.write_file(f"{root}/t-0/index", b"still there")
disk.remove(f"{root}/t-0/index")
nameless = disk.open(f"{root}/t-0/nameless", create=True)
nameless.append([b"flushed, but no directory knows it"])
nameless.flush()
assert disk.list(root) == ["b", "checkpoint", "new", "t-0"], disk.list(root)
assert disk.list(f"{root}/t-0") == ["cut", "log", "nameless"]
print("written", flush=True)
signal.pause()
"""


def test_a_killed_process_leaves_what_a_power_loss_leaves(tmp_path: Path) -> None:
    root = tmp_path / "data"
    process = subprocess.Popen(
        [sys.executable, "-c", _LIFE, str(root)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    left = {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
    assert left == {
        "a": b"kept its name",
        "checkpoint": b"2",
        "new": b"renamed",
        "t-0/cut": b"whole",
        "t-0/index": b"still there",
        "t-0/log": b"flushed",
    }
