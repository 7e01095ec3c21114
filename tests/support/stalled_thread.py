"""Hold one thread of another process while its other threads run: a stalled event loop.

It uses ptrace, as a debugger does; SIGSTOP would stop every thread of the process.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_PTRACE_ATTACH, _PTRACE_DETACH = 16, 17
_WALL = 0x40000000


@contextmanager
def main_thread_held(pid: int) -> Iterator[None]:
    """Hold the process's main thread during the block.

    One thread must enter and leave the block. Skips the test where tracing is not allowed.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(_PTRACE_ATTACH, pid, None, None) != 0:
        pytest.skip(f"ptrace is not allowed here: {os.strerror(ctypes.get_errno())}")
    os.waitpid(pid, _WALL)
    try:
        yield
    finally:
        libc.ptrace(_PTRACE_DETACH, pid, None, None)
