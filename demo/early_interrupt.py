"""Imported first: until `main` has something to clean up, Ctrl-C ends the demo at once.

Importing pandas takes seconds, and its parser reports an interrupt as an error of its own.
"""

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130


def _end(number: int, frame: FrameType | None) -> None:
    sys.stdout.write("\ninterrupted: nothing has been started\n")
    sys.stdout.flush()
    os._exit(INTERRUPTED)


def clean_up_on_interrupt() -> None:
    """Make Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt from now on."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)


signal.signal(signal.SIGINT, _end)
