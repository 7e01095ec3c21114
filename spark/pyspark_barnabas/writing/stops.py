"""Points at which a test stops the sink, to kill something there.

`BARNABAS_SINK_STOPS` names a folder. A process that comes to a point of which the folder has a file
renames the file to NAME.reached, with its process id in it, and waits until that is removed.
"""

import os
import time
from pathlib import Path

_VARIABLE = "BARNABAS_SINK_STOPS"
_PAUSE_SECONDS = 0.02


def stop_at(point: str) -> None:
    """Wait if a test asks for it; does nothing otherwise."""
    folder = os.environ.get(_VARIABLE)
    if not folder:
        return
    reached = Path(folder) / f"{point}.reached"
    try:
        (Path(folder) / point).rename(reached)
    except FileNotFoundError:
        return
    reached.write_text(str(os.getpid()))
    while reached.exists():
        time.sleep(_PAUSE_SECONDS)
