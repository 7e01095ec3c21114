"""What the benchmarks say of the machine and of processes on it."""

import os
import platform
import time
from pathlib import Path


def machine() -> dict[str, object]:
    """Under which circumstances figures came about; goes into every JSON file."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


def resident_mb(pid: int) -> float:
    """Resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def busy_percent(seconds: float = 2.0) -> float:
    """How much of all cores somebody uses, watched for so long.

    Asked while nothing of ours runs, it is what others take: a figure measured beside others says
    little, and two figures can be compared only if both were measured beside as few.
    """
    idle_before, all_before = _cpu_ticks()
    time.sleep(seconds)
    idle_after, all_after = _cpu_ticks()
    return 100.0 * (1.0 - (idle_after - idle_before) / max(all_after - all_before, 1))


def _cpu_ticks() -> tuple[int, int]:
    """Ticks of all cores since boot: idle ones (waiting for the disk included), and all."""
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)
