"""An event loop that is dropped prints no traceback, whatever state it is in."""

import gc
import subprocess
import sys

from barnabas_common.runtime.event_loop import ProgramLoop, run_program

HALF_MADE = """
import gc
from barnabas_common.runtime.event_loop import ProgramLoop
loop = ProgramLoop.__new__(ProgramLoop)  # Ctrl-C before __init__
del loop
loop = ProgramLoop()
loop._ssock.close()  # as at the interpreter's end
del loop
gc.collect()
"""


def test_it_runs_as_asyncio_does() -> None:
    async def work() -> int:
        return 7

    assert run_program(work()) == 7


def test_a_dropped_loop_is_closed() -> None:
    loop = ProgramLoop()
    socket = loop._ssock  # type: ignore[attr-defined]
    del loop
    gc.collect()
    assert socket.fileno() == -1


def test_a_half_made_loop_is_dropped_silently() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HALF_MADE], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
