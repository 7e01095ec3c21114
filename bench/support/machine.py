"""The machine that benchmarks run on, and its processes."""

import json
import os
import platform
import time
from pathlib import Path


def machine() -> dict[str, object]:
    """Return the circumstances of a run, for every JSON file."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


def write_figures(path: Path | None, **figures: object) -> None:
    """Write figures and the machine's description as one JSON object; nothing without a path."""
    if path:
        path.write_text(json.dumps({"machine": machine(), **figures}, indent=2) + "\n")


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def busy_percent(seconds: float = 2.0) -> float:
    """Return the used percentage of all cores, measured for `seconds`.

    While no benchmark runs this is the load of other processes. Two figures can be compared only if
    both were measured with little other load.
    """
    idle_before, all_before = _cpu_ticks()
    time.sleep(seconds)
    idle_after, all_after = _cpu_ticks()
    return 100.0 * (1.0 - (idle_after - idle_before) / max(all_after - all_before, 1))


def _cpu_ticks() -> tuple[int, int]:
    """Return the idle ticks (with those of waiting for the disk) and all ticks since boot."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)
