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
        "load_before": os.getloadavg()[0],
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


def resident_mb(pid: int) -> float:
    """Resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
