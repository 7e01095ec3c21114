"""Fills build/docker with the content of the images, so that their build needs no network.

These are the project's wheel and its dependencies, for the Python of Debian bookworm (3.11)
whatever the host's, and ZooKeeper's jars from the pyspark wheel. Called by `make image`.
"""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGE = ROOT / "build" / "docker"
BOOKWORM_GLIBC = 36
ZOOKEEPER_DATA = "/var/lib/zookeeper"
ZOOKEEPER_PORT = 2181
MACHINES = {"arm64": "aarch64", "AMD64": "x86_64"}


def pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", *arguments], check=True, cwd=ROOT)


def stage_wheels(target: Path) -> None:
    """Build the project's wheel from this tree, and download the wheels that a broker needs."""
    pip("wheel", "--quiet", "--no-deps", "--wheel-dir", str(target), ".")
    (wheel,) = target.glob("barnabas-*.whl")
    machine = MACHINES.get(platform.machine(), platform.machine())
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(BOOKWORM_GLIBC, 16, -1)]
    options = [f"--platform={name}" for name in [*platforms, f"manylinux2014_{machine}"]]
    pip(
        "download",
        "--quiet",
        "--only-binary=:all:",
        "--implementation=cp",
        "--python-version=3.11",
        *options,
        f"--dest={target}",
        f"{wheel}[broker]",
    )


def stage_zookeeper(target: Path) -> None:
    """Copy ZooKeeper's jars and write its configuration, as `LocalCluster` does."""
    from barnabas_tools.local.zookeeper_server import write_configuration, zookeeper_jars

    write_configuration(target, ZOOKEEPER_DATA, ZOOKEEPER_PORT, address="0.0.0.0")
    (target / "jars").mkdir()
    for jar in zookeeper_jars():
        shutil.copy(jar, target / "jars")


def main() -> None:
    shutil.rmtree(STAGE, ignore_errors=True)
    for name, stage in (("wheels", stage_wheels), ("zookeeper", stage_zookeeper)):
        (STAGE / name).mkdir(parents=True)
        stage(STAGE / name)


if __name__ == "__main__":
    main()
