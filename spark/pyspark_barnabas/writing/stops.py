"""Points at which a test stops the driver, to kill it there.

`BARNABAS_SINK_STOPS` names a folder. A driver that comes to a point of which the folder has a file
renames the file to NAME.reached and goes no further.
"""

import os
import time
from pathlib import Path

_VARIABLE = "BARNABAS_SINK_STOPS"


def stop_at(point: str) -> None:
    """Block forever if a test asks for it; does nothing otherwise."""
    folder = os.environ.get(_VARIABLE)
    if not folder:
        return
    wanted = Path(folder) / point
    if wanted.exists():
        wanted.rename(wanted.with_name(f"{point}.reached"))
        while True:
            time.sleep(60)
