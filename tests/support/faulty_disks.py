"""Real disks that fail on demand, each mounted on one folder; both need root.

`SmallDisk` can be filled to the last byte. `FragileDisk` becomes read-only while files are open on
it, as ext4 does after a hardware error, and loses what was not flushed.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

_RELEASE_SECONDS = 60


class CannotMount(Exception):
    """The machine does not allow it: no root, no loop devices, or no mkfs.ext4."""


class SmallDisk:
    """A file system in memory of `megabytes`, mounted on the folder `path`."""

    def __init__(self, path: Path, megabytes: int) -> None:
        self.path = path
        self._size = megabytes
        self._filler = path / "filler"

    def mount(self) -> None:
        """Raises CannotMount."""
        self.path.mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={self._size}m", "tmpfs", str(self.path))

    def fail(self) -> None:
        """Fill it until nothing more fits."""
        with self._filler.open("wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(65_536))
            except OSError:
                pass

    def repair(self) -> None:
        """Make room again."""
        self._filler.unlink()

    def unmount(self) -> None:
        _unmount(self.path)


class FragileDisk:
    """An ext4 file system of `megabytes` in the file `image`, mounted on the folder `path`."""

    def __init__(self, path: Path, image: Path, megabytes: int) -> None:
        self.path = path
        self._image = image
        self._size = megabytes

    def mount(self) -> None:
        """Raises CannotMount."""
        self.path.mkdir(parents=True, exist_ok=True)
        with self._image.open("wb") as image:
            image.truncate(self._size * 2**20)
        _run("mkfs.ext4", "-q", "-m", "0", str(self._image))
        self._attach()
        # A broker treats every folder in its data directory as a partition's.
        (self.path / "lost+found").rmdir()

    def fail(self) -> None:
        """Make the file system read-only, as after a hardware error."""
        device = os.path.basename(_run("findmnt", "-n", "-o", "SOURCE", str(self.path)).strip())
        Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("a test\n")

    def repair(self) -> None:
        """Check the file system and mount it again; no process may have files open on it."""
        self.unmount()
        subprocess.run(["fsck.ext4", "-f", "-y", str(self._image)], capture_output=True)
        self._attach()

    def unmount(self) -> None:
        """A container that starts just now has a copy of all mounts for a moment. Until it drops
        them the file system lives on, and would be mounted again with its error."""
        _unmount(self.path)
        deadline = time.monotonic() + _RELEASE_SECONDS
        while _run("losetup", "--associated", str(self._image)).strip():
            if time.monotonic() > deadline:
                raise CannotMount(f"{self._image} is still in use")
            time.sleep(0.02)

    def _attach(self) -> None:
        _run("mount", "-o", "loop,errors=remount-ro", str(self._image), str(self.path))


def _unmount(path: Path) -> None:
    if os.path.ismount(path):
        _run("umount", str(path))


def _run(*command: str) -> str:
    if os.geteuid() != 0:
        raise CannotMount("mounting needs root")
    if shutil.which(command[0]) is None:
        raise CannotMount(f"there is no {command[0]} here")
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise CannotMount(f"{' '.join(command)}: {result.stderr.strip()}")
    return result.stdout
