"""The console script `barnabas`: Ctrl-C ends it silently, also while the commands are imported."""

import os
import signal
from types import FrameType

INTERRUPTED = 130


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def main() -> None:
    """Import the command line and run it."""
    before = signal.signal(signal.SIGINT, _end)
    from barnabas_tools.cli.main import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
