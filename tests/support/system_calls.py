"""A running process is killed inside one of its system calls, or some of them fail: by strace."""

import asyncio
import shutil
import signal
import subprocess
from random import Random

KILLED_IN = (
    "fsync", "fdatasync", "rename", "writev", "write", "pwrite64", "openat", "unlink", "ftruncate",
    "mkdir", "sendmsg", "lseek", "newfstatat", "close", "getdents64", "preadv", "pread64", "mmap",
)  # fmt: skip
FAILING = (
    "fsync", "fdatasync", "rename", "writev", "write", "pwrite64", "openat", "unlink", "ftruncate",
    "pread64", "preadv",
)  # fmt: skip
ERRORS = ("EIO", "ENOSPC")
COUNTS = (1, 1, 2, 3, 5, 8, 13, 30, 60)


def is_available() -> bool:
    return shutil.which("strace") is not None


def draw(random: Random) -> str:
    """An `inject=` expression of strace: a kill, or an error once, five times or from then on."""
    count = random.choice(COUNTS)
    if random.random() < 0.6:
        return f"inject={random.choice(KILLED_IN)}:signal=SIGKILL:when={count}"
    when = random.choice([f"{count}", f"{count}..{count + 4}", f"{count}+"])
    return f"inject={random.choice(FAILING)}:error={random.choice(ERRORS)}:when={when}"


async def meddle(pid: int, injection: str, seconds: float) -> None:
    """Attach strace to all threads of a process, until the process ends or the time is over."""
    call = injection.removeprefix("inject=").partition(":")[0]
    command = ["strace", "-f", "-qq", "-p", f"{pid}", "-e", f"trace={call}", "-e", injection]
    tracer = subprocess.Popen([*command, "-o", "/dev/null"], stderr=subprocess.DEVNULL)
    try:
        await asyncio.to_thread(tracer.wait, seconds)
    except subprocess.TimeoutExpired:
        tracer.send_signal(signal.SIGINT)  # it lets go of the process, which goes on
        await asyncio.to_thread(tracer.wait)
